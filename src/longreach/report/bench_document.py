"""What `bench --json` prints: every counted request, and the figures. Keys are those of the values, and stable."""

from dataclasses import asdict
from typing import Any

from longreach.measure.bench.summary_values import BenchSummary
from longreach.measure.bench.values import BenchResult


def bench_document(result: BenchResult, summary: BenchSummary) -> dict[str, Any]:
    """`{"schema", "header", "requests", "summary", "phases", "samples", "interrupted"}`; times in seconds.

    `requests` are those the figures are made from; what failed outside of them (in a flood, a pass that was repeated) is in
    the checks and in `summary.errors`. A distribution is an object with its intervals, or null when nothing was measured.
    """
    return {
        "schema": result.header.schema,
        "interrupted": result.interrupted,
        "header": asdict(result.header),
        "requests": [asdict(record) for record in result.counted],
        "summary": asdict(summary),
        "phases": [asdict(phase) for phase in result.phases],
        "samples": [asdict(sample) for sample in result.samples],
    }
