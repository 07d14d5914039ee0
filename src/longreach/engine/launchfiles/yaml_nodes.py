"""YAML as nodes: scalars keep the text and the style they were written in, aliases are not multiplied. Pure."""

import re
from collections import deque
from collections.abc import Iterator
from dataclasses import dataclass

import yaml

from longreach.errors import UsageError

_TEMPLATE = re.compile(r"\{\{.*?\}\}|\{%")
_MAX_MERGES = 20
_MAX_ITEMS = 2_000


@dataclass(frozen=True, slots=True)
class Scalar:
    """One scalar: its text after YAML's own rules, the line it begins on, and whether YAML joined its lines."""

    text: str
    line: int  # 1-based
    is_folded: bool


class Mapping:
    """A mapping node, `<<` merged in. Wraps rather than copies, so that a short text cannot grow."""

    def __init__(self, node: yaml.MappingNode) -> None:
        self.node = node

    @property
    def line(self) -> int:
        """Where it begins, 1-based."""
        return int(self.node.start_mark.line) + 1

    def get(self, key: str) -> yaml.Node | None:
        """The value under a key: its own, else one that is merged in."""
        return next((value for node in self._layers() for name, value in own_pairs(node) if name == key), None)

    def pairs(self) -> dict[str, yaml.Node]:
        """Every key with its value, merged ones first."""
        found: dict[str, yaml.Node] = {}
        for node in reversed(list(self._layers())):
            found.update((name, value) for name, value in own_pairs(node) if name != "<<")
        return found

    def _layers(self) -> Iterator[yaml.MappingNode]:
        """The mapping itself, then what is merged in; what comes first holds."""
        waiting, seen = [self.node], 0
        while waiting and seen < _MAX_MERGES:
            node = waiting.pop(0)
            seen += 1
            yield node
            for name, value in own_pairs(node):
                if name == "<<":
                    waiting += [item for item in _listed(value) if isinstance(item, yaml.MappingNode)]

    def scalar(self, key: str) -> Scalar | None:
        """The scalar under a key."""
        return as_scalar(self.get(key))

    def text(self, key: str) -> str | None:
        """The text of the scalar under a key."""
        scalar = self.scalar(key)
        return scalar.text if scalar is not None else None

    def mapping(self, *keys: str) -> "Mapping | None":
        """The mapping under a path of keys."""
        found: Mapping | None = self
        for key in keys:
            found = as_mapping(found.get(key)) if found is not None else None
        return found

    def items(self, key: str) -> tuple[yaml.Node, ...]:
        """The items of the sequence under a key."""
        return as_items(self.get(key))


def read_documents(text: str, name: str) -> Iterator[Mapping | tuple[Scalar, ...]]:
    """Every document of the file that may hold a command: a mapping, or a plain list of words. UsageError for no YAML."""
    loader: type[yaml.SafeLoader] = yaml.SafeLoader  # libyaml's would overflow the C stack on a deep text
    try:
        nodes = list(yaml.compose_all(text, Loader=loader))
    except (yaml.YAMLError, RecursionError) as error:
        why = " ".join(str(error).split())[:300]
        raise UsageError(f"{name or 'the text'} is not YAML", why, _advice(text)) from error
    for node in nodes:
        if isinstance(node, yaml.MappingNode):
            yield Mapping(node)
        elif isinstance(node, yaml.SequenceNode):
            yield from _of_list(node)


def mappings(top: Mapping) -> Iterator[Mapping]:
    """Every mapping in a document, each once however often it is referred to; outer ones first."""
    waiting: deque[yaml.Node] = deque([top.node])
    seen: set[int] = set()
    while waiting:
        node = waiting.popleft()
        if id(node) in seen:
            continue
        seen.add(id(node))
        if isinstance(node, yaml.MappingNode):
            yield Mapping(node)
            waiting += [value for _, value in node.value if not isinstance(value, yaml.ScalarNode)]
        else:
            waiting += [value for value in node.value if not isinstance(value, yaml.ScalarNode)]


def as_scalar(node: yaml.Node | None) -> Scalar | None:
    """A scalar; None for anything else, and for a null."""
    if not isinstance(node, yaml.ScalarNode) or (node.tag == "tag:yaml.org,2002:null" and not node.value):
        return None
    folds = node.style != "|" and node.end_mark.line > node.start_mark.line and node.style != '"'
    first = node.start_mark.line + (2 if node.style in ("|", ">") else 1)
    return Scalar(node.value, first, bool(folds))


def as_mapping(node: yaml.Node | None) -> Mapping | None:
    """A mapping; None for anything else."""
    return Mapping(node) if isinstance(node, yaml.MappingNode) else None


def as_items(node: yaml.Node | None) -> tuple[yaml.Node, ...]:
    """The items of a sequence, not endlessly many; none for anything else."""
    return tuple(node.value[:_MAX_ITEMS]) if isinstance(node, yaml.SequenceNode) else ()


def as_scalars(node: yaml.Node | None) -> tuple[Scalar, ...] | None:
    """The items of a sequence of scalars; None for anything that is no sequence."""
    if not isinstance(node, yaml.SequenceNode):
        return None
    return tuple(scalar for item in as_items(node) if (scalar := as_scalar(item)) is not None)


def _of_list(node: yaml.Node) -> Iterator[Mapping | tuple[Scalar, ...]]:
    words = as_scalars(node) or ()
    if words:
        yield words
    yield from (Mapping(item) for item in as_items(node) if isinstance(item, yaml.MappingNode))


def own_pairs(node: yaml.MappingNode) -> Iterator[tuple[str, yaml.Node]]:
    """Keys that are text, with their values; a key may be any node, even one that holds itself."""
    return ((str(key.value), value) for key, value in node.value if isinstance(key, yaml.ScalarNode))


def _listed(node: yaml.Node) -> list[yaml.Node]:
    return list(as_items(node)) if isinstance(node, yaml.SequenceNode) else [node]


def _advice(document: str) -> str:
    if _TEMPLATE.search(document):
        return "it is a template: render it first (helm template, ansible, ...), and give the result"
    return "mend the YAML, or give the command itself: longreach lint -- vllm serve ..."
