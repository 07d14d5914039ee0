from collections.abc import Callable
from dataclasses import replace

import pytest

from longreach.forecast.speed import forecast_speed
from longreach.forecast.values import SpeedRequest
from longreach.hardware.machine import machine_from

MakeRequest = Callable[..., SpeedRequest]

WORKED_EXAMPLE = """\
cold prefill of 750,000 tokens: 147 PFLOP = 36.8 PFLOP linear + 111 PFLOP attention, in 92 chunks of 8,192
bound: 4 GPUs x 173 TFLOPS at best (the best bf16 matmul ever measured) -> 3 min 33 s
expected compute: linear layers at 113 TFLOPS to 159 TFLOPS a GPU, attention at 84.2 TFLOPS to 135 TFLOPS, \
MTP layers included -> 4 min 36 s to 7 min 11 s
expected link: 1.47 TB per GPU over pcie4x16 at 3 GB/s to 6.5 GB/s (measured: vLLM prefill on 2 and 4 RTX 3090, \
3.5 to 4.2, and better host paths) -> 3 min 47 s to 8 min 12 s
each decode step reads 12.2 GB of weights and 6.14 GB of cache per GPU at 1.01 TB/s -> at most 55 steps/s, \
x4 if every draft token is accepted
this prompt's cache is 24.7 GB over all GPUs; that is what a tier reloads"""


def test_the_worked_example_shows_its_arithmetic(make_request: MakeRequest) -> None:
    request = make_request(
        "qwen3.6-27b",
        "4xRTX4090",
        750_000,
        kv_cache_dtype="fp8_e4m3",
        num_speculative_tokens=3,
        use_draft_layers=True,
        cpu_tier=True,
    )
    forecast = forecast_speed(request)
    assert forecast.num_prefill_chunks == forecast.work.num_prefill_chunks == 92
    assert "\n".join(forecast.arithmetic) == WORKED_EXAMPLE


def test_tiers_appear_only_when_asked_for(make_request: MakeRequest) -> None:
    plain = forecast_speed(make_request("qwen3-32b", "4xRTX4090", 100_000))
    assert (plain.ttft_from_cpu_s, plain.ttft_from_disk_s) == (None, None)
    both = forecast_speed(make_request("qwen3-32b", "4xRTX4090", 100_000, cpu_tier=True, disk_tier=True))
    assert both.ttft_from_cpu_s is not None
    assert both.ttft_from_disk_s is not None


def test_a_prefix_on_a_tier_costs_its_reload_before_the_warm_prompt(make_request: MakeRequest) -> None:
    forecast = forecast_speed(make_request("qwen3-32b", "4xRTX4090", 100_000, cpu_tier=True, disk_tier=True))
    warm, cpu, disk, cold = (
        forecast.ttft_warm_s,
        forecast.ttft_from_cpu_s,
        forecast.ttft_from_disk_s,
        forecast.ttft_cold_s,
    )
    assert cpu is not None
    assert disk is not None
    assert (warm.low or 0) < (cpu.low or 0) <= (disk.low or 0) < (cold.low or 0)


@pytest.mark.parametrize(
    ("model", "gpus", "phrase"),
    [
        (
            "qwen3-32b",
            "1xH100 SXM5",
            "bound: 1 GPU x 989 TFLOPS at best (the nominal peak, which no measurement exceeds)",
        ),
        ("qwen3-4b", "2xRTX PRO 4000", "no bound: the peak rate of RTX PRO 4000 Blackwell is unknown"),
        ("qwen3-4b", "1xL4", "cold prefill of 1,000 tokens"),
    ],
)
def test_sentences_name_what_holds_for_the_card(make_request: MakeRequest, model: str, gpus: str, phrase: str) -> None:
    assert any(phrase in sentence for sentence in forecast_speed(make_request(model, gpus, 1000)).arithmetic)


def test_two_precisions_are_told_apart(make_request: MakeRequest) -> None:
    sentences = forecast_speed(make_request("qwen3-32b", "4xRTX4090", 1000, weights="fp8")).arithmetic
    assert "692 TFLOPS at best for fp8 linear layers and 173 TFLOPS for attention" in sentences[1]


def test_a_hybrids_state_widens_what_a_tier_reloads(make_request: MakeRequest) -> None:
    sentences = forecast_speed(make_request("qwen3.6-27b", "1xH200", 1000, cpu_tier=True)).arithmetic
    assert "this prompt's cache is 141 MB to 217 MB over all GPUs" in sentences[-1]


def test_a_cpu_machine_gets_empty_spans_with_the_reason(make_request: MakeRequest) -> None:
    request = make_request("qwen3-4b", "1xL4", 40_000, cpu_tier=True)
    forecast = forecast_speed(replace(request, machine=machine_from(None, 0)))
    assert forecast.num_prefill_chunks == 5
    assert forecast.arithmetic == ("no forecast: speed on a CPU is not forecast",)
    spans = (forecast.ttft_cold_s, forecast.ttft_warm_s, forecast.decode_tokens_per_s, forecast.ttft_from_cpu_s)
    assert all(span is not None and span.low is None and span.reason for span in spans)


def test_a_reload_without_a_warm_figure_is_unknown(make_request: MakeRequest) -> None:
    forecast = forecast_speed(make_request("qwen3-4b", "1xRTX PRO 4000", 1000, cpu_tier=True))
    assert forecast.ttft_from_cpu_s is not None
    assert "no matrix rate" in forecast.ttft_from_cpu_s.reason


@pytest.mark.parametrize(
    ("gpus", "link", "tokens", "sentence"),
    [
        ("2xRTX4090", "pcie3x8", 8192, "7.88 GB/s of pcie3x8, its raw rate, for the all-reduces"),
        ("2xRTX4090", None, 10, "bound: 2 GPUs x 1.01 TB/s of memory, for 48.7 GB of weights a chunk -> 24 ms"),
    ],
)
def test_a_bound_that_compute_does_not_set_says_what_does(
    make_request: MakeRequest, gpus: str, link: str | None, tokens: int, sentence: str
) -> None:
    assert sentence in forecast_speed(make_request("qwen3.6-27b", gpus, tokens, link=link)).arithmetic[1]


def test_figures_keep_three_digits_at_every_scale(make_request: MakeRequest) -> None:
    tiny = forecast_speed(make_request("qwen3-4b", "1xL4", 1)).arithmetic[0]
    assert tiny == (
        "cold prefill of 1 tokens: 7.27 GFLOP = 7.27 GFLOP linear + 590 kFLOP attention, in 1 chunks of 8,192"
    )


def test_an_unnamed_pcie_link_is_forecast_without_and_with_p2p(make_request: MakeRequest) -> None:
    unnamed, named = (
        forecast_speed(make_request("qwen3.6-27b", "4xRTX4090", 90_000, link=link)) for link in (None, "pcie4x16")
    )
    without, direct = unnamed.peer_cases
    assert (without.p2p, without.link, direct.p2p, direct.link) == (False, "pcie4x16", True, "pcie4x16-p2p")
    assert without.ttft_cold_s == unnamed.ttft_cold_s == named.ttft_cold_s
    assert direct.ttft_cold_s.high is not None
    assert without.ttft_cold_s.low is not None
    assert direct.ttft_cold_s.high < without.ttft_cold_s.low
    assert named.peer_cases == ()


@pytest.mark.parametrize("gpus", ["1xRTX4090", "8xH100 SXM5 80GB", "2xGB10"])
def test_where_p2p_is_no_question_there_is_one_forecast(make_request: MakeRequest, gpus: str) -> None:
    assert forecast_speed(make_request("qwen3-32b", gpus, 90_000)).peer_cases == ()
