from pathlib import Path

from longreach.launch.log_tail import LogTail, open_tail, read_last_lines


def append(path: Path, text: str) -> None:
    with path.open("a", encoding="utf-8") as log:
        log.write(text)


def test_only_complete_lines_are_given_and_each_once(tmp_path: Path) -> None:
    tail = LogTail(tmp_path / "log")
    assert tail.read_lines() == []
    append(tail.path, "one\ntw")
    assert tail.read_lines() == ["one"]
    append(tail.path, "o\nthree")
    assert tail.read_lines() == ["two"]
    assert tail.read_lines() == []
    assert tail.read_rest() == ["three"]
    assert tail.read_rest() == []


def test_a_progress_bar_is_its_last_state_and_moves_the_log(tmp_path: Path) -> None:
    tail = LogTail(tmp_path / "log")
    append(tail.path, "\rshards:  50%")
    assert tail.read_lines() == []
    assert tail.offset == 13
    append(tail.path, "\rshards: 100%\r\n")
    assert tail.read_lines() == ["shards: 100%"]


def test_a_log_that_was_cut_short_is_read_from_its_start(tmp_path: Path) -> None:
    tail = LogTail(tmp_path / "log")
    append(tail.path, "a long first line\n")
    tail.read_lines()
    tail.path.write_text("new\n")
    assert tail.read_lines() == ["new"]


def test_bytes_that_are_no_text_do_not_stop_it(tmp_path: Path) -> None:
    path = tmp_path / "log"
    path.write_bytes(b"caf\xe9\n")
    assert LogTail(path).read_lines() == ["caf\N{REPLACEMENT CHARACTER}"]


def test_the_last_lines_are_the_last_lines(tmp_path: Path) -> None:
    path = tmp_path / "log"
    assert read_last_lines(path) == []
    path.write_text("".join(f"{number}\n" for number in range(10)) + "unfinished")
    assert read_last_lines(path)[-2:] == ["9", "unfinished"]
    assert len(read_last_lines(path)) == 11


def test_a_huge_log_is_read_from_a_whole_line(tmp_path: Path) -> None:
    path = tmp_path / "log"
    line = "x" * 99 + "\n"
    path.write_text(line * 50_000)
    assert set(read_last_lines(path)) == {"x" * 99}


def test_a_tail_goes_on_right_behind_the_last_lines(tmp_path: Path) -> None:
    path = tmp_path / "log"
    append(path, "one\ntwo\nthr")
    lines, tail = open_tail(path)
    assert lines == ["one", "two"]
    append(path, "ee\n")
    assert tail.read_lines() == ["three"]
