"""The user's own text as prompts: cut to an exact length at different places, or each file as it is."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from longreach.errors import InputFileError, UsageError
from longreach.host.files import read_bytes_up_to
from longreach.measure.workload.outlines import Excerpt, Outline, RequestOutline, Room, too_short
from longreach.measure.workload.wishes import TextSource
from longreach.units import format_count

_FIX = "name a file or a folder of plain text in UTF-8"
_SLACK = 1.25  # a passage may hold fewer tokens a character than its text on average
_ALIKE_CHARS = 1_000
_MAX_BYTES = 2**30  # of one file: a hundred times the longest prompt


@dataclass(frozen=True, slots=True)
class NamedText:
    """One file's text."""

    name: str
    text: str


@dataclass(frozen=True, slots=True)
class Texts:
    """What a file or folder holds, and notes on what was passed over."""

    files: tuple[NamedText, ...]
    notes: tuple[str, ...] = ()

    @property
    def joined(self) -> str:
        """One text after the other."""
        return "\n".join(file.text.rstrip("\n") for file in self.files) + "\n"


def read_texts(path: Path) -> Texts:
    """The text of a file, or of every text file under a folder by name. InputFileError when there is none."""
    if not path.is_dir():
        text = _read_text(path)
        if isinstance(text, str):
            return Texts((NamedText(path.name, text),))
        raise InputFileError(f"'{path}' cannot be used as text", text.reason, _FIX)
    files, passed_over = [], []
    for file in sorted(_walk(path)):
        text = _read_text(file)
        if isinstance(text, str):
            files.append(NamedText(str(file.relative_to(path)), text))
        else:
            passed_over.append(f"{file.relative_to(path)}: {text.reason}")
    if not files:
        reason = f"none of its files is text: {passed_over[0]}" if passed_over else "it holds no file"
        raise InputFileError(f"'{path}' cannot be used as text", reason, _FIX)
    notes = (f"passed over: {format_count(len(passed_over), 'file')}, first {passed_over[0]}",) if passed_over else ()
    return Texts(tuple(files), notes)


def _walk(folder: Path) -> Iterator[Path]:
    """Every file but the hidden ones."""
    for path in folder.rglob("*"):
        if path.is_file() and not any(part.startswith(".") for part in path.relative_to(folder).parts):
            yield path


@dataclass(frozen=True, slots=True)
class _Unusable:
    reason: str


def _read_text(path: Path) -> str | _Unusable:
    try:
        raw = read_bytes_up_to(path, _MAX_BYTES)
    except OSError as error:
        return _Unusable(error.strerror or str(error))
    if b"\0" in raw:
        return _Unusable("it is binary")
    try:
        text = raw.decode("utf-8-sig").replace("\r\n", "\n")
    except UnicodeDecodeError as error:
        return _Unusable(f"it is not UTF-8: byte {error.start} is 0x{raw[error.start]:02x}")
    return text if text.strip() else _Unusable("it is empty")


def sample_text(texts: Texts) -> str:
    """Enough of it to tell how many characters make a token."""
    joined = texts.joined
    step = max(1, len(joined) // 8)
    return "".join(joined[start : start + 4_000] for start in range(0, len(joined), step))


def outline_passages(source: TextSource, texts: Texts, chars_per_token: float, room: Room) -> Outline:
    """Prompts of one length whose passages begin at different places of the text."""
    assert source.input_tokens is not None
    if source.input_tokens < room.total:
        raise too_short(source.input_tokens, room)
    text = texts.joined
    needed_chars = int((source.input_tokens - room.total) * chars_per_token)
    if len(text) < needed_chars:
        held = int(len(text) / chars_per_token)
        shorter = f"--input-tokens {int(0.9 * held)}" if 0.9 * held > room.total else "leave --input-tokens out"
        raise UsageError(
            f"'{source.path}' is too short for a prompt of {source.input_tokens:,} tokens",
            f"it holds about {held:,} tokens, and text is never repeated",
            f"{shorter}, or more text",
        )
    fitting = max(1, len(text) // max(1, int(needed_chars * _SLACK)))
    num_requests = source.num_requests or fitting
    last_start = max(0, len(text) - int(needed_chars * _SLACK))
    starts = [last_start * index // max(1, num_requests - 1) for index in range(num_requests)]
    notes = texts.notes
    if num_requests > fitting:
        notes += (
            f"{num_requests} prompts are cut from text for {fitting}: they overlap, but begin at different places",
        )
    excerpts = (Excerpt(text, _begin_of_line(text, start)) for start in starts)
    requests = tuple(RequestOutline((), source.input_tokens, source.output_tokens, excerpt=each) for each in excerpts)
    return Outline(
        f"{format_count(num_requests, 'prompt')} of {source.input_tokens:,} tokens from {source.path.name}",
        {},
        requests,
        notes,
    )


def _begin_of_line(text: str, start: int) -> int:
    """The beginning of the line that `start` is in, when it is near, else of the word."""
    for end in ("\n", " "):
        place = text.rfind(end, max(0, start - 400), start) + 1
        if place or start == 0:
            return place
    return start


def note_alike(texts: Texts) -> tuple[str, ...]:
    """A note when files begin alike: what is sent later hits what was sent before."""
    beginnings = {file.text[:_ALIKE_CHARS] for file in texts.files}
    num_alike = len(texts.files) - len(beginnings)
    how = "begins" if num_alike == 1 else "begin"
    return (
        (f"{format_count(num_alike, 'file')} {how} as another does: a prefix cache hits what is sent later",)
        if num_alike
        else ()
    )


def leave_out_longer(source: TextSource, requests: Sequence[RequestOutline]) -> tuple[list[int], tuple[str, ...]]:
    """The places of the files that fit, and a note on those that do not. UsageError when none does."""
    longest = source.max_request_tokens
    if longest is None:
        return list(range(len(requests))), ()
    room = longest - source.output_tokens
    fitting = [place for place, request in enumerate(requests) if request.prompt_tokens <= room]
    if not fitting:
        raise UsageError(
            f"no file of '{source.path}' fits the server",
            f"the shortest is {min(request.prompt_tokens for request in requests):,} tokens, its answer "
            f"{source.output_tokens:,}, and the longest request {longest:,}",
            f"--input-tokens {room}, which cuts prompts from it"
            if room > 0
            else f"--output-tokens {max(1, longest // 4)}",
        )
    num_longer = len(requests) - len(fitting)
    note = f"left out: {format_count(num_longer, 'file')} longer than {longest:,} tokens with the answer"
    return fitting, (note,) if num_longer else ()
