"""matplotlib keeps its list of fonts in the project's own cache folder; a page is drawn once for all tests."""

import os
from pathlib import Path

import pytest
from tests.report.html import sample_runs, sample_tiers

from longreach.measure.bench.compare import compare_runs
from longreach.report.html.bench_page import render_bench_html
from longreach.report.html.compare_page import render_compare_html
from longreach.report.html.tiers_page import render_tiers_html

_ROOT = Path(__file__).parents[3]


@pytest.fixture(scope="session", autouse=True)
def _plot_cache() -> None:
    os.environ.setdefault("MPLCONFIGDIR", str(_ROOT / ".cache" / "matplotlib"))


@pytest.fixture(scope="session")
def page() -> str:
    """A run of all states with a failure."""
    result = sample_runs.run()
    return render_bench_html(result, sample_runs.summary(result))


@pytest.fixture(scope="session")
def plain_page() -> str:
    """A server that tells nothing, prompts of one length."""
    result = sample_runs.plain_run()
    return render_bench_html(result, sample_runs.summary(result))


@pytest.fixture(scope="session")
def large_page() -> str:
    """5,000 requests."""
    result = sample_runs.run(num_requests=1250)
    return render_bench_html(result, sample_runs.summary(result))


@pytest.fixture(scope="session")
def tiers_page() -> str:
    """Three variants, two verdicts, a run that failed."""
    return render_tiers_html(sample_tiers.report())


@pytest.fixture(scope="session")
def compare_page() -> str:
    """Two runs that differ by chance alone."""
    return render_compare_html(compare_runs(sample_runs.run(), sample_runs.run(seed=2)))
