"""Writing a page with plots. matplotlib keeps its list of fonts in longreach's own cache, not in a folder of its own."""

import os
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING

from longreach.host.files import write_text_atomically

if TYPE_CHECKING:  # these bring numpy
    from longreach.measure.bench.compare_values import RunComparison
    from longreach.measure.bench.summary_values import BenchSummary
    from longreach.measure.bench.values import BenchResult
    from longreach.measure.tiers.values import TiersReport


def write_bench_page(path: Path, result: "BenchResult", summary: "BenchSummary") -> None:
    """The page of a run, whole or not at all. Raises InputFileError when it cannot be written."""
    settle_plot_cache()
    from longreach.report.html.bench_page import render_bench_html

    write_text_atomically(path, render_bench_html(result, summary))


def write_compare_page(path: Path, comparison: "RunComparison") -> None:
    """The page of two runs side by side, as above."""
    settle_plot_cache()
    from longreach.report.html.compare_page import render_compare_html

    write_text_atomically(path, render_compare_html(comparison))


def write_tiers_page(path: Path, report: "TiersReport") -> None:
    """The page of a comparison of tiers, as above."""
    settle_plot_cache()
    from longreach.report.html.tiers_page import render_tiers_html

    write_text_atomically(path, render_tiers_html(report))


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
