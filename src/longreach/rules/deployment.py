"""All that rules look at: one instance of a deployment, with what was computed about it."""

from dataclasses import dataclass

from longreach.engine.options import EngineOptions
from longreach.engine.release import Release
from longreach.forecast.values import SpeedForecast, TierForecast
from longreach.hardware.spec import Machine
from longreach.model.spec import ModelSpec
from longreach.sizing.values import KvCapacity, MemoryBudget, RopePlan, TierCapacity


@dataclass(frozen=True, slots=True)
class Deployment:
    """One instance: what it is, what it runs on, what it was asked, and what sizing and forecast say. None: not known."""

    model: ModelSpec
    machine: Machine
    release: Release
    options: EngineOptions
    max_model_len: int
    max_num_batched_tokens: int  # resolved: what vLLM will use
    max_num_seqs: int  # resolved
    num_instances: int = 1
    concurrency: int | None = None  # wanted concurrent requests
    mean_input_tokens: int | None = None
    mean_output_tokens: int | None = None
    capacity: KvCapacity | None = None
    memory: MemoryBudget | None = None
    rope: RopePlan | None = None
    tiers: tuple[TierCapacity, ...] = ()
    speed: tuple[SpeedForecast, ...] = ()
    tier_forecasts: tuple[TierForecast, ...] = ()
    ttft_wish_s: float | None = None
