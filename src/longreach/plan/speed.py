"""The speed of an instance: forecasts at its longest and at its mean prompt, and whether its tiers pay."""

from dataclasses import dataclass, replace

from longreach.forecast.speed import forecast_speed
from longreach.forecast.tiers import forecast_tiers
from longreach.forecast.values import SpeedForecast, SpeedRequest, TierForecast
from longreach.hardware.spec import Machine
from longreach.model.spec import ModelSpec
from longreach.plan.capacity import Fit
from longreach.plan.goal import Goal
from longreach.plan.settle import Settled


@dataclass(frozen=True, slots=True)
class InstanceSpeed:
    """Forecasts first at max_model_len, then at the mean input; tiers are judged at the longest prompt."""

    forecasts: tuple[SpeedForecast, ...]
    tiers: tuple[TierForecast, ...]


def forecast_instance(model: ModelSpec, machine: Machine, goal: Goal, settled: Settled, fit: Fit) -> InstanceSpeed:
    """What one request gets on an otherwise idle instance."""
    speculative = settled.speculative
    longest = SpeedRequest(
        model=model,
        machine=machine,
        prompt_tokens=settled.max_model_len,
        tp_size=settled.tp_size,
        pp_size=settled.pp_size,
        max_num_batched_tokens=settled.max_num_batched_tokens,
        kv_cache_dtype=fit.kv_cache_dtype,
        block_size=fit.capacity.block_size if fit.capacity else 16,
        num_speculative_tokens=speculative.num_speculative_tokens if speculative else 0,
        use_draft_layers=speculative is not None and speculative.method == "mtp",
        cpu_tier=goal.cpu_tier_bytes is not None,
        disk_tier=goal.disk_tier_path is not None,
    )
    requests = [longest]
    if settled.mean_input_tokens < settled.max_model_len:
        requests.append(replace(longest, prompt_tokens=settled.mean_input_tokens))
    return InstanceSpeed(tuple(forecast_speed(request) for request in requests), forecast_tiers(longest))
