"""From what was typed to a plan: find the model, the machine and the release, then decide."""

import os
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from longreach.engine.release import get_release
from longreach.hardware.spec import Machine
from longreach.plan.build import make_plan
from longreach.plan.goal import NamedGoal
from longreach.plan.values import Plan


@dataclass(frozen=True, slots=True)
class Place:
    """Where a model is to run, as typed; None where it was not."""

    weights: str | None = None
    gpus: str | None = None
    link: str | None = None
    ram: int | None = None
    numa: int | None = None


def make_plan_from(model: str, release: str, goals: Sequence[NamedGoal], *, weights: str | None, **place: Any) -> Plan:
    """`place`: gpus, link, ram, numa as typed; None where not given."""
    from longreach.model.source import load_model

    known_release = get_release(release)
    machine = find_machine(**place)
    named_goals = [on_disk(named, model) for named in goals]
    return make_plan(load_model(model, quantization(weights)), machine, known_release, named_goals)


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
    return replace(named, assumptions=(*found.assumptions, *named.assumptions))
