"""Scripts inside of YAML: steps of workflows and pipelines, tasks of SkyPilot and Ansible. Pure."""

from collections.abc import Iterator
from dataclasses import dataclass

import yaml

from longreach.engine.launchfiles.start import mentions_server
from longreach.engine.launchfiles.yaml_nodes import Mapping, Scalar, as_mapping, as_scalar, as_scalars

_SCRIPTS = frozenset(
    (
        "run",
        "script",
        "before_script",
        "shell",
        "ansible.builtin.shell",
        "cmd",
        "bash",
        "postStartCommand",
        "entrypoint_script",
    )
)
_ENVIRONMENTS = ("env", "envs", "environment", "variables")
_MAX_NODES = 200_000


@dataclass(frozen=True, slots=True)
class YamlScript:
    """One script, and the variables that the mappings around it give it."""

    text: str
    line: int
    env: tuple[tuple[str, str], ...]


def read_scripts(document: Mapping) -> Iterator[YamlScript]:
    """Every script that may start a server; each mapping once, however often it is referred to."""
    waiting: list[tuple[yaml.Node, dict[str, str]]] = [(document.node, {})]
    seen: set[int] = set()
    while waiting and len(seen) < _MAX_NODES:
        node, env = waiting.pop()
        if id(node) in seen or isinstance(node, yaml.ScalarNode):
            continue
        seen.add(id(node))
        mapping = as_mapping(node)
        if mapping is None:
            waiting += [(item, env) for item in reversed(node.value)]
            continue
        env = env | _environment(mapping)
        for name, value in mapping.pairs().items():
            if name in _SCRIPTS:
                yield from _scripts(value, env)
        waiting += [(value, env) for value in reversed(mapping.pairs().values())]


def _scripts(node: yaml.Node, env: dict[str, str]) -> Iterator[YamlScript]:
    scalar = as_scalar(node)
    lines: tuple[Scalar, ...] = (scalar,) if scalar is not None else as_scalars(node) or ()
    for line in lines:
        if mentions_server(line.text):
            yield YamlScript(line.text, line.line, tuple(env.items()))


def _environment(mapping: Mapping) -> dict[str, str]:
    found: dict[str, str] = {}
    for key in _ENVIRONMENTS:
        inner = mapping.mapping(key)
        for name, node in inner.pairs().items() if inner is not None else ():
            value = as_scalar(node)
            found[name] = f"${name}" if value is None else value.text
    return found
