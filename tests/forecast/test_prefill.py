from collections.abc import Callable
from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from longreach.forecast.prefill import prefill_times, ttft_cold, ttft_lower_bound, ttft_warm
from longreach.forecast.setting import Setting, resolve
from longreach.forecast.values import Span, SpeedRequest, combined
from longreach.hardware.catalogue import parse_gpus
from longreach.hardware.machine import machine_from

MakeRequest = Callable[..., SpeedRequest]

MODELS = ("qwen3.6-27b", "qwen3-32b", "gpt-oss-120b", "deepseek-v3", "gemma-3-27b")
BOXES = ("4xRTX4090", "2xRTX5090", "8xH100 SXM5", "4xA6000", "8xMI300X", "1xL40S")


def ends(span: Span) -> tuple[float, float, float]:
    assert span.lower_bound is not None
    assert span.low is not None
    assert span.high is not None
    return span.lower_bound, span.low, span.high


def resolved(request: SpeedRequest) -> Setting:
    setting = resolve(request)
    assert isinstance(setting, Setting)
    return setting


def test_750k_tokens_on_four_4090s_take_at_least_215_seconds(make_request: MakeRequest) -> None:
    request = make_request("qwen3.6-27b", "4xRTX4090", 750_000, kv_cache_dtype="fp8_e4m3")
    bound, low, high = ends(ttft_cold(request))
    assert bound == pytest.approx(215, rel=0.01)
    assert 8 * 60 < low < 10 * 60
    assert 13 * 60 < high < 15 * 60


def test_parts_that_err_independently_leave_the_middle_and_narrow_the_range() -> None:
    assert combined([(1.0, 3.0), (4.0, 10.0)]) == pytest.approx((9 - 10**0.5, 9 + 10**0.5))
    assert combined([(2.0, 2.0), (4.0, 6.0)]) == pytest.approx((6.0, 8.0))


def test_fp8_weights_lower_the_bound_on_a_card_that_multiplies_fp8_only(make_request: MakeRequest) -> None:
    def bound(gpus: str, weights: str) -> float:
        request = make_request("qwen3.6-27b", gpus, 750_000, weights=weights)
        return ends(ttft_cold(request))[0]

    assert bound("4xRTX4090", "fp8") < 0.9 * bound("4xRTX4090", "w4a16")
    assert bound("4xRTX3090", "fp8") == bound("4xRTX3090", "w4a16")


@settings(deadline=None, max_examples=40)  # the first example reads its model
@given(data=st.data())
def test_bound_low_and_high_keep_their_order_and_grow_with_the_prompt(
    make_request: MakeRequest, data: st.DataObject
) -> None:
    model, gpus = data.draw(st.sampled_from(MODELS)), data.draw(st.sampled_from(BOXES))
    drafts = data.draw(st.booleans())
    shorter, longer = sorted(data.draw(st.lists(st.integers(1, 1_000_000), min_size=2, max_size=2)))
    spans = [
        ends(ttft_cold(make_request(model, gpus, tokens, use_draft_layers=drafts))) for tokens in (shorter, longer)
    ]
    assert all(0 < bound <= low <= high for bound, low, high in spans)
    assert all(less <= more * (1 + 1e-12) for less, more in zip(*spans, strict=True))


@settings(deadline=None, max_examples=40)  # the first example reads its model
@given(data=st.data())
def test_more_gpus_never_raise_the_bound(make_request: MakeRequest, data: st.DataObject) -> None:
    model, gpu = (
        data.draw(st.sampled_from(MODELS)),
        data.draw(st.sampled_from(("RTX4090", "RTX5090", "A6000", "H100 SXM5"))),
    )
    tokens = data.draw(st.integers(1, 1_000_000))
    fewer, more = sorted(data.draw(st.lists(st.integers(1, 8), min_size=2, max_size=2)))
    link = None if gpu.startswith("H100") else "pcie4x16"
    few, many = (ttft_cold(make_request(model, f"{count}x{gpu}", tokens, link=link)) for count in (fewer, more))
    assert ends(many)[0] <= ends(few)[0] * (1 + 1e-12)


@pytest.mark.parametrize(("slow", "fast"), [("pcie3x8", "pcie4x16"), ("pcie4x16", "pcie4x16-p2p")])
def test_a_faster_link_never_slows_the_first_token(make_request: MakeRequest, slow: str, fast: str) -> None:
    slower, faster = (
        ends(ttft_cold(make_request("qwen3.6-27b", "4xRTX4090", 90_000, link=link))) for link in (slow, fast)
    )
    assert faster < slower


@pytest.mark.parametrize(
    ("gpus", "link", "tokens", "limit"),
    [
        ("4xRTX4090", "pcie4x16", 100_000, "compute"),
        ("4xRTX4090", "pcie3x8", 8192, "link"),
        ("4xRTX4090", "pcie4x16", 10, "weights"),
    ],
)
def test_what_sets_the_bound_is_known(make_request: MakeRequest, gpus: str, link: str, tokens: int, limit: str) -> None:
    bound = ttft_lower_bound(resolved(make_request("qwen3.6-27b", gpus, tokens, link=link)))
    assert bound is not None
    assert bound.limit == limit


def test_a_link_slower_than_one_cards_compute_bounds_at_that_card_alone(make_request: MakeRequest) -> None:
    pair = ttft_lower_bound(resolved(make_request("qwen3-30b-a3b", "2xRTX5090", 8192, link="pcie3x4")))
    alone = ttft_lower_bound(resolved(make_request("qwen3-30b-a3b", "1xRTX5090", 8192)))
    assert pair == alone


def test_a_short_prompt_still_reads_every_weight(make_request: MakeRequest) -> None:
    request = make_request("qwen3-32b", "1xH200", 1)
    assert ends(ttft_cold(request))[0] == pytest.approx(2 * 31.2e9 / 4.8e12, rel=0.01)


def test_mtp_prefills_its_own_layer_and_leaves_the_bound(make_request: MakeRequest) -> None:
    plain = make_request("qwen3.6-27b", "1xH200", 262_144)
    drafting = replace(plain, use_draft_layers=True, num_speculative_tokens=3)
    assert ends(ttft_cold(plain))[0] == ends(ttft_cold(drafting))[0]
    assert 1.02 < ends(ttft_cold(drafting))[1] / ends(ttft_cold(plain))[1] < 1.07


def test_pipeline_stages_overlap_at_best_and_take_turns_at_worst(make_request: MakeRequest) -> None:
    tensor = make_request("qwen3-32b", "2xH200", 100_000)
    pipeline = replace(tensor, tp_size=1, pp_size=2)
    staged, whole = prefill_times(resolved(pipeline)), prefill_times(resolved(tensor))
    assert staged is not None
    assert whole is not None
    (fast, slow), (whole_fast, whole_slow) = staged, whole
    chunks = resolved(pipeline).work.num_prefill_chunks
    assert fast.compute_s == pytest.approx(whole_fast.compute_s * (chunks + 1) / chunks)
    assert slow.compute_s == pytest.approx(whole_slow.compute_s * 2)
    assert fast.link_s == 0


def test_a_warm_prompt_is_far_faster_than_a_cold_one(make_request: MakeRequest) -> None:
    request = make_request("qwen3.6-27b", "4xRTX4090", 262_144, block_size=1600)
    bound, low, high = ends(ttft_warm(request))
    assert 0 < bound <= low <= high < ends(ttft_cold(request))[1] / 10


def test_a_larger_block_recomputes_more_of_a_warm_prompt(make_request: MakeRequest) -> None:
    small, large = (make_request("qwen3.6-27b", "4xRTX4090", 262_144, block_size=size) for size in (16, 1600))
    assert ends(ttft_warm(small))[2] < ends(ttft_warm(large))[2]
    assert ends(ttft_warm(small))[1] == ends(ttft_warm(large))[1]


@pytest.mark.parametrize("forecast", [ttft_cold, ttft_warm])
def test_without_a_gpu_the_reason_is_given(make_request: MakeRequest, forecast: object) -> None:
    request = replace(make_request("qwen3-4b", "1xL4", 1000), machine=machine_from(None, 0))
    assert callable(forecast)
    span = forecast(request)
    assert (span.low, span.high, span.lower_bound, span.certainty) == (None, None, None, "unknown")
    assert span.reason == "speed on a CPU is not forecast"


def test_a_gpu_without_figures_is_told_from_a_cpu(make_request: MakeRequest) -> None:
    request = make_request("qwen3-4b", "1xL4", 1000)
    unlisted = replace(request, machine=replace(request.machine, gpu=None))
    assert "not in the catalogue" in ttft_cold(unlisted).reason


def test_an_unknown_link_leaves_the_bound_and_says_why(make_request: MakeRequest) -> None:
    request = make_request("qwen3-4b", "2xJetson Orin", 1000)
    cold, warm = ttft_cold(request), ttft_warm(request)
    assert cold.lower_bound is not None
    assert warm.lower_bound is not None
    assert cold.low is warm.low is None
    assert "link between several" in cold.reason


def test_a_card_without_matrix_rates_says_so(make_request: MakeRequest) -> None:
    request = make_request("qwen3-4b", "1xRTX PRO 4000", 1000)
    assert ttft_cold(request) == Span(
        None, None, certainty="unknown", reason="no matrix rate of RTX PRO 4000 Blackwell is known"
    )
    assert prefill_times(resolved(request)) is None


def test_a_card_with_a_measured_rate_and_no_peak_has_a_range_alone(make_request: MakeRequest) -> None:
    span = ttft_cold(make_request("qwen3-4b", "1xJetson AGX Thor", 1000))
    assert span.lower_bound is None
    assert span.low is not None


def test_unknown_active_parameters_are_a_reason(make_request: MakeRequest) -> None:
    request = make_request("qwen3-4b", "1xL4", 1000)
    parameters = replace(request.model.parameters, active=None)
    span = ttft_cold(replace(request, model=replace(request.model, parameters=parameters)))
    assert "how many parameters" in span.reason


def test_a_bridged_pair_of_four_uses_its_bridge(make_request: MakeRequest) -> None:
    four = make_request("qwen3.6-27b", "4xRTX3090", 90_000, link="nvlink-bridge")
    pair = resolved(replace(four, tp_size=2))
    assert pair.link is not None
    assert pair.link.name == "nvlink-bridge"
    link = resolved(four).link
    assert link is not None
    assert link.name == "pcie4x16"
    assert resolved(replace(four, tp_size=1)).link is None


def test_a_checkpoints_own_kv_scheme_replaces_auto(make_request: MakeRequest) -> None:
    request = make_request("qwen3-4b", "1xL4", 1000)
    forced = replace(request, model=replace(request.model, kv_cache_dtype_forced="fp8_e4m3"))
    assert (resolved(request).kv_cache_dtype, resolved(forced).kv_cache_dtype) == ("auto", "fp8_e4m3")
    assert parse_gpus("1xL4").gpu == resolved(request).gpu
