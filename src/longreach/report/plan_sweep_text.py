"""A sweep as a table on the terminal, and as cells of a CSV file."""

from collections.abc import Sequence

from longreach.plan.sweep import SweepRow
from longreach.report.spans import rate_range, time_range
from longreach.report.style import Paint, table
from longreach.units import format_tokens

CSV_COLUMNS = (
    "verdict",
    "max_model_len_tokens",
    "kv_capacity_tokens",
    "concurrency",
    "ttft_low_s",
    "ttft_high_s",
    "decode_low_tokens_per_s",
    "decode_high_tokens_per_s",
    "num_gpus",
    "pareto",
    "reason",
)

_VERDICTS = {"fits": "fits", "does_not_fit": "no", "unknown": "unknown", "impossible": "impossible"}


def render_sweep(names: Sequence[str], rows: Sequence[SweepRow], paint: Paint) -> str:
    """One line for each combination; `*` marks the Pareto front."""
    header = ("", *names, "fit", "KV tokens", "at once", "first token, cold", "decode tokens/s", "")
    numbers = frozenset(range(len(names) + 2, len(names) + 6))
    head, *lines = table([header, *(_cells(names, row) for row in rows)], numbers, indent="")
    return "\n".join([paint(head, "bold"), *lines, "", _legend(rows)])


def _legend(rows: Sequence[SweepRow]) -> str:
    fitting, front = sum(row.verdict == "fits" for row in rows), sum(row.pareto for row in rows)
    if not fitting:
        return f"none of {len(rows)} combinations fits"
    return (
        f"{fitting} of {len(rows)} combinations fit; no other beats the {front} marked * in length, requests of the mean prompt"
        " at once, first token, decode and GPUs (middle of each range)"
    )


def _cells(names: Sequence[str], row: SweepRow) -> tuple[str, ...]:
    at_once = "" if row.concurrency is None else f"{row.concurrency:,.1f}"
    fits = row.verdict == "fits"
    return (
        "*" if row.pareto else "",
        *(row.settings[name] for name in names),
        _VERDICTS[row.verdict],
        "" if row.kv_capacity_tokens is None else format_tokens(row.kv_capacity_tokens),
        at_once,
        time_range(row.ttft_cold_s) if fits else "",
        rate_range(row.decode_tokens_per_s) if fits else "",
        row.reason,
    )


def csv_cells(row: SweepRow) -> tuple[object, ...]:
    """In the order of CSV_COLUMNS; empty where nothing is known."""
    ttft, decode = row.ttft_cold_s, row.decode_tokens_per_s
    values = (
        row.verdict,
        row.max_model_len,
        row.kv_capacity_tokens,
        row.concurrency,
        *((span.low, span.high) if (span := ttft) else (None, None)),
        *((span.low, span.high) if (span := decode) else (None, None)),
        row.num_gpus,
        row.pareto,
        row.reason,
    )
    return tuple("" if value is None else value for value in values)
