"""Is what runs what was planned? Readings of the engine against the plan, fact by fact. Pure."""

import math
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Literal

from longreach.launch.readings import Reading
from longreach.launch.spec import ExpectedEngine
from longreach.rules import observed as kinds
from longreach.rules.finding import Finding, FindingKind

Verdict = Literal["pass", "fail", "cannot tell"]

_KV_FIGURES = ("kv_capacity_tokens", "max_concurrency", "num_blocks")
_WORDS = {
    "kv_capacity_tokens": "KV cache capacity in tokens",
    "max_concurrency": "requests of full length at once",
    "num_blocks": "KV cache blocks",
    "block_size": "block size in tokens",
    "max_model_len": "max-model-len",
    "kv_cache_dtype": "KV cache data type",
    "attention_backend": "attention backend",
    "tensor_parallel_size": "tensor-parallel-size",
    "pipeline_parallel_size": "pipeline-parallel-size",
    "data_parallel_size": "data-parallel-size",
    "release": "vLLM release",
}
_SAME_DTYPE = {"fp8": "fp8_e4m3", "float8_e4m3fn": "fp8_e4m3", "half": "float16"}
_KINDS: dict[str, FindingKind] = {
    "block_size": kinds.BLOCK_SIZE_DIFFERS,
    "max_model_len": kinds.LENGTH_DIFFERS,
    "kv_cache_dtype": kinds.DTYPE_DIFFERS,
    "attention_backend": kinds.BACKEND_DIFFERS,
    "tensor_parallel_size": kinds.PARALLEL_SIZES_DIFFER,
    "pipeline_parallel_size": kinds.PARALLEL_SIZES_DIFFER,
    "data_parallel_size": kinds.PARALLEL_SIZES_DIFFER,
    "release": kinds.RELEASE_DIFFERS,
}


_FIXES: dict[str, str] = {
    "block_size": "check --block-size, --speculative-config and the state dtypes against the plan, then plan again",
    "max_model_len": "start it with --max-model-len {planned}, or plan again with --max-model-len {observed}",
    "kv_cache_dtype": "start it with --kv-cache-dtype {planned}, or plan again with --kv-cache-dtype {observed}",
    "attention_backend": "start it with --attention-backend {planned}, or accept the speed of {observed}",
    "tensor_parallel_size": "start it with --tensor-parallel-size {planned}, or plan again with --tp {observed}",
    "pipeline_parallel_size": "start it with --pipeline-parallel-size {planned}, or plan again with --pp {observed}",
    "data_parallel_size": "start it with --data-parallel-size {planned}, or plan again with --dp {observed}",
    "release": "plan again with --vllm {observed}, or name an environment that holds {planned}: --engine FOLDER",
}


@dataclass(frozen=True, slots=True)
class Observation:
    """One planned fact beside what the engine says. `observed` None: it says nothing, and nothing is proven."""

    fact: str
    name: str  # in words
    planned: int | float | str
    observed: int | float | str | None
    source: str
    verdict: Verdict
    certainty: Literal["exact", "estimate"] = "exact"  # of the planned figure


def observe(expected: ExpectedEngine, readings: Iterable[Reading]) -> tuple[Observation, ...]:
    """One observation for each fact the plan states, in a fixed order. All readings of a fact must agree with it."""
    by_fact: dict[str, list[Reading]] = {}
    for reading in readings:
        by_fact.setdefault(reading.fact, []).append(reading)
    planned = ((fact, _planned(expected, fact)) for fact in _WORDS)
    return tuple(
        _observation(expected, fact, value, by_fact.get(fact, [])) for fact, value in planned if value is not None
    )


def _planned(expected: ExpectedEngine, fact: str) -> int | float | str | None:
    value: int | float | str | None = getattr(expected, fact)
    if value is None and fact == "kv_capacity_tokens" and expected.kv_capacity_range is not None:
        return expected.kv_capacity_range[0]
    return value


def _observation(expected: ExpectedEngine, fact: str, planned: float | str, readings: Sequence[Reading]) -> Observation:
    certainty = expected.kv_certainty if fact in _KV_FIGURES else "exact"
    if not readings:
        return Observation(fact, _WORDS[fact], planned, None, "the engine does not say", "cannot tell", certainty)
    differing = [reading for reading in readings if not _keeps(expected, planned, reading)]
    shown = differing[0] if differing else readings[-1]
    verdict: Verdict = "fail" if differing else "pass"
    return Observation(fact, _WORDS[fact], planned, shown.value, shown.source, verdict, certainty)


def _keeps(expected: ExpectedEngine, planned: float | str, reading: Reading) -> bool:
    """Equality; of a range, to lie within it; of an estimate, to be no less than promised."""
    value = reading.value
    if isinstance(planned, str) or isinstance(value, str):
        return _same_word(reading.fact, str(planned), str(value))
    if reading.fact == "kv_capacity_tokens" and expected.kv_capacity_range is not None:
        low, high = expected.kv_capacity_range
        return low <= value <= high
    if reading.fact in _KV_FIGURES and expected.kv_certainty == "estimate":
        return value >= planned or _equal(planned, reading)
    return _equal(planned, reading)


def _equal(planned: float, reading: Reading) -> bool:
    if reading.decimals is not None:
        return f"{planned:.{reading.decimals}f}" == f"{reading.value:.{reading.decimals}f}"
    return math.isclose(planned, float(reading.value), rel_tol=1e-9)


def _same_word(fact: str, planned: str, value: str) -> bool:
    if fact == "release":  # a local build's suffix says how it was built, not what it does
        return planned.partition("+")[0] == value.partition("+")[0]
    said = {_SAME_DTYPE.get(word, word).upper() for word in re.findall(r"\w+", value)}  # "auto (bfloat16)" is both
    return _SAME_DTYPE.get(planned, planned).upper() in said


def compare_with_plan(
    expected: ExpectedEngine, readings: Iterable[Reading], unplanned: Sequence[str] = ()
) -> list[Finding]:
    """A finding for each difference, with both numbers. What the engine does not say is no finding, and no pass either.

    An estimate that turns out differently but no worse is advice. `unplanned` are variables that the engine inherited from
    a shell: a capacity that differs may come from them (VLLM_CPU_KVCACHE_SPACE silently beats --kv-cache-memory-bytes).
    """
    observations = observe(expected, readings)
    findings = [_finding(one) for one in observations if one.verdict == "fail" and one.fact in _KINDS]
    capacity = [one for one in observations if one.fact in _KV_FIGURES and _differs(one)]
    return [*_capacity_findings(expected, capacity, unplanned), *findings]


def _differs(one: Observation) -> bool:
    if one.observed is None:
        return False
    return one.verdict == "fail" or (one.certainty == "estimate" and one.planned != one.observed)


def _capacity_findings(
    expected: ExpectedEngine, differing: Sequence[Observation], unplanned: Sequence[str]
) -> list[Finding]:
    """One finding for tokens, concurrency and blocks: they move together."""
    if not differing:
        return []
    first, failed = differing[0], any(one.verdict == "fail" for one in differing)
    why = "; ".join(f"{one.name}: planned {one.planned}, {_said(one)}" for one in differing)
    if expected.kv_certainty == "estimate":
        reason = f": {expected.kv_estimate_reason}" if expected.kv_estimate_reason else ""
        why += f". The plan's figures are an estimate{reason}"
    if expected.kv_capacity_range is not None:
        low, high = expected.kv_capacity_range
        why += f". The plan gave a range of {low} to {high} tokens"
    if unplanned:
        why += f". From the shell, not from the plan, it has {', '.join(unplanned)}"
    finding = kinds.CAPACITY_DIFFERS.finding(
        f"the engine's {first.name} is {first.observed}, planned was {first.planned}",
        why,
        "plan again for the release, flags and memory that the engine runs with, or start it with those of the plan",
    )
    return [finding if failed else replace(finding, severity="advice")]


def _finding(one: Observation) -> Finding:
    return _KINDS[one.fact].finding(
        f"the engine's {one.name} is {one.observed}, planned was {one.planned}",
        _said(one),
        _FIXES[one.fact].format(planned=one.planned, observed=one.observed),
    )


def _said(one: Observation) -> str:
    return f"{one.observed} ({one.source})"
