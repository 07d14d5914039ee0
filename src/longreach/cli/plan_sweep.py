"""`longreach plan --sweep`: plan every combination of some settings, show the table and its Pareto front."""

import csv
import io
import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import asdict, dataclass, field, replace
from itertools import product
from math import prod
from pathlib import Path
from typing import Any

import click

from longreach.cli.instance_option import convert_setting
from longreach.cli.live_line import LiveLine
from longreach.cli.params import echo_json, stdout_paint
from longreach.cli.plan_options import GOAL_OPTIONS, WEIGHTS, check_goal, goal_fields
from longreach.cli.planning import Place, find_machine, on_disk, quantization
from longreach.engine.release import get_release
from longreach.errors import LongreachError, UsageError
from longreach.hardware.catalogue import parse_gpus
from longreach.hardware.spec import Machine
from longreach.model.source import load_model
from longreach.model.spec import ModelSpec
from longreach.plan.build import make_plan
from longreach.plan.goal import Goal, NamedGoal
from longreach.plan.sweep import SweepRow, default_values, impossible_row, row_of, with_front
from longreach.units import did_you_mean

MOST_COMBINATIONS = 2000

_EXAMPLE = "--sweep tp,kv-cache-dtype=auto/fp8_e4m3,max-model-len=128k/256k"


def _known_weights(value: str) -> str:
    if value not in WEIGHTS:
        fix = did_you_mean(value, WEIGHTS) or f"weights={'/'.join(WEIGHTS)}"
        raise UsageError(f"unknown weights '{value}'", f"known are {', '.join(WEIGHTS)}", fix)
    return value


_PLACES: dict[str, Callable[[str], object]] = {
    "weights": _known_weights,
    "vllm": lambda value: get_release(value).version,
    "gpus": lambda value: value.lower() if value.lower() == "cpu" else parse_gpus(value),
}  # fmt: skip
"""What is no field of Goal: each value to what it stands for, or a UsageError."""
_NEXT_AXIS = re.compile(r",(?=[a-z][a-z0-9_-]*(?:=|,|$))")
_UNSWEPT = ("disk-tier", "mm-processor-kwargs", "model-path", "served-model-name", "host", "port")
_NAMES = (*(option.key for option in GOAL_OPTIONS if option.constant is None and option.key not in _UNSWEPT), *_PLACES)


@dataclass(frozen=True, slots=True)
class Axis:
    """One setting and the values it takes, as an option takes them; empty: those that make sense for the model and machine."""

    name: str
    values: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Swept:
    """What every combination starts from."""

    model: str
    release: str
    goal: Goal
    place: Place
    models: dict[str | None, ModelSpec] = field(default_factory=dict)
    machines: dict[str | None, Machine] = field(default_factory=dict)

    def find_model(self, weights: str | None) -> ModelSpec:
        """Read once for each weight format."""
        if weights not in self.models:
            self.models[weights] = load_model(self.model, quantization(weights))
        return self.models[weights]

    def find_machine(self, gpus: str | None) -> Machine:
        """Looked up once for each choice of GPUs."""
        if gpus not in self.machines:
            place = self.place
            self.machines[gpus] = find_machine(gpus=gpus, link=place.link, ram=place.ram, numa=place.numa)
        return self.machines[gpus]


def parse_axes(text: str) -> tuple[Axis, ...]:
    """`tp,kv_cache_dtype=auto/fp8_e4m3` to axes. UsageError for an unknown or repeated name and for an empty value."""
    axes: list[Axis] = []
    for part in filter(None, _NEXT_AXIS.split(text)):
        name, separator, values = part.partition("=")
        name = name.strip().replace("_", "-")
        if name not in _NAMES:
            hint = did_you_mean(name, _NAMES) or f"names: {', '.join(_NAMES)}"
            raise UsageError(
                f"--sweep cannot go over '{name}'", "it goes over options of plan, named without dashes in front", hint
            )
        if name in (axis.name for axis in axes):
            raise UsageError(f"--sweep names {name} twice", "each setting is one column of the table", _EXAMPLE)
        given = tuple(value.strip() for value in values.split("/")) if separator else ()
        if not all(given):
            raise UsageError(f"--sweep gives {name} an empty value", "values are separated by single slashes", _EXAMPLE)
        axes.append(Axis(name, tuple(dict.fromkeys(given))))
    if not axes:
        raise UsageError("--sweep names nothing", "it goes over one or more options of plan", _EXAMPLE)
    return tuple(axes)


def run_sweep(text: str, swept: Swept, output: Path | None, *, as_json: bool) -> int:
    """Print the table; exit code 0 when a combination fits."""
    axes = _with_values(parse_axes(text), swept)
    _check(axes, output)
    planned, is_whole = _plan_all(axes, swept)
    rows = with_front(planned)
    if output is not None:
        from longreach.host.files import write_text_atomically

        write_text_atomically(output, _csv(axes, rows))
    if as_json:
        document = [asdict(row) for row in rows]
        echo_json({"complete": is_whole, "sweep": document, "pareto": [row for row in document if row["pareto"]]})
    else:
        from longreach.report.plan_sweep_text import render_sweep

        click.echo(render_sweep([axis.name for axis in axes], rows, stdout_paint()))
    if not is_whole:
        if output is not None:
            click.echo(f"{output} holds these {len(rows):,} rows and is not complete", err=True)
        raise click.Abort
    return 0 if any(row.verdict == "fits" for row in rows) else 1


def _with_values(axes: tuple[Axis, ...], swept: Swept) -> tuple[Axis, ...]:
    """The axes with the values that make sense where none were given."""
    model, machine = swept.find_model(swept.place.weights), swept.find_machine(swept.place.gpus)
    filled = []
    for axis in axes:
        values = axis.values or default_values(axis.name, model, machine, swept.goal)
        if not values:
            raise UsageError(f"--sweep {axis.name} needs values", "no list of values makes sense for it by itself",
                             f"--sweep {axis.name}=VALUE/VALUE")  # fmt: skip
        meanings = {repr(_meaning(axis.name, value)): value for value in reversed(values)}  # of two names the first
        filled.append(Axis(axis.name, tuple(value for value in values if value in meanings.values())))
    return tuple(filled)


def _check(axes: tuple[Axis, ...], output: Path | None) -> None:
    count = prod(len(axis.values) for axis in axes)
    if count > MOST_COMBINATIONS:
        sizes = " x ".join(f"{len(axis.values)} {axis.name}" for axis in axes)
        raise UsageError(
            f"--sweep comes to {count:,} combinations",
            f"{sizes}; at most {MOST_COMBINATIONS:,} are planned",
            f"name fewer values: {_EXAMPLE}",
        )
    if output is not None and output.suffix != ".csv":
        raise UsageError(f"a sweep cannot be written to '{output}'", "it is a table, not a plan", "-o table.csv")


def _plan_all(axes: tuple[Axis, ...], swept: Swept) -> tuple[list[SweepRow], bool]:
    """(rows, whether that is all of them): Ctrl-C ends the planning and keeps what is there."""
    rows: list[SweepRow] = []
    count = prod(len(axis.values) for axis in axes)
    line = LiveLine()
    line.start()
    try:
        for settings in _combinations(axes):
            line.update(f"planning {len(rows) + 1:,} of {count:,} combinations")
            rows.append(_plan_one(settings, swept))
    except KeyboardInterrupt:
        line.say(f"stopped after {len(rows):,} of {count:,} combinations")
        return rows, False
    finally:
        line.close()
    return rows, True


def _combinations(axes: tuple[Axis, ...]) -> Iterator[dict[str, str]]:
    for values in product(*(axis.values for axis in axes)):
        yield dict(zip((axis.name for axis in axes), values, strict=True))


def _plan_one(settings: dict[str, str], swept: Swept) -> SweepRow:
    """The plan that these settings, given as options, would make."""
    fields: dict[str, Any] = {}
    for name, value in settings.items():
        fields |= _fields(name, value)
    try:
        goal = check_goal(replace(swept.goal, **fields))
        model = swept.find_model(settings.get("weights", swept.place.weights))
        machine = swept.find_machine(settings.get("gpus", swept.place.gpus))
        release = get_release(settings.get("vllm", swept.release))
        named = on_disk(NamedGoal("main", goal), swept.model)
        return row_of(settings, make_plan(model, machine, release, [named], with_alternatives=False))
    except LongreachError as error:
        return impossible_row(settings, error)


def _meaning(name: str, value: str) -> object:
    """What a value stands for; UsageError for what cannot be read or is not known, before anything is planned."""
    return _PLACES[name](value) if name in _PLACES else _fields(name, value)


def _fields(name: str, value: str) -> Mapping[str, Any]:
    """Fields of Goal that a value fills; none for what is no part of a goal."""
    if name in _PLACES:
        return {}
    option = next(option for option in GOAL_OPTIONS if option.key == name)
    return goal_fields({option.field: convert_setting(option, value)})


def _csv(axes: tuple[Axis, ...], rows: tuple[SweepRow, ...]) -> str:
    from longreach.report.plan_sweep_text import CSV_COLUMNS, csv_cells

    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow((*(axis.name for axis in axes), *CSV_COLUMNS))
    writer.writerows((*row.settings.values(), *csv_cells(row)) for row in rows)
    return text.getvalue()
