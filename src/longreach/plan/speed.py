"""The speed of an instance: forecasts at its longest and at its mean prompt, and whether its tiers pay."""

from collections.abc import Iterator
from dataclasses import dataclass, replace

from longreach.forecast.speed import forecast_speed
from longreach.forecast.tiers import forecast_tiers
from longreach.forecast.values import SpeedForecast, SpeedRequest, TierForecast
from longreach.hardware.spec import Machine
from longreach.model.spec import ModelSpec
from longreach.plan.capacity import Fit
from longreach.plan.goal import Goal
from longreach.plan.request_time import speed_request
from longreach.plan.settle import Settled
from longreach.plan.values import Choice


@dataclass(frozen=True, slots=True)
class InstanceSpeed:
    """Forecasts first at max_model_len, then at the mean input; tiers are judged at the longest prompt."""

    forecasts: tuple[SpeedForecast, ...]
    tiers: tuple[TierForecast, ...]
    choices: tuple[Choice, ...]


def forecast_instance(model: ModelSpec, machine: Machine, goal: Goal, settled: Settled, fit: Fit) -> InstanceSpeed:
    """What one request gets on an otherwise idle instance."""
    longest = speed_request(model, machine, goal, settled, fit)
    requests = [longest]
    if settled.mean_input_tokens < settled.max_model_len:
        requests.append(replace(longest, prompt_tokens=settled.mean_input_tokens))
    forecasts = tuple(forecast_speed(request) for request in requests)
    return InstanceSpeed(forecasts, forecast_tiers(longest), tuple(_tier_choice(longest, goal)))


def _tier_choice(longest: SpeedRequest, goal: Goal) -> Iterator[Choice]:
    """A tier takes host memory that is not the plan's to give: none is chosen, and what it would do is said."""
    if longest.cpu_tier or not goal.prefix_caching:
        return
    (tier,) = forecast_tiers(replace(longest, cpu_tier=True))
    if tier.pays is not None:
        judged = "it would pay where prompts come back" if tier.pays else "it would not pay"
        yield Choice("--cpu-tier", "none", f"not asked for; {judged}: {tier.why}")
