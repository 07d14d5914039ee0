"""From what was typed to a plan: find the model, the machine and the release, then decide."""

import os
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from longreach.cli.instance_option import instance_goals
from longreach.cli.plan_options import check_goal
from longreach.engine.release import get_release
from longreach.errors import UsageError
from longreach.hardware.spec import Machine
from longreach.plan.build import make_plan
from longreach.plan.goal import Goal, NamedGoal
from longreach.plan.mix import parse_mix
from longreach.plan.values import Plan, VariantName


@dataclass(frozen=True, slots=True)
class Place:
    """Where a model is to run, as typed; None where it was not."""

    weights: str | None = None
    gpus: str | None = None
    link: str | None = None
    ram: int | None = None
    numa: int | None = None


@dataclass(frozen=True, slots=True)
class Shape:
    """Into how many instances the machine is cut, as typed: equal ones, named ones, or what a mix of prompts needs."""

    instances: int | None = None
    instance_texts: tuple[str, ...] = ()
    mix: str | None = None
    variant: VariantName | None = None

    def check(self, goal: Goal, *, has_sweep: bool) -> None:
        """UsageError for options that exclude each other."""
        several = "--instance" if self.instance_texts else "--instances" if self.instances is not None else None
        if has_sweep and (several or self.mix is not None):
            why = "each combination is one instance on the whole machine"
            raise UsageError(f"--sweep does not go with {several or '--mix'}", why, f"leave {several or '--mix'} out")
        if self.mix is None:
            if self.variant is not None:
                raise UsageError(
                    "--variant needs --mix", "it chooses between two ways to serve one", "--mix 90%:8k,10%:500k"
                )
            return
        if several:
            why = "the mix decides how many instances there are"
            raise UsageError(f"--mix does not go with {several}", why, f"leave {several} out, or use --variant")
        if goal.mean_input_tokens is not None:
            raise UsageError(
                "both --mix and --mean-input are given", "the mix says how long prompts are", "leave --mean-input out"
            )


def make_plan_from(model: str, release: str, goal: Goal, place: Place, shape: Shape | None = None) -> Plan:
    """The plan for what was typed; one instance where no shape is given."""
    from longreach.model.source import load_model

    shape = shape or Shape()
    known_release = get_release(release)
    machine = find_machine(gpus=place.gpus, link=place.link, ram=place.ram, numa=place.numa)
    spec = load_model(model, quantization(place.weights))
    if shape.mix is not None:
        from longreach.plan.choose_variant import plan_mix
        from longreach.plan.variants import MixRequest

        named = on_disk(NamedGoal("main", check_goal(goal)), model)
        return plan_mix(MixRequest(spec, machine, known_release, named.goal, parse_mix(shape.mix)), shape.variant)
    goals = instance_goals(shape.instance_texts, goal, shape.instances)
    return make_plan(spec, machine, known_release, [on_disk(named, model) for named in goals])


def quantization(weights: str | None) -> Any:
    """The name of a weight format inside, from the one typed."""
    return "none" if weights == "bf16" else weights


def on_disk(named: NamedGoal, model: str) -> NamedGoal:
    """A model that was named by its folder is served from there."""
    path = Path(model)
    if named.goal.model_path is not None or not path.exists():
        return named
    folder = path if path.is_dir() else path.parent
    return NamedGoal(named.name, replace(named.goal, model_path=str(folder)))


def find_machine(*, gpus: str | None, link: str | None, ram: int | None, numa: int | None) -> Machine:
    """The machine that was typed, or this one."""
    from longreach.hardware.catalogue import parse_gpus
    from longreach.hardware.machine import machine_from

    if gpus is not None and gpus.lower() == "cpu":
        return machine_from(None, 0, None, ram, numa)
    if gpus is not None:
        order = parse_gpus(gpus)
        assumed = (order.assumption,) if order.assumption else ()
        return machine_from(order.gpu, order.count, link, ram, numa, assumptions=assumed)
    from longreach.host.machine import detect_machine

    found = detect_machine(os.environ)
    known = replace(found, ram_bytes=ram or found.ram_bytes, num_numa_nodes=numa or found.num_numa_nodes)
    if found.gpu is None:  # a CPU machine, or cards that the catalogue does not know
        return known
    named = machine_from(found.gpu, found.num_gpus, link, known.ram_bytes, known.num_numa_nodes)
    return replace(named, assumptions=(*found.assumptions, *named.assumptions), shm_bytes=found.shm_bytes)
