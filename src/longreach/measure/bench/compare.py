"""Is run B better, equal or worse than run A, or can it not be told? Pure.

A difference is B's figure / A's - 1 (of shares: B's - A's). With the margin m:

    better, worse      the whole interval lies on that side of zero, and the difference is larger than m
    equal              the whole interval lies within -m..m
    not enough data    else, with the number of requests that would do

A run that failed requests which the other answered is not called faster: its times leave them out, and the slow ones fail
first. Better or worse is not enough data then, when it speaks for that run.

All intervals together hold with 95 %: the more figures there are, the surer is each (Bonferroni). Each is widened for drift
within the runs. Runs that did not do the same work under the same load have no verdict but "not comparable".
"""

from collections.abc import Callable, Iterator
from dataclasses import replace
from statistics import mean

from longreach.errors import UsageError
from longreach.measure.bench.compare_samples import Failed, Sample, common_samples, count_failed
from longreach.measure.bench.compare_values import MetricComparison, RunComparison, Verdict
from longreach.measure.bench.compared_runs import describe_run, find_obstacles
from longreach.measure.bench.selection import answered, came_in_one_piece, known, states_of
from longreach.measure.bench.statistics import LEVEL, Estimate, samples_for, samples_that_would_do
from longreach.measure.bench.summary_values import Slo
from longreach.measure.bench.values import BenchResult, RequestRecord

DEFAULT_MARGIN = 0.05
_ABOUT_AS_LONG = 0.01


def compare_runs(
    a: BenchResult, b: BenchResult, margin: float = DEFAULT_MARGIN, slo: Slo | None = None, *, anyway: bool = False
) -> RunComparison:
    """Figure by figure. UsageError when the two have none in common, or are one; a run that answered nothing has its
    failures. Runs that are not comparable have figures without verdicts, unless `anyway`.
    """
    if a == b:
        why = f"both began {a.header.started_at} and hold the same requests"
        raise UsageError(
            "A and B are the same run", why, "measure again with the same --seed, and compare the two files"
        )
    samples = common_samples(a, b, slo)
    if not samples or not set(states_of(a)) & set(states_of(b)):
        raise UsageError(
            "the two runs have no figure in common",
            f"A answered {_answered(a)}, B {_answered(b)}",
            "longreach bench report FILE.jsonl says what each did; measure both with the same --states",
        )
    level = 1 - (1 - LEVEL) / len(samples)
    obstacles = find_obstacles(a, b)
    metrics = [_compare(sample, margin, level) for sample in samples]
    if obstacles and not anyway:
        metrics = [replace(metric, verdict=None, num_needed=None) for metric in metrics]
    return RunComparison(
        label_a=a.header.label or "A",
        label_b=b.header.label or "B",
        margin=margin,
        level=level,
        metrics=tuple(metrics),
        warnings=tuple(_warnings(a, b)),
        obstacles=obstacles,
        is_forced=anyway and bool(obstacles),
        run_a=describe_run(a),
        run_b=describe_run(b),
    )


def _answered(result: BenchResult) -> str:
    counts = {state: sum(r.ok and r.state == state for r in result.counted) for state in states_of(result)}
    return " and ".join(f"{count} {state.replace('_', ' ')}" for state, count in counts.items()) or "nothing"


def _compare(sample: Sample, margin: float, level: float) -> MetricComparison:
    found = sample.estimate(level)
    verdict = judge_difference(found, margin, more_is_better=sample.more_is_better)
    is_open = verdict == "not_enough_data"
    failed = sample.failed or Failed(0, 0)
    if {"better": failed.by_b, "worse": failed.by_a}.get(verdict):
        verdict = "not_enough_data"
    least = samples_for(sample.figure or "mean", level)
    return MetricComparison(
        metric=sample.metric,
        state=sample.state,
        figure=sample.figure,
        unit=sample.unit,
        a=sample.a,
        b=sample.b,
        difference=found.value,
        interval=found.interval,
        verdict=verdict,
        num_a=sample.num_a,
        num_b=sample.num_b,
        paired=sample.paired,
        num_needed=_num_needed(found, margin, least) if is_open else None,
        num_failed_a=failed.by_a,
        num_failed_b=failed.by_b,
    )


def judge_difference(found: Estimate, margin: float, *, more_is_better: bool = False) -> Verdict:
    """The rule of this module. A difference that is sure but small is neither: it may be one that the margin excuses."""
    if found.interval is None:
        return "not_enough_data"
    low, high = found.interval
    if -margin <= low and high <= margin:
        return "equal"
    if (low > 0 or high < 0) and abs(found.value) > margin:
        return "better" if (found.value > 0) == more_is_better else "worse"
    return "not_enough_data"


def _num_needed(found: Estimate, margin: float, least: int) -> int | None:
    """Requests at which the interval would decide, if the difference stayed what it is and the spread too."""
    if found.interval is None:
        return least
    size, half = abs(found.value), (found.interval[1] - found.interval[0]) / 2
    needed = samples_that_would_do(found.num_samples, half, size if size > margin else margin - size)
    return None if needed is None else max(needed, found.num_samples + 1)


def _warnings(a: BenchResult, b: BenchResult) -> Iterator[str]:
    """What a reader must know before trusting a verdict."""
    if a.header.model != b.header.model:
        yield f"not the same model: {a.header.model} in A, {b.header.model} in B"
    yield from _other_work(a, b)
    yield from _other_streaming(a, b)
    failed = count_failed(a, b)
    for name, other, run, num_failed in (("A", "B", a, failed.by_a), ("B", "A", b, failed.by_b)):
        missing = run.num_wanted - len(run.counted)
        if missing > 0:
            yield f"{name} is not complete: {missing} of {run.num_wanted} requests were not made"
        if num_failed:
            yield (
                f"{name} failed {num_failed} of {len(run.counted)} requests{_where(a, b, other)}: its times leave them out, "
                "so it is not called the faster one"
            )
        num_disproven = sum(record.proof == "disproven" for record in run.counted)
        if num_disproven:
            yield f"{name}: the cache was not in the state that was claimed for {num_disproven} of {len(run.counted)} requests"


def _other_streaming(a: BenchResult, b: BenchResult) -> Iterator[str]:
    """An answer in one piece has a time to first token that is an upper bound, and no time between tokens."""
    (whole_a, num_a), (whole_b, num_b) = (
        (sum(map(came_in_one_piece, answered(run))), len(answered(run))) for run in (a, b)
    )
    if whole_a * num_b != whole_b * num_a:
        yield (
            f"answers that came in one piece: {whole_a} of {num_a} in A, {whole_b} of {num_b} in B; their first token came "
            "earlier than TTFT says, and they are in no ITL"
        )


def _where(a: BenchResult, b: BenchResult, other: str) -> str:
    return f" that {other} did not" if a.header.workload_digest == b.header.workload_digest else ""


def _other_work(a: BenchResult, b: BenchResult) -> Iterator[str]:
    """Tokens of what was answered: who generates less is sooner done."""
    reads: tuple[tuple[str, Callable[[RequestRecord], int | None]], ...] = (
        ("prompts", lambda record: record.prompt_tokens),
        ("answers", lambda record: record.output_tokens),
    )
    for what, read in reads:
        of_a, of_b = (known(map(read, answered(run))) for run in (a, b))
        if of_a and of_b and abs(mean(of_b) - mean(of_a)) > _ABOUT_AS_LONG * mean(of_a):
            yield f"{what} are of {mean(of_a):,.0f} tokens on average in A, of {mean(of_b):,.0f} in B: not the same work"
