"""The part of docs/accuracy.md about speed."""

from collections.abc import Callable, Sequence
from statistics import median
from typing import Any

from tests.accuracy.measurements import (
    Row,
    counted,
    decode_rows,
    leave_one_source_out,
    median_error,
    over_unknown_links,
    prefill_rows,
)

_INTRODUCTION = """## Speed

`forecast` against the published measurements of `tests/corpus/perf`. A row counts when it is one request alone on vLLM and the
publisher says how the GPUs are joined. Rows with several requests at once measure waiting too, and one is not vLLM: they test the
bound alone. Where the link is unknown the forecast also says what the figure would be without and with P2P. `*` marks rows that do
not count.

### First token
"""

_DECODE = """
### Decode

The same rule; a card that its publisher suspects to be shared or capped does not count. With MTP no acceptance is published, so the
range spans 0.5 to 0.85 a position and the cost of drafting on a desktop and on an old server CPU.
"""


def section() -> str:
    """Markdown, from the heading on."""
    prefill, decoded = prefill_rows(), decode_rows()
    lines = [_INTRODUCTION, *_prefill_words(prefill), "", *_table(prefill, _seconds)]
    return "\n".join([*lines, _DECODE, *_decode_words(decoded), "", *_table(decoded, _rate)]) + "\n"


def _prefill_words(rows: Sequence[Row]) -> list[str]:
    sure, unknown, held = counted(rows), over_unknown_links(rows), leave_one_source_out()
    either = sum(row.inside or row.inside_a_case for row in unknown)
    nearest = min(row.measured / row.span.lower_bound for row in rows if row.span.lower_bound)
    width = median(row.width for row in sure)
    errors = [abs(error) for left in held for error in left.errors]
    return [
        f"- {_inside(sure)} fall into the range, whose ends differ by a factor of {width:.1f} in the median.",
        f"- The middle of the range is off by {median_error(sure):.0%} in the median.",
        f"- Over an unknown link {_inside(unknown)} fall into the range, {either} into it or into that of one case.",
        f"- None of {len(rows)} beats its bound; the nearest takes {nearest:.2f} times it.",
        "- The shares and link rates were read off these rows. With each source left out in turn, and compute and link time",
        f"  scaled to the rest, {len(held)} sources are met within {median(errors):.0%} in the median, {max(errors):.0%} at most.",
    ]


def _decode_words(rows: Sequence[Row]) -> list[str]:
    sure = counted(rows)
    drafting = [row for row in sure if row.case["num_speculative_tokens"]]
    plain = [row for row in sure if row not in drafting]
    apart = f"{median_error(plain):.0%} without drafts and {median_error(drafting):.0%} with them"
    return [
        f"- {_inside(sure)} fall into the range. Its middle is off by {median_error(sure):.0%} in the median, {apart}.",
        f"- None of {len(rows)} beats its bound.",
    ]


def _inside(rows: Sequence[Row]) -> str:
    return f"{sum(row.inside for row in rows)} of {len(rows)}"


def _table(rows: Sequence[Row], show: Callable[[float], str]) -> list[str]:
    heads = ["measured on", "prompt", "measured", "bound", "range", "middle", "inside"]
    return [_line(heads), _line(["---"] * len(heads)), *(_line(_cells(row, show)) for row in rows)]


def _cells(row: Row, show: Callable[[float], str]) -> list[str]:
    span, case = row.span, row.case
    assert span.low is not None
    assert span.high is not None
    bound = span.lower_bound if span.lower_bound is not None else span.upper_bound
    assert bound is not None
    inside = "yes" if row.inside else "in one case" if row.inside_a_case else "no"
    return [
        _name(case) + ("" if counted([row]) else " *"),
        f"{case.get('prompt_tokens', case.get('decode_context_tokens')):,}",
        show(row.measured),
        show(bound),
        f"{show(span.low)} to {show(span.high)}",
        f"{row.error:+.0%}",
        inside,
    ]


def _name(case: dict[str, Any]) -> str:
    link = f", {case['link']}" if case["tp_size"] > 1 and "link" in case else ""
    drafts = f", MTP {case['num_speculative_tokens']}" if case["num_speculative_tokens"] else ""
    together = f", {case['concurrency']} at once" if case["concurrency"] > 1 else ""
    weights = "16 bit" if case["weights"] == "none" else case["weights"]
    gpu = case["gpu"].removeprefix("GeForce ")
    return f"{case['tp_size']} x {gpu}{link}: {case['model']} {weights}{drafts}{together}"


def _line(cells: Sequence[str]) -> str:
    return f"| {' | '.join(cells)} |"


def _seconds(value: float) -> str:
    return f"{value:.0f} s" if value >= 100 else f"{value:.3g} s"


def _rate(value: float) -> str:
    return f"{value:,.0f}/s" if value >= 100 else f"{value:.3g}/s"
