"""The forecast against published measurements (tests/corpus/perf): bounds are never beaten, ranges mostly hold."""

import json
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from statistics import median
from typing import Any

import pytest

from longreach.forecast.decode import decode_rate
from longreach.forecast.prefill import ttft_cold
from longreach.forecast.values import SpeedRequest
from longreach.hardware.catalogue import find_gpu
from longreach.hardware.machine import machine_from
from longreach.model.source import load_model

CORPUS = Path(__file__).parents[1] / "corpus" / "perf" / "measurements.jsonl"
CASES: list[Mapping[str, Any]] = [json.loads(line) for line in CORPUS.read_text(encoding="utf-8").splitlines()]
PREFILL = [case for case in CASES if "ttft_s" in case]
DECODE = [case for case in CASES if "decode_tokens_per_s" in case]


def request_of(case: Mapping[str, Any], prompt_tokens: int) -> SpeedRequest:
    model = load_model(case["model"])
    drafts = case["num_speculative_tokens"]
    return SpeedRequest(
        model=replace(model, weights=replace(model.weights, quantization=case["weights"], total_bytes=None)),
        machine=machine_from(find_gpu(case["gpu"]), case["tp_size"], case.get("link")),
        prompt_tokens=prompt_tokens,
        tp_size=case["tp_size"],
        kv_cache_dtype=case["kv_cache_dtype"],
        num_speculative_tokens=drafts,
        use_draft_layers=drafts > 0,
    )


def alone(cases: list[Mapping[str, Any]]) -> list[Mapping[str, Any]]:
    """Comparable with the forecast of one request on an idle vLLM."""
    return [case for case in cases if case["concurrency"] == 1 and case["engine"] == "vllm"]


def prefill_span(case: Mapping[str, Any]) -> tuple[float, float, float]:
    span = ttft_cold(request_of(case, case["prompt_tokens"]))
    assert span.lower_bound is not None
    assert span.low is not None
    assert span.high is not None
    return span.lower_bound, span.low, span.high


@pytest.mark.parametrize("case", PREFILL, ids=lambda case: case["id"])
def test_no_measured_first_token_beats_the_bound(case: Mapping[str, Any]) -> None:
    assert case["ttft_s"] >= prefill_span(case)[0]


@pytest.mark.parametrize("case", DECODE, ids=lambda case: case["id"])
def test_no_measured_decode_beats_the_bound(case: Mapping[str, Any]) -> None:
    upper = decode_rate(request_of(case, case["decode_context_tokens"])).upper_bound
    assert upper is not None
    assert case["decode_tokens_per_s"] <= upper


def test_nineteen_of_twenty_first_tokens_fall_into_the_range() -> None:
    inside = [low <= case["ttft_s"] <= high for case in alone(PREFILL) for _, low, high in [prefill_span(case)]]
    assert len(inside) >= 35
    assert sum(inside) / len(inside) >= 0.95


def test_the_range_of_first_tokens_says_something() -> None:
    widths = [high / low for case in alone(PREFILL) for _, low, high in [prefill_span(case)]]
    assert median(widths) < 2.3
    assert median(widths[i] for i, case in enumerate(alone(PREFILL)) if case["tp_size"] == 1) < 1.9


def test_four_of_five_decode_rates_fall_into_the_range() -> None:
    inside = []
    for case in alone(DECODE):
        span = decode_rate(request_of(case, case["decode_context_tokens"]))
        assert span.low is not None
        assert span.high is not None
        inside.append(span.low <= case["decode_tokens_per_s"] <= span.high)
    assert len(inside) >= 12
    assert sum(inside) / len(inside) >= 0.8
