from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from tests.measure.bench.results import failed, record, result

from longreach.errors import UsageError
from longreach.measure.bench.compare import compare_runs, judge_difference
from longreach.measure.bench.compare_values import MetricComparison, RunComparison, Verdict
from longreach.measure.bench.statistics import Estimate
from longreach.measure.bench.summary_values import Interval, Slo
from longreach.measure.bench.values import BenchResult, Load, PhaseSpec
from longreach.measure.verify_report import ServerState

COLD_AND_WARM = (PhaseSpec("cold", "cold"), PhaseSpec("warm", "warm"))


def _run(seed: int, size: int = 30, factor: float = 1.0, noise: float = 0.03, **header: Any) -> BenchResult:
    """Prompts of very different lengths, the same for every seed; the seed is the noise of the run."""
    lengths = np.random.default_rng(0).uniform(1, 50, size)
    noises = np.random.default_rng(seed).normal(1, noise, (size, 2))
    records, now = [], 0.0
    for index, (length, (first, second)) in enumerate(zip(lengths, noises, strict=True)):
        ttft_s, decode_s = float(length * factor * first), float(factor * second)
        took_s = ttft_s + decode_s
        records.append(
            record(index, ttft_s=ttft_s, itl_s=decode_s / 10, e2e_latency_s=took_s, sent_s=now),
        )
        now += took_s
    run = result(*records)
    return replace(run, header=replace(run.header, **header))


def _find(comparison: RunComparison, metric: str, figure: str | None = None) -> MetricComparison:
    return next(m for m in comparison.metrics if m.metric == metric and m.figure == figure)


@pytest.mark.parametrize(
    ("value", "interval", "verdict"),
    [
        (-0.2, (-0.3, -0.1), "better"),
        (-0.06, (-0.11, -0.01), "better"),
        (0.2, (0.1, 0.3), "worse"),
        (0.0, (-0.04, 0.04), "equal"),
        (0.04, (0.035, 0.045), "equal"),
        (0.04, (0.01, 0.07), "not_enough_data"),
        (0.2, (-0.01, 0.4), "not_enough_data"),
        (0.0, (-0.06, 0.04), "not_enough_data"),
        (0.2, None, "not_enough_data"),
    ],
)
def test_the_verdict_is_the_place_of_the_interval(value: float, interval: Interval | None, verdict: Verdict) -> None:
    assert judge_difference(Estimate(value, interval, 30), 0.05) == verdict
    turned = interval and (-interval[1], -interval[0])
    assert judge_difference(Estimate(-value, turned, 30), 0.05, more_is_better=True) == verdict


@pytest.mark.parametrize(
    ("factor", "verdict"), [(1.0, "equal"), (0.8, "better"), (1.2, "worse")], ids=["same", "faster", "slower"]
)
def test_pairs_tell_what_the_spread_of_lengths_would_hide(factor: float, verdict: Verdict) -> None:
    comparison = compare_runs(_run(1), _run(2, factor=factor))
    ttft = _find(comparison, "ttft_s", "mean")
    assert (ttft.verdict, ttft.paired, ttft.num_needed) == (verdict, True, None)
    assert ttft.interval is not None
    assert ttft.interval[0] < factor - 1 < ttft.interval[1]
    assert _find(comparison, "output_tokens_per_s").difference == pytest.approx(1 / factor - 1, abs=0.05)
    assert comparison.verdict == verdict


def test_other_prompts_are_not_paired_and_need_more_requests() -> None:
    comparison = compare_runs(_run(1), _run(2, factor=1.2, workload_digest="e" * 64), anyway=True)
    ttft = _find(comparison, "ttft_s", "mean")
    assert (ttft.verdict, ttft.paired) == ("not_enough_data", False)
    assert ttft.num_needed is not None
    assert 50 < ttft.num_needed < 1000
    assert [obstacle.field for obstacle in comparison.obstacles] == ["workload"]
    assert comparison.is_forced


def test_a_run_does_not_differ_from_its_repeat() -> None:
    """All intervals together hold with 95 %: of 40 repeats without a difference, hardly one may be told apart."""
    verdicts = [compare_runs(_run(seed, 12, noise=0.2), _run(100 + seed, 12, noise=0.2)).verdict for seed in range(40)]
    assert sum(verdict in ("better", "worse") for verdict in verdicts) <= 2


def test_few_requests_are_never_enough() -> None:
    comparison = compare_runs(_run(1, 4), _run(2, 4, factor=3))
    assert {metric.verdict for metric in comparison.metrics} == {"not_enough_data"}
    assert _find(comparison, "ttft_s", "mean").num_needed == 8
    assert _find(comparison, "ttft_s", "p50").num_needed == 10


def test_p99_is_compared_where_both_runs_carry_it() -> None:
    assert not any(metric.figure == "p99" for metric in compare_runs(_run(1), _run(2)).metrics)
    long = compare_runs(_run(1, 1100), _run(2, 1100))
    assert _find(long, "ttft_s", "p99").interval is not None


def test_an_open_loop_has_no_throughput_of_its_own() -> None:
    load = Load("poisson", None, 0.5)
    metrics = {metric.metric for metric in compare_runs(_run(1, load=load), _run(2, load=load)).metrics}
    assert metrics == {"ttft_s", "itl_s", "e2e_latency_s"}


def test_a_higher_concurrency_counts_in_the_throughput() -> None:
    one = _run(1)
    two = replace(one, records=tuple(replace(r, sent_s=r.sent_s / 2) for r in one.records))
    rate = _find(compare_runs(one, two), "output_tokens_per_s")
    assert rate.b == pytest.approx(2 * rate.a, rel=0.05)
    assert rate.interval == pytest.approx((rate.difference, rate.difference), abs=1e-6)  # the same requests
    assert rate.verdict == "better"


def test_failures_and_limits_are_compared_as_shares() -> None:
    records = _run(1, 60).records
    broken = result(*(failed(r.index) if r.index % 2 else r for r in records))
    comparison = compare_runs(result(*records), broken, slo=Slo(ttft_s=25.0))
    answered, goodput = _find(comparison, "success_rate"), _find(comparison, "goodput")
    assert (answered.a, answered.b, answered.difference, answered.verdict) == (1.0, 0.5, -0.5, "worse")
    assert goodput.a > goodput.b
    assert goodput.verdict == "worse"
    assert _find(comparison, "ttft_s", "mean").num_a == 30  # pairs that both answered


@pytest.mark.parametrize(
    ("header", "warning"),
    [
        ({"model": "other"}, "not the same model: tiny in A, other in B"),
        ({"num_requests": 40}, "B is not complete: 10 of 40 requests were not made"),
    ],
)
def test_what_should_agree_and_does_not_is_said(header: dict[str, Any], warning: str) -> None:
    warnings = compare_runs(_run(1), _run(2, **header)).warnings
    assert warning in warnings


def test_requests_in_another_state_than_claimed_are_said() -> None:
    run = _run(1)
    other = replace(run, records=(replace(run.records[0], proof="disproven"), *run.records[1:]))
    expected = "B: the cache was not in the state that was claimed for 1 of 30 requests"
    assert compare_runs(run, other).warnings == (expected,)


def test_a_run_is_not_compared_with_itself() -> None:
    with pytest.raises(UsageError, match="A and B are the same run"):
        compare_runs(_run(1), _run(1))


@pytest.mark.parametrize(
    ("header", "field", "in_a", "in_b"),
    [
        ({"workload_digest": "e" * 64}, "workload", "synthetic text (dddddddddddd)", "synthetic text (eeeeeeeeeeee)"),
        ({"load": Load("closed", 4)}, "load", "one at a time", "4 at once"),
        ({"load": Load("poisson", 1, 0.5)}, "load", "one at a time", "0.5 a second (poisson), at most 1 at once"),
        ({"phases": COLD_AND_WARM}, "cache states", "cold", "cold, warm"),
        ({"api": "completions"}, "API", "chat", "completions"),
    ],
)
def test_runs_of_other_work_or_load_have_no_verdict(header: dict[str, Any], field: str, in_a: str, in_b: str) -> None:
    a, b = _run(1), _run(2, factor=0.8, **header)
    comparison = compare_runs(a, b)
    assert [(o.field, o.a, o.b) for o in comparison.obstacles] == [(field, in_a, in_b)]
    assert comparison.verdict == "not_comparable"
    assert {metric.verdict for metric in comparison.metrics} == {None}
    forced = compare_runs(a, b, anyway=True)
    assert forced.verdict in ("better", "not_enough_data")
    assert forced.obstacles == comparison.obstacles


def test_answers_of_another_length_are_other_work() -> None:
    longer = _run(2)
    longer = replace(longer, records=tuple(replace(r, wanted_output_tokens=20 + r.index % 2) for r in longer.records))
    (obstacle,) = compare_runs(_run(1), longer).obstacles
    assert (obstacle.field, obstacle.a, obstacle.b) == (
        "output length",
        "11 tokens",
        "20 to 21 tokens, 20.5 on average",
    )
    cut = replace(longer, records=longer.records[:9])
    assert not compare_runs(longer, cut).obstacles


@pytest.mark.parametrize(
    "header",
    [
        {"model": "other"},
        {"base_url": "http://10.0.0.1:8000"},
        {"label": "after"},
        {"longreach_version": "9"},
        {"server": ServerState(version="0.31.0")},
    ],
    ids=lambda header: next(iter(header)),
)
def test_what_one_compares_is_no_obstacle(header: dict[str, Any]) -> None:
    assert compare_runs(_run(1), _run(2, factor=0.8, **header)).verdict == "better"


def test_one_better_figure_does_not_make_the_run_better() -> None:
    a = _run(1)
    b = replace(_run(2), records=tuple(replace(r, itl_s=0.08 * (1 + r.index % 3 / 100)) for r in _run(2).records))
    comparison = compare_runs(a, b)
    assert [m.metric for m in comparison.metrics if m.verdict == "better"] == ["itl_s"]
    assert comparison.verdict == "not_enough_data"
    assert [m.metric for m in comparison.lone_better] == ["itl_s"]
    assert compare_runs(b, a).verdict == "worse"


def test_answering_what_failed_before_is_better_by_itself() -> None:
    broken = result(*(failed(r.index) if r.index % 2 else r for r in _run(1).records))
    assert compare_runs(broken, _run(2)).verdict == "better"


def _drifting(seed: int, size: int = 40) -> BenchResult:
    """Neighbours share two thirds of their noise: a machine that is now slower, now faster."""
    noise, level = np.random.default_rng(seed).normal(0, 0.2, size + 20), 0.0
    run, factors = _run(0, size, noise=0.0), []
    for step in noise:
        level = 0.66 * level + 0.75 * float(step)
        factors.append(float(np.exp(level)))
    slowed = [
        replace(r, ttft_s=(r.ttft_s or 0) * f, itl_s=0.1 * f, e2e_latency_s=r.e2e_latency_s * f)
        for r, f in zip(run.records, factors[20:], strict=True)
    ]
    return result(*slowed)


def test_drift_within_a_run_widens_the_intervals() -> None:
    pairs = [(_drifting(seed), _drifting(1000 + seed)) for seed in range(40)]
    verdicts = [compare_runs(a, b).verdict for a, b in pairs]
    assert sum(verdict in ("better", "worse") for verdict in verdicts) <= 4


def test_answers_in_one_piece_are_warned_of_where_the_shares_differ() -> None:
    b = _run(2)
    whole = tuple(replace(r, itl_s=None, chunk_gap_max_s=0.0) if r.index < 7 else r for r in b.records)
    comparison = compare_runs(_run(1), replace(b, records=whole))
    assert any(w.startswith("answers that came in one piece: 0 of 30 in A, 7 of 30 in B") for w in comparison.warnings)
    assert _find(comparison, "itl_s", "mean").num_b == 23


def test_runs_without_a_common_figure_are_refused() -> None:
    with pytest.raises(UsageError) as caught:
        compare_runs(_run(1), result(record(state="warm")))
    assert caught.value.what == "the two runs have no figure in common"
    assert caught.value.why == "A answered 30 cold, B 1 warm"


def test_times_of_nothing_and_runs_of_nothing_are_no_figures() -> None:
    run = _run(1)
    instant = replace(run, records=tuple(replace(r, itl_s=0.0) for r in run.records))
    assert not any(metric.metric == "itl_s" for metric in compare_runs(run, instant).metrics)
    with pytest.raises(UsageError, match="no figure in common"):
        compare_runs(run, replace(run, records=()))


def test_tokens_that_one_server_does_not_count_make_no_throughput() -> None:
    a, b = _run(1), _run(2)
    uncounted = replace(a, records=tuple(replace(r, output_tokens=None) for r in a.records))
    assert not any(metric.metric == "output_tokens_per_s" for metric in compare_runs(uncounted, b).metrics)


def _failing_slow(run: BenchResult, num: int) -> BenchResult:
    """The same run, but that its slowest requests failed."""
    slowest = sorted(run.records, key=lambda r: -(r.ttft_s or 0))[:num]
    lost = {r.index: failed(r.index, sent_s=r.sent_s, e2e_latency_s=1.0) for r in slowest}
    return replace(run, records=tuple(lost.get(r.index, r) for r in run.records))


@pytest.mark.parametrize("digest", ["d" * 64, "e" * 64], ids=["same_workload", "another"])
def test_a_run_that_fails_its_slow_requests_is_not_called_faster(digest: str) -> None:
    a, b = _run(1), _failing_slow(_run(2, factor=0.8, workload_digest=digest), 3)
    for first, second, name in ((a, b, "B"), (b, a, "A")):
        comparison = compare_runs(first, second, 0.05, anyway=True)
        assert {m.verdict for m in comparison.metrics if m.unit == "s"} == {"not_enough_data"}
        assert comparison.verdict == "not_enough_data"
        assert any(w.startswith(f"{name} failed 3 of 30 requests") for w in comparison.warnings)
        assert all(m.num_needed is None for m in comparison.metrics if m.metric == "ttft_s" and m.paired)


def test_what_both_runs_failed_flatters_neither() -> None:
    a, b = (_failing_slow(_run(seed, factor=factor, noise=0.001), 3) for seed, factor in ((1, 1.0), (2, 0.8)))
    comparison = compare_runs(a, b)
    assert _find(comparison, "ttft_s", "mean").verdict == "better"
    assert not any("failed" in warning for warning in comparison.warnings)


def test_a_slower_run_is_worse_whatever_it_failed() -> None:
    comparison = compare_runs(_run(1), _failing_slow(_run(2, factor=1.3), 3))
    assert comparison.verdict == "worse"


def test_throughput_of_a_run_that_was_cut_short_is_not_compared() -> None:
    cut = _run(2)
    cut = replace(cut, records=cut.records[:20])
    comparison = compare_runs(_run(1), cut)
    assert not any(metric.metric == "output_tokens_per_s" for metric in comparison.metrics)
    assert any("B is not complete" in warning for warning in comparison.warnings)


def test_answers_that_are_shorter_are_said_to_be_less_work() -> None:
    b = _run(2)
    b = replace(b, records=tuple(replace(r, output_tokens=5) for r in b.records))
    assert "answers are of 11 tokens on average in A, of 5 in B: not the same work" in compare_runs(_run(1), b).warnings


def test_requests_that_took_no_time_have_no_rate() -> None:
    none = replace(_run(2), records=tuple(record(i, e2e_latency_s=0.0, sent_s=0.0) for i in range(30)))
    assert not any(metric.metric == "output_tokens_per_s" for metric in compare_runs(_run(1), none).metrics)


def test_a_run_that_answered_nothing_is_worse() -> None:
    dead = result(*(failed(index) for index in range(30)))
    comparison = compare_runs(_run(1), dead)
    assert [(m.metric, m.verdict) for m in comparison.metrics] == [("success_rate", "worse")]
    assert comparison.verdict == "worse"
