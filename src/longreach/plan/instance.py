"""One instance: settle, count, render, forecast."""

from collections.abc import Sequence
from dataclasses import dataclass, replace

from longreach.engine.command import render_command
from longreach.engine.options import EngineOptions, ServeCommand
from longreach.engine.release import Release
from longreach.engine.shell import render_shell
from longreach.hardware.spec import Machine
from longreach.model.spec import ModelSpec
from longreach.plan.capacity import Fit, fit_kv_cache
from longreach.plan.goal import Goal, NamedGoal
from longreach.plan.options import choose_options
from longreach.plan.settle import Settled, settle
from longreach.plan.speed import InstanceSpeed, forecast_instance
from longreach.plan.tiers import concurrency_at_mean_input, plan_tiers
from longreach.plan.values import Choice, InstancePlan
from longreach.rules.deployment import Deployment
from longreach.sizing.rope import plan_rope
from longreach.sizing.values import RopePlan

_VISIBLE_DEVICES = {"cuda": "CUDA_VISIBLE_DEVICES", "rocm": "HIP_VISIBLE_DEVICES"}


@dataclass(frozen=True, slots=True)
class PlannedInstance:
    """An instance with what the rules look at and what was chosen for it."""

    plan: InstancePlan
    deployment: Deployment
    choices: tuple[Choice, ...]


def plan_instance(
    named: NamedGoal, model: ModelSpec, machine: Machine, release: Release, gpus: Sequence[int]
) -> PlannedInstance:
    """Plan one instance on the first of `gpus` that it needs."""
    goal = named.goal
    settled = settle(model, machine, goal, len(gpus))
    rope = plan_rope(model, settled.max_model_len, goal.yarn)
    fit = fit_kv_cache(model, machine, release, goal, settled, rope)
    options, option_choices = choose_options(model, machine, goal, settled, rope, fit)
    own_gpus = tuple(gpus[: settled.num_gpus]) if machine.device_type != "cpu" else ()
    options = _on_gpus(options, own_gpus, machine)
    tiers = plan_tiers(fit, goal)
    speed = forecast_instance(model, machine, goal, settled, fit)
    command = render_command(options, release)
    plan = InstancePlan(
        name=named.name,
        argv=command.argv,
        env=dict(command.env),
        shell=render_shell(command),
        host=options.host,
        port=options.port,
        gpu_indices=own_gpus,
        max_model_len=settled.max_model_len,
        options=options,
        kv_cache=fit.capacity,
        memory=fit.memory,
        rope=rope,
        tiers=speed.tiers_with_reload(tiers),
        tier_forecasts=speed.tiers,
        speed=speed.forecasts,
        concurrency_at_mean_input=concurrency_at_mean_input(fit, goal, tiers),
    )
    deployment = _deployment(model, machine, release, goal, settled, rope, fit, options, speed, plan)
    return PlannedInstance(plan, deployment, settled.choices + fit.choices + option_choices)
