"""The measured speeds of tests/corpus/perf beside their forecasts, and by which rule a row counts."""

import json
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from functools import cache
from itertools import product
from math import log
from pathlib import Path
from statistics import median
from typing import Any

from longreach.forecast.decode import decode_rate
from longreach.forecast.prefill import prefill_times, ttft_cold
from longreach.forecast.setting import Setting, resolve
from longreach.forecast.speed import forecast_speed
from longreach.forecast.values import Span, SpeedRequest
from longreach.hardware.catalogue import find_gpu
from longreach.hardware.machine import machine_from
from longreach.model.source import load_model

CORPUS = Path(__file__).parents[1] / "corpus" / "perf" / "measurements.jsonl"
_FACTORS = (0.7, 0.8, 0.9, 1.0, 1.1, 1.2, 1.35)
_DOUBTED = "shared or capped"  # the publisher's own doubt


@dataclass(frozen=True, slots=True)
class Row:
    """One measured figure and its forecast: seconds to the first token, or tokens per second."""

    case: dict[str, Any]
    measured: float
    span: Span
    peers: tuple[Span, ...]  # without and with P2P, where the link is unknown

    @property
    def link_known(self) -> bool:
        """Whether the publisher says how the GPUs are joined; one GPU needs no link."""
        return bool(self.case["tp_size"] == 1 or self.case.get("link") != "pcie")

    @property
    def counts(self) -> bool:
        """Comparable with the forecast of one request on an idle vLLM, on a card that does nothing else."""
        alone = self.case["concurrency"] == 1 and self.case["engine"] == "vllm"
        return bool(alone and _DOUBTED not in self.case.get("note", ""))

    @property
    def inside(self) -> bool:
        """Whether the range holds the measurement."""
        return _holds(self.span, self.measured)

    @property
    def inside_a_case(self) -> bool:
        """Whether the range with or the range without P2P holds it."""
        return any(_holds(span, self.measured) for span in self.peers)

    @property
    def error(self) -> float:
        """Of the range's middle, relative to the measurement."""
        assert self.span.middle is not None
        return self.span.middle / self.measured - 1

    @property
    def width(self) -> float:
        """Between the ends of the range, as a factor."""
        assert self.span.low is not None
        assert self.span.high is not None
        return self.span.high / self.span.low


@dataclass(frozen=True, slots=True)
class LeftOut:
    """What the rows of one source show when the rest alone sets the rates."""

    source: str
    errors: tuple[float, ...]


def request_of(case: dict[str, Any], prompt_tokens: int) -> SpeedRequest:
    """The forecast's request for a measured one."""
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


@cache
def read_cases() -> tuple[dict[str, Any], ...]:
    """Every measurement of the corpus."""
    return tuple(json.loads(line) for line in CORPUS.read_text(encoding="utf-8").splitlines())


@cache
def prefill_rows() -> tuple[Row, ...]:
    """Measured first tokens."""
    rows = []
    for case in read_cases():
        if "ttft_s" in case:
            request = request_of(case, case["prompt_tokens"])
            peers = tuple(peer.ttft_cold_s for peer in forecast_speed(request).peer_cases)
            rows.append(Row(case, case["ttft_s"], ttft_cold(request), peers))
    return tuple(rows)


@cache
def decode_rows() -> tuple[Row, ...]:
    """Measured decode rates of one request."""
    rows = []
    for case in read_cases():
        if "decode_tokens_per_s" in case:
            request = request_of(case, case["decode_context_tokens"])
            peers = tuple(peer.decode_tokens_per_s for peer in forecast_speed(request).peer_cases)
            rows.append(Row(case, case["decode_tokens_per_s"], decode_rate(request), peers))
    return tuple(rows)


def counted(rows: Iterable[Row]) -> tuple[Row, ...]:
    """The rows that count and whose link is known."""
    return tuple(row for row in rows if row.counts and row.link_known)


def over_unknown_links(rows: Iterable[Row]) -> tuple[Row, ...]:
    """The rows that count but for their link."""
    return tuple(row for row in rows if row.counts and not row.link_known)


def median_error(rows: Sequence[Row]) -> float:
    """Median distance of the middle from the measurement."""
    return median(abs(row.error) for row in rows)


@cache
def leave_one_source_out() -> tuple[LeftOut, ...]:
    """Each source met by what fits all others best: compute of GeForce and of other cards and link time are scaled."""
    rows = counted(prefill_rows())
    found = []
    for source in dict.fromkeys(_source(row) for row in rows):
        outside = [row for row in rows if _source(row) != source]
        factors = min(product(_FACTORS, repeat=3), key=lambda tried: _misfit(outside, tried))
        errors = (_scaled_s(row, factors) / row.measured - 1 for row in rows if _source(row) == source)
        found.append(LeftOut(source, tuple(errors)))
    return tuple(found)


def _source(row: Row) -> str:
    return str(row.case["source"]).split(" (")[0]


def _holds(span: Span, measured: float) -> bool:
    return span.low is not None and span.high is not None and span.low <= measured <= span.high


def _misfit(rows: Sequence[Row], factors: tuple[float, ...]) -> float:
    return sum(abs(log(_scaled_s(row, factors) / row.measured)) for row in rows)


def _scaled_s(row: Row, factors: tuple[float, ...]) -> float:
    geforce, other, link = factors
    compute_s, link_s, overhead_s = _middle_parts(row.case["id"])
    return compute_s * (geforce if row.case["gpu"].startswith("GeForce") else other) + link_s * link + overhead_s


@cache
def _middle_parts(case_id: str) -> tuple[float, float, float]:
    """Compute, link and overhead of the best guess."""
    case = next(case for case in read_cases() if case["id"] == case_id)
    setting = resolve(request_of(case, case["prompt_tokens"]))
    assert isinstance(setting, Setting)
    times = prefill_times(setting)
    assert times is not None
    fast, slow = times
    pairs = ((fast.compute_s, slow.compute_s), (fast.link_s, slow.link_s), (fast.overhead_s, slow.overhead_s))
    compute_s, link_s, overhead_s = ((low + high) / 2 for low, high in pairs)
    return compute_s, link_s, overhead_s
