"""Where the KV blocks of an instance rest, and how many requests that makes."""

from collections.abc import Sequence

from longreach.forecast.values import TierForecast
from longreach.plan.capacity import Fit
from longreach.plan.goal import Goal
from longreach.plan.settle import Settled
from longreach.plan.values import ConcurrencyFigures, PlannedTier
from longreach.sizing.kv_cache import concurrency_at
from longreach.sizing.offload import size_cpu_tier, size_disk_tier
from longreach.sizing.values import TierCapacity


def size_tiers(fit: Fit, goal: Goal, settled: Settled) -> tuple[TierCapacity, ...]:
    """GPU, then CPU and disk where they were asked for; empty when the KV cache cannot be counted."""
    if fit.request is None or fit.capacity is None:
        return ()
    world_size = settled.split.tp_size * settled.split.pp_size
    gpu = TierCapacity(
        "gpu",
        fit.capacity.kv_capacity_tokens,
        fit.capacity.num_blocks * fit.capacity.bytes_per_block * world_size,
        fit.capacity.certainty,
        note=f"what vLLM {fit.request.release.version} prints"
        if fit.capacity.starts
        else "vLLM refuses to start with it",
    )
    tiers = [gpu]
    if goal.cpu_tier_bytes is not None:
        tiers.append(size_cpu_tier(fit.capacity, fit.request, goal.cpu_tier_bytes))
    if goal.disk_tier_path is not None:
        tiers.append(size_disk_tier(fit.capacity, fit.request, goal.disk_tier_bytes))
    return tuple(tiers)


def planned_tiers(tiers: Sequence[TierCapacity], forecasts: Sequence[TierForecast]) -> tuple[PlannedTier, ...]:
    """Capacity and reload rate side by side."""
    rates = {forecast.name: forecast.reload_tokens_per_s for forecast in forecasts}
    return tuple(
        PlannedTier(
            tier.name, tier.capacity_tokens, tier.capacity_bytes, rates.get(tier.name), tier.certainty, tier.note
        )
        for tier in tiers
    )


def concurrency_at_mean_input(
    fit: Fit, goal: Goal, settled: Settled, tiers: Sequence[TierCapacity]
) -> ConcurrencyFigures | None:
    """Requests of the mean prompt plus its answer that the GPUs hold at once, and prefixes that GPU and CPU hold together."""
    if fit.request is None or fit.capacity is None:
        return None
    tokens = min(settled.mean_input_tokens + (goal.mean_output_tokens or 0), fit.request.max_model_len)
    gpu = concurrency_at(fit.request, tokens)
    cpu = next((tier for tier in tiers if tier.name == "cpu"), None)
    both = None if cpu is None or cpu.capacity_tokens is None else gpu + cpu.capacity_tokens / tokens
    return ConcurrencyFigures(tokens, gpu, both)
