"""The registry's entry of the engine's release, against the engine's own parser and registries."""

import json
import subprocess
from pathlib import Path
from typing import Any

import pytest

from longreach.engine.registry import FAMILIES, FlagEntry, Registry, get_registry

pytestmark = pytest.mark.vllm

ORACLE = Path(__file__).with_name("registry_oracle.py")
VERSION = "0.32.0"

# What the source alone does not tell, named one by one.
CHOICES_BY_PLATFORM = {"--mm-processor-device"}  # "auto", "cpu" and the device that the process finds
DEFAULT_IS_A_MEMBER = {"--mamba-backend": "MambaBackendEnum.TRITON"}  # the registry has the member's value
DEFAULT_WHEN_STARTED = {
    "--log-error-stack",  # an environment variable
    "--limit-mm-per-prompt",  # the rest are whole settings objects
    "--eplb-config",
    "--fault-tolerance-config",
    "--ir-op-priority",
    "--ec-manager-config",
    "--compilation-config",
    "--attention-config",
    "--kernel-config",
    "--structured-outputs-config",
    "--aux-output-config",
    "--profiler-config",
}


@pytest.fixture(scope="module")
def engine(engine_python: Path) -> dict[str, Any]:
    done = subprocess.run([engine_python, ORACLE], capture_output=True, text=True, timeout=240, check=False)
    assert done.returncode == 0, done.stderr[-2000:]
    answer: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    return answer


@pytest.fixture(scope="module")
def registry() -> Registry:
    return get_registry(VERSION)


def pairs(engine: dict[str, Any], registry: Registry) -> list[tuple[dict[str, Any], FlagEntry]]:
    """Each option of the parser with its entry."""
    found = [(option, registry.find(option["spellings"][-1])) for option in engine["options"]]
    return [(option, entry) for option, entry in found if entry is not None]


def test_options_are_spelled_as_the_parser_spells_them(engine: dict[str, Any], registry: Registry) -> None:
    spelled = {spelling for option in engine["options"] for spelling in option["spellings"]}
    assert spelled ^ {word for flag in registry.flags.values() for word in flag.spellings} == {"-h", "--help"}
    assert len(pairs(engine, registry)) == len(registry.flags) == len(engine["options"]) - 1


@pytest.mark.parametrize("key", ["kind", "nargs", "optional"])
def test_options_take_the_kind_and_number_of_values_that_the_parser_takes(
    key: str, engine: dict[str, Any], registry: Registry
) -> None:
    got = {entry.name: (getattr(entry, key), option[key]) for option, entry in pairs(engine, registry)}
    assert {name: both for name, both in got.items() if both[0] != both[1]} == {}


def test_choices_are_those_that_the_parser_refuses_others_of(engine: dict[str, Any], registry: Registry) -> None:
    unlike = {
        entry.name
        for option, entry in pairs(engine, registry)
        if sorted(map(str, option["choices"] or ())) != sorted(map(str, entry.choices))
    }
    assert unlike == CHOICES_BY_PLATFORM


def test_defaults_are_the_parser_s_where_the_source_tells_them(engine: dict[str, Any], registry: Registry) -> None:
    assert {flag.name for flag in registry.flags.values() if not flag.default_is_static} == DEFAULT_WHEN_STARTED
    unlike = {
        entry.name: option["default"]
        for option, entry in pairs(engine, registry)
        if entry.default_is_static and entry.default != option["default"]
    }
    assert unlike == DEFAULT_IS_A_MEMBER


@pytest.mark.parametrize("family", [family for family in FAMILIES if family != "former_architecture"])
def test_names_are_those_of_the_engine_s_own_registries(
    family: Any, engine: dict[str, Any], registry: Registry
) -> None:
    assert registry.names(family) == set(engine["names"][family])


def test_former_architectures_are_those_that_the_engine_reports(engine: dict[str, Any], registry: Registry) -> None:
    assert registry.former_architectures == engine["former_architectures"]


def test_settings_have_the_keys_that_their_classes_take(engine: dict[str, Any], registry: Registry) -> None:
    shared = registry.settings.keys() & engine["settings"].keys()
    assert len(shared) >= 20
    assert {"SpeculativeConfig", "CompilationConfig", "KVTransferConfig", "AttentionConfig"} <= shared
    unlike = {name: set(registry.settings[name]) ^ set(engine["settings"][name]) for name in shared}
    assert {name: keys for name, keys in unlike.items() if keys} == {}
