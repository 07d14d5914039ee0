from collections.abc import Sequence
from dataclasses import replace

import pytest

from longreach.measure.tiers.notes import notes_on
from longreach.measure.tiers.values import RoundFigures, TierSet, VariantFigures

GPU = VariantFigures(
    variant=TierSet(("gpu",)),
    num_runs=1,
    num_ok=30,
    num_failed=0,
    prompt_tokens=100_000,
    hits_by_source=(("device", 1_000),),
    cached_tokens=1_000,
    ttft_s=None,
    rounds=(),
    prompt_tokens_per_s=None,
    output_tokens_per_s=None,
    duration_s=100.0,
    block_size=784,
)
CPU = replace(
    GPU,
    variant=TierSet(("gpu", "cpu"), "lru"),
    hits_by_source=(("device", 500), ("host", 60_000)),
    cached_tokens=60_500,
)
DISK = replace(
    CPU,
    variant=TierSet(("gpu", "cpu", "disk"), "lru"),
    disk_written_bytes=32 * 10**9,
    disk_written_bytes_per_s=320e6,
    reload_bytes_per_s=1e9,
)


def notes(*figures: VariantFigures, hybrid: bool = False, device: str = "cuda", tbw: int | None = None) -> str:
    return "\n".join(notes_on(list(figures), is_hybrid=hybrid, device_type=device, ssd_tbw_bytes=tbw))


def test_a_run_beside_requests_of_others_is_told() -> None:
    told = notes(GPU, replace(CPU, num_runs=3, num_mixed_runs=1))
    assert "GPU+CPU: in 1 of 3 runs the engine counted other requests than were sent here" in told
    assert "somebody else" not in notes(GPU, CPU)


def test_what_a_tier_served_is_not_what_it_added() -> None:
    assert "served 60.0% of the prompt tokens and moved the hits by +59.5 points" in notes(GPU, CPU)


def test_the_share_of_repeats_from_which_a_tier_saves_time_is_told() -> None:
    """A first send costs 0.1 s, a repeat saves 1.9 s: one in twenty breaks even."""
    gpu = replace(GPU, rounds=(RoundFigures(1, 10, 2.0), RoundFigures(2, 10, 2.0), RoundFigures(3, 10, 2.0)))
    cpu = replace(CPU, rounds=(RoundFigures(1, 10, 2.1), RoundFigures(2, 10, 0.1), RoundFigures(3, 10, 0.1)))
    told = notes(gpu, cpu)
    assert "67% of the sends here are repeats; a first send takes 100 ms more with it and a repeat 1.9 s less" in told
    assert "where more than 5% are" in told
    free = replace(cpu, rounds=(RoundFigures(1, 10, 1.9), *cpu.rounds[1:]))
    assert "takes no longer with it" in notes(gpu, free)
    assert "repeats;" not in notes(gpu, replace(cpu, rounds=gpu.rounds)), "nothing is saved"


def test_an_engine_with_another_cache_than_planned_is_told() -> None:
    def told(planned_tokens: int) -> tuple[str, ...]:
        figures = [replace(GPU, kv_capacity_tokens=4_096)]
        return notes_on(figures, is_hybrid=False, device_type="cuda", planned_tokens=planned_tokens)

    assert "GPU: the engine's GPU cache holds 4,096 tokens" in told(5_000)[0]
    assert "holds 4,096" not in told(4_096)[0]


@pytest.mark.parametrize(("version", "is_told"), [("0.31.0", True), ("0.32.0+cpu", False), (None, False)])
def test_an_engine_of_another_release_than_planned_is_told(version: str | None, is_told: bool) -> None:
    told = notes_on(
        [replace(GPU, engine_version=version)], is_hybrid=False, device_type="cuda", planned_release="0.32.0"
    )
    assert (f"measured on vLLM {version}, and the plan is for 0.32.0" in told) == is_told


def test_a_cache_that_did_not_overflow_is_told() -> None:
    assert "overflowed: alone it served 1.0%" in notes(GPU)
    full = replace(GPU, hits_by_source=(("device", 60_000),))
    assert "did not overflow: alone it still served 60.0%" in notes(full)


def test_wear_is_told_by_day_and_by_the_rating_that_was_given() -> None:
    """0.32 GB/s is about 28 TB a day; a drive rated 1,200 TB lasts six weeks."""
    assert "27.65 TB a day" in notes(GPU, CPU, DISK)
    assert "wears out a drive rated 1,200 TB in 43 days" in notes(GPU, CPU, DISK, tbw=1_200 * 10**12)
    assert "wears out" not in notes(GPU, CPU, DISK)
    assert "2.0 years" in notes(DISK, tbw=20_183 * 10**12)


def test_hybrids_and_the_cpu_build_get_their_own_word() -> None:
    assert "whole blocks of 784 tokens" in notes(GPU, hybrid=True)
    assert "784" not in notes(GPU)
    assert "no bandwidth of any link" in notes(GPU, DISK, device="cpu")
    assert notes(GPU, CPU, device="cpu").count("GPU stands for the engine's own KV cache, which is in memory, too") == 1
    assert "GPU stands for" not in notes(GPU, CPU)
    assert "no bandwidth" not in notes(GPU, DISK)


def test_nothing_is_said_of_what_was_not_measured() -> None:
    def unknown(figures: Sequence[VariantFigures]) -> list[VariantFigures]:
        return [replace(one, hits_by_source=None, cached_tokens=None, disk_written_bytes_per_s=None) for one in figures]

    assert notes(*unknown([GPU, CPU, DISK]), tbw=10**15) == ""
    assert notes() == ""
