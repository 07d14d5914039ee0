"""What the engine itself accepts: runs under the engine's Python and imports vLLM only.

stdout, last line: {"options": [{"spellings", "kind", "nargs", "choices", "default", "optional"}], "names": {family: [...]},
"settings": {class: [key, ...]}, "former_architectures": {name: release}}.
"""

import argparse
import dataclasses
import inspect
import json
from collections.abc import Callable, Mapping
from typing import Any, get_args

from vllm import config, envs
from vllm.config.cache import CacheDType
from vllm.config.speculative import SpeculativeMethod
from vllm.distributed.kv_transfer.kv_connector.factory import KVConnectorFactory
from vllm.entrypoints.cli.serve import ServeSubcommand
from vllm.model_executor.layers.quantization import QUANTIZATION_METHODS
from vllm.model_executor.models import registry
from vllm.reasoning import ReasoningParserManager
from vllm.tool_parsers import ToolParserManager
from vllm.utils.argparse_utils import FlexibleArgumentParser
from vllm.v1.attention.backends.registry import AttentionBackendEnum
from vllm.v1.kv_offload.factory import OffloadingSpecFactory
from vllm.v1.kv_offload.tiering.factory import SecondaryTierFactory

KINDS: Mapping[object, str] = {int: "int", float: "float", str: "text", None: "text", json.loads: "json"}
FUNCTION_KINDS = {
    "human_readable_int": "size",
    "human_readable_int_or_auto": "length",
    "union_dict_and_str": "json_or_text",
    "parse_dataclass": "json",
}


def unwrap(convert: Any) -> tuple[Any, bool]:
    """The conversion inside `parse_type` and `optional_type`, and whether an empty text is taken as none."""
    optional = False
    while "return_type" in getattr(getattr(convert, "__code__", None), "co_freevars", ()):
        optional = optional or convert.__name__ == "_optional_type"
        convert = convert.__closure__[convert.__code__.co_freevars.index("return_type")].cell_contents
    return convert, optional


def find_kind(action: argparse.Action) -> str:
    """The kind of value, in the registry's words."""
    if isinstance(action, argparse.BooleanOptionalAction):
        return "bool"
    if action.nargs == 0:
        return "switch"
    convert: Callable[[str], Any] | None = unwrap(action.type)[0]
    name = getattr(convert, "__name__", "")
    return FUNCTION_KINDS.get(name) or KINDS.get(convert, "text")


def as_json(value: Any) -> Any:
    """A default as JSON; None where it is an object of the engine."""
    if isinstance(value, set | tuple):
        return sorted(value)
    if value is argparse.SUPPRESS or dataclasses.is_dataclass(value):
        return None
    return value


def describe(action: argparse.Action) -> dict[str, Any]:
    return {
        "spellings": action.option_strings,
        "kind": find_kind(action),
        "nargs": str(action.nargs or ("0" if action.nargs == 0 else "1")),
        "choices": None if action.choices is None else [choice for choice in action.choices if choice is not None],
        "default": as_json(action.default),
        "optional": unwrap(action.type)[1] and (action.choices is None or None in action.choices),
    }


def list_options() -> list[dict[str, Any]]:
    """Every option of the parser that the `vllm` program builds."""
    parser = FlexibleArgumentParser(prog="vllm")
    serve = ServeSubcommand().subparser_init(parser.add_subparsers(required=True, dest="subparser"))
    return [describe(action) for action in serve._actions if action.option_strings]


def list_names() -> dict[str, list[str]]:
    """The names in the engine's own registries, by family."""
    found: dict[str, Any] = {
        "env": envs.environment_variables,
        "kv_cache_dtype": get_args(CacheDType),
        "spec_method": get_args(SpeculativeMethod),
        "connector": KVConnectorFactory._registry,
        "offload_spec": OffloadingSpecFactory._registry,
        "secondary_tier": SecondaryTierFactory._registry,
        "tool_parser": ToolParserManager.list_registered(),
        "reasoning_parser": ReasoningParserManager.list_registered(),
        "quantization": QUANTIZATION_METHODS,
        "attention_backend": AttentionBackendEnum.__members__,
        "architecture": registry.ModelRegistry.get_supported_archs(),
    }
    return {family: sorted(names) for family, names in found.items()}


def list_settings() -> dict[str, list[str]]:
    """The keys that the constructor of each settings class takes, those that only it takes included."""
    classes = {
        name: cls for name, cls in vars(config).items() if isinstance(cls, type) and dataclasses.is_dataclass(cls)
    }
    return {
        name: sorted(word for word in inspect.signature(cls).parameters if not word.startswith("_"))
        for name, cls in classes.items()
    }


if __name__ == "__main__":
    answer = {
        "options": list_options(),
        "names": list_names(),
        "settings": list_settings(),
        "former_architectures": registry._PREVIOUSLY_SUPPORTED_MODELS,
    }
    print(json.dumps(answer, default=str))  # noqa: T201 - the answer to the test
