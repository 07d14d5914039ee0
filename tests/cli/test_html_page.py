import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from tests.report.html import sample_runs, sample_tiers

from longreach.cli import html_page
from longreach.errors import InputFileError

_WHERE = """
from longreach.cli.html_page import settle_plot_cache
settle_plot_cache()
import matplotlib
print(matplotlib.get_configdir(), matplotlib.get_cachedir())
"""


def run_python(home: Path, code: str, **env: str) -> subprocess.CompletedProcess[str]:
    """A fresh interpreter with that home folder and none of the variables that name another one."""
    inherited = {name: value for name, value in os.environ.items() if name != "MPLCONFIGDIR" and "XDG" not in name}
    return subprocess.run(
        [sys.executable, "-c", code],
        env={**inherited, "HOME": str(home), **env},
        capture_output=True,
        text=True,
        check=True,
    )


def test_plots_keep_their_cache_in_the_cache_of_longreach(tmp_path: Path) -> None:
    done = run_python(tmp_path, _WHERE, XDG_CACHE_HOME=str(tmp_path / "cache"))
    assert set(done.stdout.split()) == {str(tmp_path / "cache" / "longreach" / "matplotlib")}
    assert done.stderr == ""
    assert [path.name for path in tmp_path.iterdir()] == ["cache"]


def test_a_cache_that_cannot_be_written_is_done_without(tmp_path: Path) -> None:
    blocked = tmp_path / "file"
    blocked.touch()
    done = run_python(tmp_path, _WHERE, XDG_CACHE_HOME=str(blocked))
    (folder,) = set(done.stdout.split())
    assert Path(folder).name.startswith("longreach-matplotlib-")
    assert not Path(folder).exists()
    assert done.stderr == ""


def test_a_folder_that_was_named_is_kept(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("MPLCONFIGDIR", str(tmp_path))
    html_page.settle_plot_cache()
    assert os.environ["MPLCONFIGDIR"] == str(tmp_path)


def test_commands_load_no_plots_until_they_draw(tmp_path: Path) -> None:
    code = (
        "import sys, longreach.cli.commands, longreach.cli.html_page; print({'matplotlib', 'numpy'} & set(sys.modules))"
    )
    assert run_python(tmp_path, code).stdout.strip() == "set()"


def test_a_page_that_cannot_be_written_is_an_error(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("longreach.report.html.bench_page.render_bench_html", lambda *_: "page")
    monkeypatch.setenv("MPLCONFIGDIR", str(tmp_path))
    run = sample_runs.plain_run(1)
    html_page.write_bench_page(tmp_path / "run.html", run, sample_runs.summary(run))
    assert (tmp_path / "run.html").read_text() == "page"
    with pytest.raises(InputFileError, match="cannot write"):
        html_page.write_bench_page(tmp_path / "none" / "run.html", run, sample_runs.summary(run))


def test_tiers_writes_a_page(
    longreach: Callable[..., tuple[int, str, str]], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    plan, page = tmp_path / "plan.yaml", tmp_path / "tiers.html"
    options = (
        "--gpus",
        "4xRTX4090",
        "--vllm",
        "0.32.0",
        "--max-model-len",
        "64k",
        "--cpu-tier",
        "200GiB",
        "-o",
        str(plan),
    )
    assert longreach("plan", "qwen3-32b", *options)[0] == 0
    monkeypatch.setattr("longreach.cli.tiers._Study.run", lambda _: sample_tiers.report())
    monkeypatch.setenv("MPLCONFIGDIR", str(tmp_path))
    monkeypatch.setattr(
        "longreach.report.html.tiers_page.render_tiers_html", lambda report: f"page of {report.winner.name}"
    )
    code, _, err = longreach("tiers", str(plan), "--html", str(page))
    assert code == 1  # one run of the sample failed
    assert f"report: {page}" in err
    assert page.read_text() == "page of gpu+cpu"
