"""ITL: the mean of each request by the server's token count, and the slowest gaps between chunks."""

from collections.abc import Callable

from longreach.measure.bench.selection import came_in_one_piece, itl_s
from longreach.measure.bench.summary_values import BenchSummary
from longreach.measure.bench.values import BenchResult, RequestRecord
from longreach.report.bench_tables import STATE_WORDS
from longreach.report.html.colours import STATES
from longreach.report.html.plots.rows import Row, plot_rows
from longreach.report.html.plots.values import NoPlot, Plot, by_state

_TITLE = "ITL distribution"


def plot_itl(result: BenchResult, summary: BenchSummary) -> Plot | NoPlot:
    """A row for each cache state, and one for the gaps."""
    good = [record for record in result.counted if record.ok]
    figures = {state.state: state.itl_s for state in summary.states}
    rows = [
        Row(STATES[state], f"ITL, {STATE_WORDS[state]}", values, figures.get(state))
        for state, records in by_state(good).items()
        if (values := _values(records, itl_s))
    ]
    if not rows:
        return NoPlot(_TITLE, "no request brought two tokens whose number the server told")
    gaps = _values(good, lambda record: None if came_in_one_piece(record) else record.chunk_gap_p99_s)
    if gaps:
        rows.append(Row(STATES["flood"], "chunk gap, P99", gaps, summary.chunk_gap_p99_s))
    limit_s = summary.goodput.slo.itl_s if summary.goodput else None
    opening = "Mean time between the tokens of each request, by the server's count; a chunk may carry several tokens."
    return plot_rows("itl", _TITLE, opening, rows, limit_s)


def _values(records: list[RequestRecord], figure: Callable[[RequestRecord], float | None]) -> list[float]:
    return [value for record in records if (value := figure(record)) is not None]
