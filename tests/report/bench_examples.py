"""A benchmark run as its screens show it. Intervals are set, not drawn: another numpy may draw other numbers."""

from dataclasses import fields, is_dataclass, replace
from typing import Any

from tests.measure.bench.results import failed, phase, record, result

from longreach.forecast.values import Span
from longreach.measure.bench.compare import compare_runs
from longreach.measure.bench.compare_values import RunComparison
from longreach.measure.bench.summary import summarise
from longreach.measure.bench.summary_values import BenchSummary, Slo
from longreach.measure.bench.values import BenchResult, CacheState, Load, RequestRecord
from longreach.measure.target import ExpectedSpeed

_BEGAN = {"cold": 0.0, "warm": 400.0, "flood": 500.0, "evicted": 800.0}
_TTFT_S = {"cold": 20.0, "warm": 0.4, "flood": 20.0, "evicted": 2.5}
SPEED = ExpectedSpeed(
    prompt_tokens=32_768,
    ttft_cold_s=Span(18, 30, lower_bound=12),
    ttft_warm_s=Span(None, None, certainty="unknown", reason="its block size is not known"),
    decode_tokens_per_s=Span(20, 28, upper_bound=31),
)


def _record(index: int, state: CacheState) -> RequestRecord:
    tokens = 32_768 if index % 2 else 8_192
    ttft_s = _TTFT_S[state] * (1 + 0.02 * (index * 7 % 10)) * (1.0 if index % 2 else 0.2)
    itl_s = 0.038 + 0.001 * (index * 3 % 10)
    took_s = ttft_s + 10 * itl_s
    return record(
        index,
        state,
        wanted_prompt_tokens=tokens,
        prompt_tokens=tokens,
        cached_tokens=0 if state == "cold" else tokens - 32,
        sent_s=_BEGAN[state] + 20 * index,
        ttft_s=ttft_s,
        time_to_first_answer_s=ttft_s + 0.3,
        itl_s=itl_s,
        e2e_latency_s=took_s,
    )


def three_states() -> BenchResult:
    """12 prompts of two lengths, cold, warm and evicted; the server refused one of them."""
    states: tuple[CacheState, ...] = ("cold", "warm", "flood", "evicted")
    records = [_record(index, state) for state in states for index in range(12)]
    records[5] = failed(5, error="This model's maximum context length is 16384 tokens, and you asked for 32779.")
    hits = 12 * (20_480 - 32)
    sources: dict[str, dict[str, Any]] = {
        "warm": {"hits_by_source": (("device", hits),)},
        "evicted": {"hits_by_source": (("host", hits - 40_000), ("disk", 40_000)), "num_preemptions": 1},
    }
    phases = tuple(
        phase(
            state,
            12,
            began_s=_BEGAN[state] - 1,
            ended_s=_BEGAN[state] + 260,
            prompt_tokens=12 * 20_480,
            ttft_sum_s=sum(item.ttft_s or 0 for item in records if item.state == state) - 0.02,
            num_drafts=100,
            num_draft_tokens=300,
            num_accepted_tokens=171,
            **sources.get(state, {}),
        )
        for state in states
    )
    return result(*records, phases=phases, label="gpu + cpu + disk", load=Load("closed", 1))


def three_states_summary() -> BenchSummary:
    """Its figures, beside limits and a forecast."""
    summary: BenchSummary = _settled(summarise(three_states(), Slo(ttft_s=15.0, itl_s=0.08), [SPEED]))
    return summary


def comparison() -> RunComparison:
    """A run beside one whose first tokens come 30 % later where nothing is cached."""
    a = three_states()
    b = replace(
        a, records=tuple(map(_slower, a.records)), header=replace(a.header, label="gpu only", longreach_version="0.2.0")
    )
    found: RunComparison = _settled(compare_runs(a, b, slo=Slo(ttft_s=15.0)))
    return found


def _slower(item: RequestRecord) -> RequestRecord:
    if item.ttft_s is None or item.state != "cold":
        return item
    return replace(item, ttft_s=1.3 * item.ttft_s, e2e_latency_s=item.e2e_latency_s + 0.3 * item.ttft_s)


def _settled(value: Any) -> Any:
    """With every drawn interval replaced by one of 10 % around its figure."""
    if isinstance(value, tuple):
        return tuple(_settled(item) for item in value)
    if not is_dataclass(value):
        return value
    changes = {field.name: _settled(getattr(value, field.name)) for field in fields(value)}
    for name in [name for name in changes if name.endswith("_interval") and changes[name] is not None]:
        middle = changes[name.removesuffix("_interval")]
        changes[name] = (middle * 0.9, middle * 1.1)
    if changes.get("interval") is not None:
        half = 0.2 if changes["unit"] == "share" else 0.03
        changes["interval"] = (changes["difference"] - half, changes["difference"] + half)
    return replace(value, **changes)  # type: ignore[type-var]
