"""What two runs are that are compared, and what stands in the way of comparing them. Pure."""

from collections.abc import Callable
from typing import Literal

from longreach.measure.bench.compare_values import ComparedRun, Obstacle
from longreach.measure.bench.selection import describe_load, states_of
from longreach.measure.bench.values import BenchResult
from longreach.units import format_count

_Field = Literal["workload", "load", "output length", "cache states", "API"]


def describe_run(run: BenchResult) -> ComparedRun:
    """For people; another server, model or release is what one compares."""
    header = run.header
    states = ", then ".join(state.replace("_", " ") for state in states_of(run))
    requests = format_count(header.num_requests, "request")
    return ComparedRun(
        model=header.model,
        base_url=header.base_url,
        server_version=header.server.version,
        longreach_version=header.longreach_version,
        started_at=header.started_at,
        sent=f"{requests}, {states}; {describe_load(header.load)}; {header.workload_source}",
        num_ok=sum(record.ok for record in run.counted),
        num_wanted=run.num_wanted,
    )


_MUST_AGREE: tuple[tuple[_Field, Callable[[BenchResult], str]], ...] = (
    ("workload", lambda run: f"{run.header.workload_source} ({run.header.workload_digest[:12]})"),
    ("load", lambda run: describe_load(run.header.load)),
    ("cache states", lambda run: ", ".join(states_of(run))),
    ("API", lambda run: run.header.api),
)


def find_obstacles(a: BenchResult, b: BenchResult) -> tuple[Obstacle, ...]:
    """Everything that makes a difference of figures one of the work, not of the server."""
    rows: list[tuple[_Field, str, str]] = [(field, read(a), read(b)) for field, read in _MUST_AGREE]
    rows.append(("output length", *_output_lengths(a, b)))
    return tuple(Obstacle(field, of_a, of_b) for field, of_a, of_b in rows if of_a != of_b)


def _output_lengths(a: BenchResult, b: BenchResult) -> tuple[str, str]:
    """Of the requests that both made, if any: a run that was cut short asked for no other length by that."""
    of_a, of_b = ({(r.state, r.index): r.wanted_output_tokens for r in run.counted} for run in (a, b))
    both = [key for key in of_a if key in of_b]
    if [of_a[key] for key in both] == [of_b[key] for key in both]:
        return "", ""
    return _span([of_a[key] for key in both]), _span([of_b[key] for key in both])


def _span(lengths: list[int]) -> str:
    low, high = min(lengths), max(lengths)
    mean = sum(lengths) / len(lengths)
    return f"{low:,} tokens" if low == high else f"{low:,} to {high:,} tokens, {mean:,.1f} on average"
