"""The names of each family: environment variables, dtypes, methods, connectors, parsers, backends, architectures."""

import ast
from collections.abc import Iterator
from dataclasses import dataclass
from enum import Enum
from typing import Any

from tools.registry.annotations import names_in
from tools.registry.interpreter import Interpreter
from tools.registry.values import Scope, Unknown

_TYPES = {"kv_cache_dtype": "CacheDType", "spec_method": "SpeculativeMethod", "quantization": "QuantizationMethods"}
_CALLS = {
    "connector": "KVConnectorFactory.register_connector",
    "offload_spec": "OffloadingSpecFactory.register_spec",
    "secondary_tier": "SecondaryTierFactory.register_tier",
    "tool_parser": "ToolParserManager.register_module",
    "reasoning_parser": "ReasoningParserManager.register_module",
}
_TABLES = {"tool_parser": "_TOOL_PARSERS_TO_REGISTER", "reasoning_parser": "_REASONING_PARSERS_TO_REGISTER"}
_BACKENDS = ("AttentionBackendEnum", "_Backend")  # the second before 0.11.1
_MODELS = "vllm.model_executor.models.registry"


@dataclass(frozen=True)
class Registration:
    """One call that registers a class under names."""

    names: tuple[str, ...]
    module: str | None  # of the class, where it is named
    cls: str | None


def read_families(interpreter: Interpreter) -> dict[str, set[str]]:
    """Family to names."""
    found: dict[str, set[str]] = {"env": read_environment(interpreter)}
    for family, name in _TYPES.items():
        found[family] = set(names_in(find_value(interpreter, name)))
    for family, call in _CALLS.items():
        found[family] = {name for row in registrations(interpreter, call) for name in row.names}
    for family, name in _TABLES.items():
        table = find_value(interpreter, name)
        found[family] |= set(table) if isinstance(table, dict) else set()
    backends = (find_value(interpreter, name) for name in _BACKENDS)
    found["attention_backend"] = {
        name
        for backend in backends
        if isinstance(backend, type) and issubclass(backend, Enum)
        for name in backend.__members__
    }
    models = interpreter.import_value(f"{_MODELS}._VLLM_MODELS")
    found["architecture"] = set(models) if isinstance(models, dict) else set()
    return found


def read_former_architectures(interpreter: Interpreter) -> dict[str, str]:
    """Architectures that the release says it has dropped, to the last release that had each."""
    table = interpreter.import_value(f"{_MODELS}._PREVIOUSLY_SUPPORTED_MODELS")
    return (
        {name: version for name, version in table.items() if isinstance(version, str)}
        if isinstance(table, dict)
        else {}
    )


def read_environment(interpreter: Interpreter) -> set[str]:
    """Names of the environment variables that vLLM reads through its own table."""
    table = interpreter.import_value("vllm.envs.environment_variables")
    return {name for name in table if isinstance(name, str)} if isinstance(table, dict) else set()


def find_value(interpreter: Interpreter, name: str) -> Any:
    """The value of a name that one module of the release defines at its top; Unknown when none does."""
    module = interpreter.tree.defining(name)
    return interpreter.global_value(module.name, name) if module else Unknown(name)


def registrations(interpreter: Interpreter, call: str) -> Iterator[Registration]:
    """Calls of `Factory.register_x(names, module, class)` at the top of a module or as a decorator, anywhere."""
    for module in interpreter.tree.modules_with(f"{call}("):
        scope = Scope(module.name)
        for node in ast.walk(ast.Module(module.body, [])):
            if isinstance(node, ast.Call) and ast.unparse(node.func) == call:
                words = {word.arg: word.value for word in node.keywords}
                given = [*node.args, *(words[name] for name in ("name", "module_path", "class_name") if name in words)]
                values = [interpreter.evaluate(value, scope) for value in given]
                names = values[0] if values else ()
                if isinstance(names, str | list | tuple):
                    yield Registration(_as_names(names), *_as_texts(values[1:3]))


def _as_names(names: str | list[Any] | tuple[Any, ...]) -> tuple[str, ...]:
    return (names,) if isinstance(names, str) else tuple(name for name in names if isinstance(name, str))


def _as_texts(values: list[Any]) -> tuple[str | None, str | None]:
    texts = [value if isinstance(value, str) else None for value in values] + [None, None]
    return texts[0], texts[1]
