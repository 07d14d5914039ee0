"""Writing a page with plots. matplotlib keeps its list of fonts in longreach's own cache, not in a folder of its own."""

import os
import tempfile
from pathlib import Path

from longreach.host.files import write_text_atomically
from longreach.measure.bench.summary_values import BenchSummary
from longreach.measure.bench.values import BenchResult


def write_bench_page(path: Path, result: BenchResult, summary: BenchSummary) -> None:
    """The page of a run, whole or not at all. Raises InputFileError when it cannot be written."""
    settle_plot_cache()
    from longreach.report.html.bench_page import render_bench_html

    write_text_atomically(path, render_bench_html(result, summary))


def settle_plot_cache() -> None:
    """Before matplotlib is imported: its folder, unless MPLCONFIGDIR names one. Where none may be written, a temporary one,
    which costs a search for fonts each time.
    """
    if "MPLCONFIGDIR" not in os.environ:
        os.environ["MPLCONFIGDIR"] = str(_plot_cache())


def _plot_cache() -> Path:
    from platformdirs import user_cache_path

    folder = user_cache_path("longreach") / "matplotlib"
    try:
        folder.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryFile(dir=folder):
            return folder
    except OSError:
        return _temporary_folder()


def _temporary_folder() -> Path:
    import atexit
    import shutil

    folder = tempfile.mkdtemp(prefix="longreach-matplotlib-")
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    return Path(folder)
