"""`--instance NAME:key=value,...`: an instance with settings of its own over the options given for all."""

import re
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import click

from longreach.cli.params import advice_on
from longreach.cli.plan_options import GOAL_OPTIONS, GoalOption, check_goal, goal_fields
from longreach.errors import UsageError
from longreach.plan.goal import Goal, NamedGoal
from longreach.units import did_you_mean, shortened

_EXAMPLE = "--instance short:tp=2,max-model-len=64k"
_NEXT_SETTING = re.compile(r",(?=[a-z][a-z0-9-]*(?:=|,|$))")  # a comma inside JSON is followed by a quote or a bracket
_KV_SIZES = ("kv_cache_memory_bytes", "gpu_memory_utilization")  # one excludes the other


def instance_goals(texts: Sequence[str], base: Goal, count: int | None) -> list[NamedGoal]:
    """The instances of `--instance` texts, else `count` equal ones. UsageError for both, and for what does not parse."""
    if texts and count is not None:
        raise UsageError(
            "both --instance and --instances are given",
            f"--instances {count} makes equal instances, --instance names each",
            "repeat --instance once for each instance",
        )
    if texts:
        return [parse_instance(text, base) for text in texts]
    names = [f"i{index}" for index in range(count)] if count is not None and count > 1 else ["main"]
    return [NamedGoal(name, check_goal(base)) for name in names]


def parse_instance(text: str, base: Goal) -> NamedGoal:
    """`short:tp=2,max-model-len=64k` over the options given for all instances."""
    name, _, settings = text.partition(":")
    if not name or not name.replace("-", "").replace("_", "").isalnum():
        raise UsageError(f"instance '{text}' has no name", "expected NAME or NAME:key=value,...", _EXAMPLE)
    values: dict[str, Any] = {}
    for setting in filter(None, _NEXT_SETTING.split(settings)):
        option, value = _parse_setting(name, setting)
        if option.field in values:
            raise UsageError(
                f"instance '{name}' sets {option.key} twice", "one setting has one value", "keep one of them"
            )
        values[option.field] = value
    fields = goal_fields(values)
    own = [field for field in _KV_SIZES if field in fields]
    cleared: dict[str, Any] = {field: None for field in _KV_SIZES if own and field not in own}
    return NamedGoal(name, check_goal(replace(base, **cleared, **fields)))


def _parse_setting(name: str, setting: str) -> tuple[GoalOption, Any]:
    key, separator, value = setting.partition("=")
    option = next((option for option in GOAL_OPTIONS if option.key == key.strip()), None)
    if option is None:
        known = [option.key for option in GOAL_OPTIONS]
        hint = did_you_mean(key, known) or f"keys: {', '.join(known)}"
        raise UsageError(f"instance '{name}' has an unknown setting '{setting}'", "settings are key=value", hint)
    if option.constant is not None:
        if separator and value != "true":
            why = "it is a switch: its name alone turns it on, and leaving it out does not"
            raise UsageError(f"{setting} is not understood", why, f"--instance {name}:{option.key}")
        return option, option.constant
    if not separator:
        why = "settings are key=value"
        raise UsageError(
            f"instance '{name}' gives {option.key} no value", why, f"{option.key}={option.metavar or 'VALUE'}"
        )
    return option, convert_setting(option, value)


def convert_setting(option: GoalOption, value: str) -> Any:
    """The value as the option reads it; UsageError names the setting."""
    if option.type is None:
        return value
    try:
        return option.type.convert(value, None, None)
    except click.BadParameter as error:
        what = f"{option.key}={shortened(value)} is not understood"
        raise UsageError(what, error.message.rstrip("."), advice_on(option.type, option.key)) from error
