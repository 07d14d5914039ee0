from dataclasses import replace

import pytest

from longreach.launch.compare import compare_with_plan, observe
from longreach.launch.readings import Reading
from longreach.launch.spec import ExpectedEngine

PLAN = ExpectedEngine(
    kv_capacity_tokens=1_194_731,
    max_concurrency=1.5929746666666667,
    num_blocks=771,
    block_size=1600,
    max_model_len=750_000,
    kv_cache_dtype="fp8_e4m3",
    attention_backend="FLASHINFER",
    tensor_parallel_size=4,
    pipeline_parallel_size=1,
    data_parallel_size=1,
    release="0.32.0",
)
AS_PLANNED = (
    Reading("kv_capacity_tokens", 1_194_731, "log"),
    Reading("max_concurrency", 1.59, "log", decimals=2),
    Reading("max_concurrency", 1.5929746666666667, "metrics"),
    Reading("num_blocks", 771, "metrics"),
    Reading("block_size", 1600, "metrics"),
    Reading("max_model_len", 750_000, "log"),
    Reading("kv_cache_dtype", "fp8", "metrics"),
    Reading("attention_backend", "flashinfer", "log"),
    Reading("tensor_parallel_size", 4, "log"),
    Reading("pipeline_parallel_size", 1, "log"),
    Reading("data_parallel_size", 1, "log"),
    Reading("release", "0.32.0+cpu", "log"),
)


def with_reading(fact: str, value: float | str) -> list[Reading]:
    others = [reading for reading in AS_PLANNED if reading.fact != fact]
    return [*others, Reading(fact, value, "somewhere")]


def test_an_engine_as_planned_passes_every_check() -> None:
    observations = observe(PLAN, AS_PLANNED)
    assert {one.verdict for one in observations} == {"pass"}
    assert len(observations) == 11
    assert compare_with_plan(PLAN, AS_PLANNED) == []


@pytest.mark.parametrize(
    ("fact", "value", "code"),
    [
        ("kv_capacity_tokens", 1_188_533, "LR601"),
        ("max_concurrency", 1.58, "LR601"),
        ("num_blocks", 767, "LR601"),
        ("max_model_len", 655_360, "LR602"),
        ("kv_cache_dtype", "auto (bfloat16)", "LR603"),
        ("attention_backend", "TRITON_ATTN", "LR604"),
        ("tensor_parallel_size", 2, "LR605"),
        ("pipeline_parallel_size", 2, "LR605"),
        ("data_parallel_size", 2, "LR605"),
        ("block_size", 1568, "LR606"),
        ("release", "0.33.0", "LR607"),
    ],
)
def test_each_difference_is_a_finding_with_both_numbers(fact: str, value: float | str, code: str) -> None:
    (finding,) = compare_with_plan(PLAN, with_reading(fact, value))
    assert finding.code == code
    assert f"is {value}, planned was {getattr(PLAN, fact)}" in finding.what
    assert "(somewhere)" in finding.why
    assert [one.fact for one in observe(PLAN, with_reading(fact, value)) if one.verdict == "fail"] == [fact]


def test_what_is_not_said_is_neither_a_pass_nor_a_finding() -> None:
    observations = observe(PLAN, [])
    assert {one.verdict for one in observations} == {"cannot tell"}
    assert {one.observed for one in observations} == {None}
    assert compare_with_plan(PLAN, []) == []


def test_what_was_not_planned_is_not_checked() -> None:
    assert observe(ExpectedEngine(), AS_PLANNED) == ()


def test_sources_that_contradict_each_other_do_not_pass() -> None:
    readings = [*AS_PLANNED, Reading("kv_capacity_tokens", 1, "the second engine")]
    (first, *_) = observe(PLAN, readings)
    assert (first.verdict, first.observed, first.source) == ("fail", 1, "the second engine")


def test_capacity_figures_are_one_finding_and_lead() -> None:
    readings = [Reading("kv_capacity_tokens", 1, "a"), Reading("num_blocks", 2, "b"), Reading("max_model_len", 3, "c")]
    capacity, length = compare_with_plan(PLAN, readings)
    assert (capacity.code, length.code) == ("LR601", "LR602")
    assert "planned 1194731, 1 (a)" in capacity.why
    assert "planned 771, 2 (b)" in capacity.why


@pytest.mark.parametrize(
    ("tokens", "verdict", "severity"),
    [(1_300_000, "pass", "advice"), (1_194_731, "pass", None), (1_000_000, "fail", "warning")],
    ids=["more than estimated", "as estimated", "less than estimated"],
)
def test_an_estimate_promises_a_least_and_says_that_it_is_one(tokens: int, verdict: str, severity: str | None) -> None:
    plan = ExpectedEngine(
        kv_certainty="estimate", kv_estimate_reason="its page padding is not known", kv_capacity_tokens=1_194_731
    )
    readings = [Reading("kv_capacity_tokens", tokens, "log")]
    (observation,) = observe(plan, readings)
    assert (observation.verdict, observation.certainty) == (verdict, "estimate")
    findings = compare_with_plan(plan, readings)
    assert [finding.severity for finding in findings] == ([severity] if severity else [])
    assert all("an estimate: its page padding is not known" in finding.why for finding in findings)


@pytest.mark.parametrize(("tokens", "verdict"), [(900, "fail"), (1000, "pass"), (1500, "pass"), (2001, "fail")])
def test_a_range_is_met_from_end_to_end(tokens: int, verdict: str) -> None:
    plan = ExpectedEngine(kv_capacity_range=(1000, 2000))
    readings = [Reading("kv_capacity_tokens", tokens, "log")]
    assert [one.verdict for one in observe(plan, readings)] == [verdict]
    findings = compare_with_plan(plan, readings)
    assert all("a range of 1000 to 2000 tokens" in finding.why for finding in findings)
    assert bool(findings) == (verdict == "fail")


@pytest.mark.parametrize(
    ("planned", "said", "verdict"),
    [
        ("auto", "auto (bfloat16)", "pass"),
        ("bfloat16", "auto (bfloat16)", "pass"),
        ("float16", "auto (bfloat16)", "fail"),
        ("fp8_e4m3", "fp8", "pass"),
        ("fp8_e5m2", "fp8_e4m3", "fail"),
    ],
)
def test_a_dtype_is_the_same_by_any_of_its_names(planned: str, said: str, verdict: str) -> None:
    plan = replace(ExpectedEngine(), kv_cache_dtype=planned)
    assert [one.verdict for one in observe(plan, [Reading("kv_cache_dtype", said, "log")])] == [verdict]


def test_variables_from_the_shell_are_a_suspect_of_a_wrong_capacity() -> None:
    (finding,) = compare_with_plan(PLAN, with_reading("num_blocks", 767), ["VLLM_CPU_KVCACHE_SPACE"])
    assert "From the shell, not from the plan, it has VLLM_CPU_KVCACHE_SPACE" in finding.why
    assert compare_with_plan(PLAN, AS_PLANNED, ["VLLM_CPU_KVCACHE_SPACE"]) == []
