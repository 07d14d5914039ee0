from collections.abc import Callable
from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from longreach.forecast.decode import accepted_tokens, decode_rate
from longreach.forecast.values import SpeedRequest
from longreach.hardware.machine import machine_from

MakeRequest = Callable[..., SpeedRequest]


def test_the_bound_is_bandwidth_over_weights_and_cache(make_request: MakeRequest) -> None:
    request = make_request("qwen3-32b", "4xRTX4090", 32_768, weights="fp8", kv_cache_dtype="fp8_e4m3")
    active = request.model.parameters.active
    assert active is not None
    read = active / 4 + 32_768 * 131_072 / 4
    assert decode_rate(request).upper_bound == pytest.approx(1008e9 / read)


def test_drafts_multiply_the_bound_by_at_most_all_accepted(make_request: MakeRequest) -> None:
    plain = make_request("qwen3.6-27b", "4xRTX4090", 32_768)
    drafting = replace(plain, num_speculative_tokens=3, use_draft_layers=True)
    upper = decode_rate(plain).upper_bound
    assert upper is not None
    assert decode_rate(drafting).upper_bound == pytest.approx(4 * upper)


def test_mtp_is_worth_one_and_a_half_to_two_and_a_half_in_the_middle(make_request: MakeRequest) -> None:
    plain = decode_rate(make_request("qwen3.6-27b", "4xRTX4090", 1000))
    drafting = decode_rate(
        make_request("qwen3.6-27b", "4xRTX4090", 1000, num_speculative_tokens=3, use_draft_layers=True)
    )
    assert plain.low is not None
    assert plain.high is not None
    assert drafting.low is not None
    assert drafting.high is not None
    assert 1.5 < (drafting.low + drafting.high) / (plain.low + plain.high) < 2.5


@pytest.mark.parametrize("model", ["deepseek-v3", "glm-4.6"])
def test_one_draft_costs_one_pass_not_three(make_request: MakeRequest, model: str) -> None:
    """A fast box does not lose by a single draft, and the third draft brings less than the first."""
    rates = [
        decode_rate(make_request(model, "8xH200", 32_768, num_speculative_tokens=drafts, use_draft_layers=True))
        for drafts in range(4)
    ]
    middles = [(rate.low + rate.high) / 2 for rate in rates if rate.low is not None and rate.high is not None]
    assert len(middles) == 4
    assert middles[1] > middles[0]
    assert middles[3] - middles[2] < middles[1] - middles[0]


@pytest.mark.parametrize(
    ("rate", "drafts", "tokens"), [(0.0, 3, 1.0), (1.0, 3, 4.0), (0.5, 3, 1.875), (0.8, 0, 1.0), (0.8, 2, 2.44)]
)
def test_accepted_tokens_are_a_geometric_sum(rate: float, drafts: int, tokens: float) -> None:
    assert accepted_tokens(rate, drafts) == pytest.approx(tokens)


@settings(deadline=None, max_examples=40)  # the first example reads its model
@given(data=st.data())
def test_the_range_stays_under_the_bound_and_falls_with_context(make_request: MakeRequest, data: st.DataObject) -> None:
    model = data.draw(st.sampled_from(("qwen3.6-27b", "qwen3-32b", "deepseek-v3.2", "gpt-oss-120b")))
    gpus = data.draw(st.sampled_from(("4xRTX4090", "8xH200", "1xL40S", "8xMI300X")))
    drafts = data.draw(st.integers(0, 5))
    near, far = sorted(data.draw(st.lists(st.integers(1, 1_000_000), min_size=2, max_size=2)))
    early, late = (
        decode_rate(make_request(model, gpus, tokens, num_speculative_tokens=drafts, use_draft_layers=True))
        for tokens in (near, far)
    )
    for span in (early, late):
        assert span.low is not None
        assert span.high is not None
        assert 0 < span.low <= span.high <= (span.upper_bound or 0)
    assert (late.middle or 0) <= (early.middle or 0) * (1 + 1e-12)
    assert (late.upper_bound or 0) <= (early.upper_bound or 0) * (1 + 1e-12)


def test_stages_take_turns_and_tensor_parallelism_shares_the_bytes(make_request: MakeRequest) -> None:
    four = make_request("qwen3-32b", "4xRTX4090", 1000)
    alone, stages = replace(four, tp_size=1), replace(four, tp_size=1, pp_size=4)
    assert decode_rate(stages).upper_bound == decode_rate(alone).upper_bound
    assert decode_rate(four).upper_bound == pytest.approx(4 * (decode_rate(alone).upper_bound or 0))


def test_latency_keeps_host_staged_all_reduces_from_scaling(make_request: MakeRequest) -> None:
    staged = decode_rate(make_request("qwen3-4b", "4xRTX4090", 1000, link="pcie4x16"))
    direct = decode_rate(make_request("qwen3-4b", "4xRTX4090", 1000, link="pcie4x16-p2p"))
    assert staged.high is not None
    assert direct.high is not None
    assert staged.high < direct.high
    assert staged.upper_bound == direct.upper_bound


def test_ngram_drafts_may_all_be_refused(make_request: MakeRequest) -> None:
    plain = decode_rate(make_request("qwen3-32b", "4xRTX4090", 1000))
    lookup = decode_rate(make_request("qwen3-32b", "4xRTX4090", 1000, num_speculative_tokens=5))
    assert lookup.low is not None
    assert lookup.high is not None
    assert plain.low is not None
    assert plain.high is not None
    assert lookup.low < plain.high < lookup.high


def test_an_unknown_link_leaves_the_bound(make_request: MakeRequest) -> None:
    span = decode_rate(make_request("qwen3-4b", "2xGB10", 1000))
    assert span.low is None
    assert span.upper_bound is not None
    assert "link" in span.reason


def test_a_cpu_machine_has_no_forecast(make_request: MakeRequest) -> None:
    request = replace(make_request("qwen3-4b", "1xL4", 1000), machine=machine_from(None, 0))
    assert decode_rate(request).certainty == "unknown"
