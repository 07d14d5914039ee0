"""The plan as a document (what `--json` prints and plan.yaml holds) and back.

`argv` and `env` are the authority on what runs: `options`, `shell`, length, host and port are derived from them again when a
document is read, so a flag edited by hand takes effect and the difference to the planned figures is found when the engine starts.
"""

import math
from collections.abc import Mapping
from dataclasses import asdict
from typing import Any

from longreach.engine.checks import check_options, raise_problems
from longreach.engine.command import parse_command
from longreach.engine.options import EngineOptions, ServeCommand, freeze
from longreach.engine.release import Release, get_release
from longreach.engine.shell import render_shell
from longreach.errors import InputFileError, LongreachError, UnknownModelError
from longreach.plan.values import SCHEMA, Plan
from longreach.rules.observed import MODEL_NOT_UNDERSTOOD

_REPLAN = "make it again with: longreach plan MODEL ... -o plan.yaml"


def plan_to_document(plan: Plan) -> dict[str, Any]:
    """Plain dicts, lists, strings and numbers; keys as in the JSON contract, `schema` first."""
    document = asdict(plan)
    for instance in (
        *document["instances"],
        *(item for variant in document["variants"] for item in variant["instances"]),
    ):
        del instance["options"]
    for finding in document["findings"]:
        del finding["edit"]  # of foreign commands only
    schema = document.pop("schema")
    return {"schema": schema, **_plain(document)}


def unknown_document(model: str, release: str, error: UnknownModelError) -> dict[str, Any]:
    """The document for a model whose KV cache is not understood: a verdict and the reason, and no number."""
    finding = MODEL_NOT_UNDERSTOOD.finding(error.what, error.why, error.fix)
    return {
        "schema": SCHEMA,
        "verdict": "unknown",
        "model": {"name": model},
        "machine": None,
        "release": release,
        "instances": [],
        "findings": [asdict(finding)],
    }


def plan_from_document(document: object, origin: str = "plan") -> Plan:
    """A plan from a parsed document; unknown keys, wrong types and other schema versions are InputFileErrors."""
    if not isinstance(document, Mapping):
        raise InputFileError(f"{origin} is not a plan", f"it holds a {type(document).__name__}, not a mapping", _REPLAN)
    if document.get("schema") != SCHEMA:
        found = document.get("schema")
        why = f"its schema is {found!r}" if found else "it has no 'schema' key"
        raise InputFileError(f"{origin} is not a plan this version reads", f"{why}; expected {SCHEMA!r}", _REPLAN)
    return _structure(_with_derived(document, origin), origin)


def _with_derived(document: Mapping[str, Any], origin: str) -> dict[str, Any]:
    try:
        release = get_release(str(document.get("release")))
    except LongreachError as error:
        raise InputFileError(f"{origin} is for an {error.what}", error.why, _REPLAN) from error
    derived = {**document, "instances": _derive_all(document.get("instances"), release, origin)}
    if isinstance(variants := document.get("variants"), list):
        derived["variants"] = [
            {**variant, "instances": _derive_all(variant.get("instances"), release, origin)}
            if isinstance(variant, Mapping)
            else variant
            for variant in variants
        ]
    return derived


def _derive_all(instances: object, release: Release, origin: str) -> list[dict[str, Any]]:
    if not isinstance(instances, list) or not instances or not all(isinstance(item, Mapping) for item in instances):
        found = "empty" if instances == [] else type(instances).__name__
        raise InputFileError(f"{origin} has no list of instances", f"'instances' is {found}", _REPLAN)
    derived = [_derive(instance, release, origin) for instance in instances]
    for field in ("name", "port"):
        values = [str(instance.get(field)) for instance in derived]
        if len(set(values)) < len(values):
            raise InputFileError(f"{origin} gives two instances one {field}", f"found {', '.join(values)}", _REPLAN)
    return derived


def _derive(instance: Mapping[str, Any], release: Release, origin: str) -> dict[str, Any]:
    argv, env = instance.get("argv"), instance.get("env", {})
    if not isinstance(argv, list) or not all(isinstance(word, str) for word in argv):
        raise InputFileError(f"{origin} has an instance without argv", "argv must be a list of strings", _REPLAN)
    if not isinstance(env, Mapping) or not all(isinstance(text, str) for pair in env.items() for text in pair):
        raise InputFileError(f"{origin} has a malformed env", "env must map names to strings (quote numbers)", _REPLAN)
    command = ServeCommand(tuple(argv), tuple(env.items()))
    try:
        options = parse_command(command.argv, command.env, release)
        raise_problems(check_options(options, release))
    except LongreachError as error:
        why = f"{error.what}: {error.why}"
        fix = f"{error.fix}; or {_REPLAN}"
        raise InputFileError(f"{origin} holds a command that vLLM would refuse", why, fix) from error
    derived = {"shell": render_shell(command), "host": options.host, "port": options.port, "options": options}
    if options.max_model_len is not None and isinstance(instance.get("max_model_len"), int):
        derived["max_model_len"] = options.max_model_len
    return {**instance, **derived}


def _structure(document: dict[str, Any], origin: str) -> Plan:
    # Imported here: 70 ms that only those who read a plan pay.
    from cattrs import ClassValidationError, Converter, transform_error

    converter = Converter(forbid_extra_keys=True, detailed_validation=True)
    converter.register_structure_hook(EngineOptions, lambda value, _: value)
    converter.register_structure_hook_func(lambda kind: kind is object, lambda value, _: freeze(value))
    for kind in (int, float, str, bool):
        converter.register_structure_hook(kind, _strict)
    try:
        return converter.structure(document, Plan)
    except ClassValidationError as error:
        problems = transform_error(error, path=origin, format_exception=_said)
        raise InputFileError(f"{origin} is not a valid plan", "; ".join(problems[:5]), _REPLAN) from error


def _said(error: BaseException, kind: type | None) -> str:
    if isinstance(error, KeyError):
        return f"{error} is missing"
    if extra := getattr(error, "extra_fields", None):
        return f"unknown: {', '.join(sorted(map(str, extra)))}"
    if isinstance(error, AttributeError | TypeError):
        return f"not {'an object' if kind is None else kind.__name__}"
    return str(error)


def _strict(value: Any, kind: type) -> Any:
    """No silent conversion: YAML already has types. An int stands for a float, a bool for nothing but a bool."""
    if kind is float and type(value) is int:
        return float(value)
    if type(value) is not kind or (type(value) is float and not math.isfinite(value)):
        raise ValueError(f"expected {kind.__name__}, found {str(value)[:80]!r}")
    return value


def _plain(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _plain(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(item) for item in value]
    return value
