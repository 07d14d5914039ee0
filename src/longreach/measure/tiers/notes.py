"""What a reader of the figures must know about tiers. Pure."""

from collections.abc import Iterator, Sequence

from longreach.measure.tiers.values import TierName, VariantFigures
from longreach.units import format_bytes, format_count, format_duration, format_tokens

CPU_BUILD = "this is the CPU build of vLLM: GPU stands for the engine's own KV cache, which is in memory, too"

_SECONDS_A_DAY = 86_400
_TB = 10**12
_STILL_HIT = 0.1  # share of prompt tokens that a cache which overflows may still serve
_DAYS_A_YEAR = 365


def notes_on(
    figures: Sequence[VariantFigures],
    *,
    is_hybrid: bool,
    device_type: str,
    planned_tokens: int | None = None,
    planned_release: str | None = None,
    ssd_tbw_bytes: int | None = None,
) -> tuple[str, ...]:
    """Overflow, overlap, wear and granularity as they were seen. `planned_tokens` is the GPU cache that prompts were made for."""
    by_tiers = {one.variant.tiers: one for one in reversed(figures)}
    return (
        *_mixed(figures),
        *_other_release(figures, planned_release),
        *_other_capacity(figures, planned_tokens),
        *_overflow(by_tiers.get(("gpu",))),
        *_overlap(by_tiers.get(("gpu",)), by_tiers.get(("gpu", "cpu"))),
        *(note for one in figures for note in _break_even(by_tiers.get(("gpu",)), one)),
        *_wear(by_tiers.get(("gpu", "cpu", "disk")), ssd_tbw_bytes),
        *(_granularity(figures) if is_hybrid else ()),
        *(_cpu_build(figures) if device_type == "cpu" else ()),
    )


def _mixed(figures: Sequence[VariantFigures]) -> Iterator[str]:
    for one in figures:
        if one.num_mixed_runs:
            yield (
                f"{one.variant.title}: in {one.num_mixed_runs} of {format_count(one.num_runs, 'run')} the engine counted other "
                "requests than were sent here (somebody else used it, or its counts came late): nothing is judged by them"
            )


def _other_release(figures: Sequence[VariantFigures], planned: str | None) -> Iterator[str]:
    """A build's own suffix makes no other release: 0.32.0+cpu."""
    found = sorted({one.engine_version for one in figures if one.engine_version})
    if planned and any(version.partition("+")[0] != planned for version in found):
        yield f"measured on vLLM {', '.join(found)}, and the plan is for {planned}"


def _other_capacity(figures: Sequence[VariantFigures], planned_tokens: int | None) -> Iterator[str]:
    for one in figures:
        if planned_tokens and one.kv_capacity_tokens and one.kv_capacity_tokens != planned_tokens:
            yield (
                f"{one.variant.title}: the engine's GPU cache holds {format_tokens(one.kv_capacity_tokens)} tokens, and the "
                f"prompts are made for the {format_tokens(planned_tokens)} of the plan"
            )


def _overflow(gpu: VariantFigures | None) -> Iterator[str]:
    share = None if gpu is None else share_from(gpu, "gpu")
    if gpu is None or share is None:
        return
    if share > _STILL_HIT:
        yield (
            f"the GPU cache did not overflow: alone it still served {share:.1%} of the prompt tokens, for which no tier is asked; "
            "send more or longer prompts"
        )
    else:
        yield f"the GPU cache overflowed: alone it served {share:.1%} of the prompt tokens"


def _overlap(gpu: VariantFigures | None, both: VariantFigures | None) -> Iterator[str]:
    if gpu is None or both is None or gpu.hit_share is None or both.hit_share is None:
        return
    served = share_from(both, "cpu")
    if served:
        added = f"{100 * (both.hit_share - gpu.hit_share):+.1f} points"
        yield (
            f"the CPU tier served {served:.1%} of the prompt tokens and moved the hits by {added}: it holds a copy of what the "
            "GPUs hold, so the two do not add up"
        )


def _break_even(gpu: VariantFigures | None, tiers: VariantFigures) -> Iterator[str]:
    """The gain is of this mix of first sends and repeats: from which mix on there is one."""
    if gpu is None or gpu is tiers or min(len(gpu.rounds), len(tiers.rounds)) < 2:
        return
    cost = tiers.rounds[0].ttft_mean_s - gpu.rounds[0].ttft_mean_s
    saved = _later_s(gpu) - _later_s(tiers)
    if saved <= 0:
        return
    sent = sum(one.num_requests for one in tiers.rounds)
    mix = f"{1 - tiers.rounds[0].num_requests / sent:.0%} of the sends here are repeats"
    if cost <= 0:
        yield f"{tiers.variant.title}: {mix}; a first send takes no longer with it, so the gain grows from nothing with their share"
    else:
        yield (
            f"{tiers.variant.title}: {mix}; a first send takes {format_duration(cost)} more with it and a repeat "
            f"{format_duration(saved)} less, so it saves time where more than {cost / (cost + saved):.0%} are"
        )


def _later_s(figures: VariantFigures) -> float:
    """The mean time to first token of repeats."""
    later = figures.rounds[1:]
    return sum(one.ttft_mean_s * one.num_requests for one in later) / sum(one.num_requests for one in later)


def _wear(disk: VariantFigures | None, ssd_tbw_bytes: int | None) -> Iterator[str]:
    if disk is None or not disk.disk_written_bytes_per_s or disk.disk_written_bytes is None:
        return
    per_day = disk.disk_written_bytes_per_s * _SECONDS_A_DAY
    note = (
        f"the disk tier writes every new prompt through and never deletes: {format_bytes(disk.disk_written_bytes)} here, "
        f"{per_day / _TB:.2f} TB a day at this rate"
    )
    if ssd_tbw_bytes:
        days = ssd_tbw_bytes / per_day
        life = f"{days:.0f} days" if days < _DAYS_A_YEAR else f"{days / _DAYS_A_YEAR:.1f} years"
        note += f", which wears out a drive rated {ssd_tbw_bytes / _TB:,.0f} TB in {life}"
    yield note


def _granularity(figures: Sequence[VariantFigures]) -> Iterator[str]:
    block_size = next((one.block_size for one in figures if one.block_size), None)
    if block_size:
        yield (
            f"recurrent layers keep their state at few places: hits come in whole blocks of {format_tokens(block_size)} tokens, "
            "and the first repeat of a prompt may miss"
        )


def _cpu_build(figures: Sequence[VariantFigures]) -> Iterator[str]:
    yield CPU_BUILD
    if any(one.reload_bytes_per_s for one in figures):
        yield "what is called reload is a copy within memory here, and no bandwidth of any link"


def share_from(figures: VariantFigures, tier: TierName) -> float | None:
    """Prompt tokens that came from this tier, of all."""
    hits = figures.hits_from(tier)
    return None if hits is None or not figures.prompt_tokens else hits / figures.prompt_tokens
