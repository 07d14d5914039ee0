"""Scripts inside of YAML: steps of workflows and pipelines, tasks of SkyPilot and Ansible. Pure."""

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import islice

import yaml

from longreach.engine.launchfiles.start import mentions_server
from longreach.engine.launchfiles.yaml_nodes import Mapping, Scalar, as_mapping, as_scalar, as_scalars, own_pairs

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
_MAX_VARIABLES = 200


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
        if isinstance(node, yaml.SequenceNode):
            waiting += [(item, env) for item in reversed(node.value)]
            continue
        assert isinstance(node, yaml.MappingNode)
        own = dict(own_pairs(node))
        added = _environment(own)
        env = dict(islice((env | added).items(), _MAX_VARIABLES)) if added else env
        for name, value in own.items():
            if name in _SCRIPTS:
                yield from _scripts(value, env)
        waiting += [(value, env) for value in reversed(own.values())]


def _scripts(node: yaml.Node, env: dict[str, str]) -> Iterator[YamlScript]:
    scalar = as_scalar(node)
    lines: tuple[Scalar, ...] = (scalar,) if scalar is not None else as_scalars(node) or ()
    for line in lines:
        if mentions_server(line.text):
            yield YamlScript(line.text, line.line, tuple(env.items()))


def _environment(own: dict[str, yaml.Node]) -> dict[str, str]:
    found: dict[str, str] = {}
    for key in _ENVIRONMENTS:
        inner = as_mapping(own.get(key))
        for name, node in inner.pairs().items() if inner is not None else ():
            value = as_scalar(node)
            found[name] = f"${name}" if value is None else value.text
    return found
