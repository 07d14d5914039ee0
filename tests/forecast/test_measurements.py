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


def decode_hits() -> list[bool]:
    """Whether each comparable decode rate falls into its range."""
    hits = []
    for case in alone(DECODE):
        span = decode_rate(request_of(case, case["decode_context_tokens"]))
        assert span.low is not None
        assert span.high is not None
        hits.append(span.low <= case["decode_tokens_per_s"] <= span.high)
    return hits


def prefill_hits() -> list[bool]:
    """Whether each comparable first token falls into its range."""
    return [low <= case["ttft_s"] <= high for case in alone(PREFILL) for _, low, high in [prefill_span(case)]]


def median_width(cases: list[Mapping[str, Any]]) -> float:
    return median(high / low for _, low, high in map(prefill_span, cases))


def test_nineteen_of_twenty_first_tokens_fall_into_a_range_that_says_something() -> None:
    hits, single = prefill_hits(), [case for case in alone(PREFILL) if case["tp_size"] == 1]
    assert len(hits) >= 35
    assert sum(hits) / len(hits) >= 0.95
    assert median_width(alone(PREFILL)) < 2.3
    assert median_width(single) < 1.9


def test_four_of_five_decode_rates_fall_into_the_range() -> None:
    hits = decode_hits()
    assert len(hits) >= 12
    assert sum(hits) / len(hits) >= 0.8


def test_the_page_reports_what_the_measurements_give() -> None:
    page = " ".join((CORPUS.parents[3] / "docs" / "forecast.md").read_text(encoding="utf-8").split())
    prefill, decoded = prefill_hits(), decode_hits()
    nearest = min(case["ttft_s"] / prefill_span(case)[0] for case in PREFILL)
    widths = [median_width(alone(PREFILL)), median_width([case for case in alone(PREFILL) if case["tp_size"] == 1])]
    assert f"holds {len(CASES)} published measurements" in page
    assert f"the nearest first token takes {nearest:.2f} times its bound" in page
    assert f"Of {len(prefill)} first tokens of single vLLM requests, {sum(prefill)} fall into the range" in page
    assert "a factor of {:.1f} in the median and {:.1f} on one GPU".format(*widths) in page
    assert f"Of {len(decoded)} single decode rates, {sum(decoded)} do" in page
