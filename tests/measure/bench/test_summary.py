from dataclasses import replace
from typing import Any

import pytest
from tests.measure.bench.results import cold_run, failed, phase, record, result

from longreach.measure.bench.summary import summarise
from longreach.measure.bench.summary_values import Slo
from longreach.measure.bench.values import BenchResult, ServerSample


def test_times_are_of_answered_requests_and_rates_of_the_time_they_took() -> None:
    summary = summarise(result(record(0), record(1), record(2, ttft_s=5.0), failed(3)))
    assert (summary.num_ok, summary.num_failed, summary.num_wanted) == (3, 1, 4)
    assert summary.ttft_s is not None
    assert (summary.ttft_s.num_samples, summary.ttft_s.mean, summary.ttft_s.p50) == (3, 3.0, 2.0)
    assert summary.duration_s == pytest.approx(9.01)
    assert summary.output_tokens_per_s == pytest.approx(33 / 9.01)
    assert summary.prompt_tokens_per_s == pytest.approx(3000 / 9.01)
    assert summary.requests_per_s == pytest.approx(3 / 9.01)
    assert summary.errors == (("refused (HTTP 400): This model's maximum context length is 512 tokens.", 1),)


def test_what_nothing_was_measured_of_is_none() -> None:
    summary = summarise(result(failed(0), failed(1), lag_s=None))
    assert (summary.ttft_s, summary.itl_s, summary.e2e_latency_s) == (None, None, None)
    assert summary.output_tokens_per_s is None
    assert summary.client_loop_lag_p99_s == 0.002  # of the requests, where the run kept none
    empty = summarise(replace(result(failed(0)), records=()))
    assert (empty.num_ok, empty.num_failed, empty.num_wanted, empty.duration_s) == (0, 0, 1, 0)


def test_tokens_that_a_server_does_not_count_make_no_rate() -> None:
    summary = summarise(result(record(0), record(1, output_tokens=None)))
    assert summary.output_tokens_per_s is None
    assert summary.prompt_tokens_per_s == pytest.approx(2000 / 6)


def _three_states() -> BenchResult:
    states = ("cold", "warm", "flood", "evicted")
    records = [record(i, s, sent_s=100.0 * states.index(s) + 3 * i) for s in states for i in range(4)]  # type: ignore[arg-type]
    windows = {s: (100.0 * i - 1, 100.0 * i + 50) for i, s in enumerate(states)}
    hits = {
        "cold": (),
        "warm": (("device", 3968),),
        "flood": (("device", 7),),
        "evicted": (("host", 3000), ("disk", 968)),
    }
    phases = tuple(
        phase(state, began_s=windows[state][0], ended_s=windows[state][1], hits_by_source=hits[state])  # type: ignore[arg-type]
        for state in states
    )
    return result(*records, phases=phases)


def test_each_state_has_its_own_figures_and_the_flood_none() -> None:
    summary = summarise(_three_states())
    cold, warm, evicted = summary.states
    assert [state.state for state in summary.states] == ["cold", "warm", "evicted"]
    assert (cold.num_ok, cold.num_proven, cold.num_disproven) == (4, 4, 0)
    assert (cold.prompt_tokens, cold.cached_tokens, cold.hits_by_source) == (4000, 0, ())
    assert (warm.cached_tokens, warm.hits_by_source) == (3968, (("device", 3968),))
    assert evicted.hits_by_source == (("host", 3000), ("disk", 968))
    assert summary.num_ok == 12
    assert summary.duration_s == 36


def test_hits_of_a_phase_that_others_ran_in_are_those_of_the_requests() -> None:
    records = [record(index, "warm", hits_by_source=(("device", 900), ("host", 92))) for index in range(2)]
    crowded = phase("warm", 2, attributed=False, hits_by_source=(("device", 99_999),))
    assert summarise(result(*records, phases=(crowded,))).states[0].hits_by_source == (("device", 1800), ("host", 184))


def test_what_the_server_counted_is_summed_over_the_counted_phases() -> None:
    drafts: dict[str, Any] = {
        "num_drafts": 100,
        "num_draft_tokens": 300,
        "num_accepted_tokens": 150,
        "num_preemptions": 1,
    }
    run = result(
        record(),
        record(state="flood"),
        record(state="evicted"),
        phases=(phase(**drafts), phase("flood", **drafts), phase("evicted", queue_sum_s=0.4, **drafts)),
    )
    samples = (*run.samples, ServerSample(2, 1, 0, 0.75), ServerSample(3, None, None, None))
    summary = summarise(replace(run, samples=samples))
    assert (summary.acceptance_rate, summary.mean_acceptance_length) == (0.5, 2.5)
    assert summary.num_preemptions == 2
    assert summary.queue_mean_s == pytest.approx(0.48 / 8)
    assert summary.kv_cache_usage_max == 0.75


def test_without_metrics_nothing_is_said_of_the_server() -> None:
    summary = summarise(replace(cold_run(), phases=(), samples=()))
    assert summary.acceptance_rate is summary.mean_acceptance_length is summary.num_preemptions is None
    assert summary.kv_cache_usage_max is summary.queue_mean_s is None


def test_prompts_of_different_lengths_are_told_apart() -> None:
    pairs = [(1000, 1.0), (32_000, 20.0)] * 3
    run = result(*(record(i, prompt_tokens=n, ttft_s=t) for i, (n, t) in enumerate(pairs)))
    rows = [(row.low_tokens, row.high_tokens, row.ttft_s.num_samples, row.ttft_s.p50) for row in summarise(run).lengths]
    assert rows == [(1000, 1000, 3, 1.0), (32_000, 32_000, 3, 20.0)]
    assert summarise(cold_run()).lengths == ()


def test_many_lengths_are_grouped_by_powers_of_two() -> None:
    run = result(*(record(index, prompt_tokens=1000 + 100 * index) for index in range(20)))
    rows = [(row.low_tokens, row.high_tokens, row.ttft_s.num_samples) for row in summarise(run).lengths]
    assert rows == [(1000, 1000, 1), (1100, 2000, 10), (2100, 2900, 9)]


def test_goodput_is_there_when_limits_are() -> None:
    assert summarise(cold_run()).goodput is None
    goodput = summarise(cold_run(), Slo(ttft_s=1.0)).goodput
    assert goodput is not None
    assert (goodput.num_met, goodput.share) == (0, 0.0)
