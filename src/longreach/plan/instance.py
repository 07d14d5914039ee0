"""One instance: settle, count, render, forecast."""

from collections.abc import Sequence
from dataclasses import dataclass, replace

from longreach.engine.command import render_command
from longreach.engine.options import EngineOptions
from longreach.engine.release import Release
from longreach.engine.shell import render_shell
from longreach.errors import UsageError
from longreach.hardware.spec import Machine
from longreach.model.spec import ModelSpec
from longreach.plan.capacity import Fit
from longreach.plan.count import Case, Decision
from longreach.plan.decide import decide
from longreach.plan.extra import check_said_once, read_extra, with_dtype, with_extra
from longreach.plan.goal import Goal, NamedGoal
from longreach.plan.options import choose_options
from longreach.plan.release_fit import fit_to_release, goal_for_release, with_older_rope
from longreach.plan.settle import Settled
from longreach.plan.speed import InstanceSpeed, forecast_instance
from longreach.plan.split import WHOLE_EXPERTS, with_whole_experts
from longreach.plan.tiers import concurrency_at_mean_input, planned_tiers, size_tiers
from longreach.plan.values import Choice, InstancePlan
from longreach.rules.concurrency import useful_max_num_seqs
from longreach.rules.deployment import Deployment
from longreach.sizing.kv_cache import concurrency_at
from longreach.sizing.values import RopePlan, TierCapacity
from longreach.units import format_tokens

_VISIBLE_DEVICES = {"cuda": "CUDA_VISIBLE_DEVICES", "rocm": "HIP_VISIBLE_DEVICES"}


@dataclass(frozen=True, slots=True)
class PlannedInstance:
    """An instance with what the rules look at and what was chosen for it."""

    plan: InstancePlan
    deployment: Deployment
    choices: tuple[Choice, ...]
    case: Case
    decision: Decision


@dataclass(frozen=True, slots=True)
class _Drawn:
    """An instance with everything about it decided, before it is told as a plan and looked at by the rules."""

    case: Case
    own_model: ModelSpec  # in the type of its checkpoint, which the card may not have
    settled: Settled
    rope: RopePlan
    fit: Fit
    options: EngineOptions
    gpus: tuple[int, ...]
    tiers: tuple[TierCapacity, ...]
    speed: InstanceSpeed


def plan_instance(
    named: NamedGoal, model: ModelSpec, machine: Machine, release: Release, gpus: Sequence[int]
) -> PlannedInstance:
    """Plan one instance on the first of `gpus` that it needs."""
    extra = read_extra(named.goal.extra_args, release)
    check_said_once(named.goal, extra)
    goal, release_choices = goal_for_release(named.goal, release, machine.device_type)
    case = Case(with_dtype(model, extra, machine.gpu), machine, release, goal, len(gpus), extra)
    decision = decide(case)
    _check_prompt(goal, decision.settled.max_model_len)
    settled = _within_cache(decision.settled, goal, decision.fit)
    options, option_choices = choose_options(case.model, machine, goal, settled, decision.rope, decision.fit)
    probe = Deployment(model, machine, release, options, settled.max_model_len, 1, 1)
    options, lacking = fit_to_release(options, probe)
    options, block_choices = _keep_experts_whole(replace(probe, options=with_extra(options, extra)))
    own_gpus = tuple(gpus[: settled.split.num_gpus]) if machine.device_type != "cpu" else ()
    drawn = _Drawn(
        case=case,
        own_model=model,
        settled=settled,
        rope=decision.rope,
        fit=decision.fit,
        options=_on_gpus(options, own_gpus, machine),
        gpus=own_gpus,
        tiers=size_tiers(decision.fit, goal, settled),
        speed=forecast_instance(case.model, machine, goal, settled, decision.fit),
    )
    left_out = {choice.option for choice in lacking}
    kept = tuple(choice for choice in option_choices if choice.option not in left_out)
    choices = (
        release_choices + decision.choices + settled.choices + decision.fit.choices + kept + lacking + block_choices
    )
    return PlannedInstance(_told(named.name, drawn), _deployment(drawn), choices + drawn.speed.choices, case, decision)


def _keep_experts_whole(probe: Deployment) -> tuple[EngineOptions, tuple[Choice, ...]]:
    """Expert parallelism where the tensor parallel size would cut blocks of quantized experts."""
    options = with_whole_experts(probe).options
    if options == probe.options:
        return options, ()
    why = f"{probe.tp_size} GPUs would cut experts in the middle of a quantization block; it spreads whole ones"
    return options, (Choice(WHOLE_EXPERTS, "on", why),)


def _check_prompt(goal: Goal, max_model_len: int) -> None:
    """UsageError where the typical request, as far as it is given, is longer than the longest."""
    prompt, answer = goal.mean_input_tokens or 0, goal.mean_output_tokens or 0
    if prompt + answer > max_model_len:
        given = " and ".join(
            f"{name} {format_tokens(tokens)}"
            for name, tokens in (("--mean-input", prompt), ("--mean-output", answer))
            if tokens
        )
        why = f"no request is longer than --max-model-len, which is {format_tokens(max_model_len)} tokens"
        raise UsageError(f"{given} cannot be", why, f"--max-model-len {prompt + answer}, or a shorter typical request")


def _told(name: str, drawn: _Drawn) -> InstancePlan:
    goal, settled, fit = drawn.case.goal, drawn.settled, drawn.fit
    rendered = with_older_rope(drawn.options, drawn.case.release)
    command = render_command(rendered, drawn.case.release)
    return InstancePlan(
        name=name,
        argv=command.argv,
        env=dict(command.env),
        shell=render_shell(command),
        host=rendered.host,
        port=rendered.port,
        gpu_indices=drawn.gpus,
        max_model_len=settled.max_model_len,
        options=rendered,
        kv_cache=fit.capacity,
        memory=fit.memory,
        rope=drawn.rope,
        tiers=planned_tiers(drawn.tiers, drawn.speed.tiers),
        tier_forecasts=drawn.speed.tiers,
        speed=drawn.speed.forecasts,
        concurrency_at_mean_input=concurrency_at_mean_input(fit, goal, settled, drawn.tiers),
    )


def _deployment(drawn: _Drawn) -> Deployment:
    goal, settled, fit = drawn.case.goal, drawn.settled, drawn.fit
    return Deployment(
        model=drawn.own_model,
        machine=drawn.case.machine,
        release=drawn.case.release,
        options=drawn.options,
        max_model_len=settled.max_model_len,
        max_num_batched_tokens=settled.max_num_batched_tokens,
        max_num_seqs=settled.max_num_seqs,
        concurrency=goal.concurrency,
        mean_input_tokens=settled.mean_input_tokens,
        mean_output_tokens=goal.mean_output_tokens,
        prompt_shares=goal.prompt_shares,
        capacity=fit.capacity,
        memory=fit.memory,
        rope=drawn.rope,
        tiers=drawn.tiers,
        speed=drawn.speed.forecasts,
        tier_forecasts=drawn.speed.tiers,
        ttft_wish_s=goal.ttft_wish_s,
        kv_request=fit.request,
    )


def _within_cache(settled: Settled, goal: Goal, fit: Fit) -> Settled:
    """A chosen limit stays within what the KV cache can use: blocks for recurrent state, requests of mean length."""
    if goal.max_num_seqs is not None or fit.capacity is None or fit.request is None or not fit.capacity.serves:
        return settled
    tokens = min(settled.mean_input_tokens + (goal.mean_output_tokens or 0), settled.max_model_len)
    held, num_blocks = int(concurrency_at(fit.request, tokens)), fit.capacity.num_blocks
    limits = [(settled.max_num_seqs, "")]
    if goal.concurrency is None:
        why = (
            f"{held} of {format_tokens(tokens)} tokens fit at once: twice that, and no fewer than 16, for shorter ones"
        )
        limits.append((useful_max_num_seqs(held), why))
    if fit.request.model.is_hybrid:
        why = f"the {num_blocks} KV cache blocks: recurrent layers need one for every running sequence"
        limits.append((num_blocks, why))
    most, why = min(limits, key=lambda limit: limit[0])
    if most == settled.max_num_seqs:
        return settled
    others = tuple(choice for choice in settled.choices if choice.option != "--max-num-seqs")
    return replace(settled, max_num_seqs=most, choices=(*others, Choice("--max-num-seqs", str(most), why)))


def _on_gpus(options: EngineOptions, gpus: tuple[int, ...], machine: Machine) -> EngineOptions:
    """Name the visible devices where the instance does not take the whole machine."""
    variable = _VISIBLE_DEVICES.get(machine.device_type)
    if variable is None or len(gpus) == machine.num_gpus:
        return options
    return replace(options, env=((variable, ",".join(map(str, gpus))), *options.env))
