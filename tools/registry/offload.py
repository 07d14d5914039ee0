"""The keys of `kv_connector_extra_config` that a connector, an offload spec or a secondary tier reads.

vLLM reports no key that nothing reads, so what is read has to be looked for: every `...extra_config.get("key")`,
`["key"]`, `.pop("key")`, `"key" in ...` and `get_from_extra_config("key")` in the modules that make up the thing.
A secondary tier takes the parameters of its constructor, and refuses every other key.
"""

import ast
from collections.abc import Iterable, Iterator

from tools.registry.families import registrations
from tools.registry.interpreter import Interpreter
from tools.registry.tree import Module

_HOMES = ("vllm.distributed.kv_transfer.kv_connector", "vllm.v1.kv_offload", "vllm.v1.simple_kv_offload")
_ELSEWHERE = ("lmcache", "flexkv")  # packages of their own that are handed all keys: what they read cannot be seen
_INJECTED = frozenset({"self", "offloading_spec", "primary_kv_view", "tier_type", "backpressure_detector"})


def read_offload_keys(interpreter: Interpreter) -> dict[str, list[str]]:
    """Connector, offload spec or tier type to the sorted keys it reads."""
    found = dict(_connector_keys(interpreter))
    shared = set(found.get("OffloadingConnector", ()))
    for row in registrations(interpreter, "OffloadingSpecFactory.register_spec"):
        classes = _bases(interpreter, row.module, row.cls)
        folders = {name.rpartition(".")[0] for name in classes}
        keys = {key for folder in folders for module in _in_folder(interpreter, folder) for key in keys_read(module)}
        found[row.names[0]] = sorted(shared | keys)
    for row in registrations(interpreter, "SecondaryTierFactory.register_tier"):
        found[row.names[0]] = sorted(_tier_keys(interpreter, row.module, row.cls))
    return found


def keys_read(module: Module) -> set[str]:
    """Keys of an extra config that a module reads."""
    return set(_keys_in(ast.Module(module.body, []))) if "extra_config" in module.path.read_text("utf-8") else set()


def _keys_in(tree: ast.AST) -> Iterator[str]:
    for node in ast.walk(tree):
        match node:
            case ast.Call(func=ast.Attribute(attr="get_from_extra_config"), args=[ast.Constant(value=str(key)), *_]):
                yield key
            case ast.Call(
                func=ast.Attribute(value=holder, attr="get" | "pop" | "setdefault"),
                args=[ast.Constant(value=str(key)), *_],
            ) if _is_extra_config(holder):
                yield key
            case ast.Subscript(value=holder, slice=ast.Constant(value=str(key))) if _is_extra_config(holder):
                yield key
            case ast.Compare(left=ast.Constant(value=str(key)), ops=[ast.In() | ast.NotIn()], comparators=[holder]) if (
                _is_extra_config(holder)
            ):
                yield key


def _is_extra_config(holder: ast.expr) -> bool:
    return ast.unparse(holder).endswith("extra_config")


def _connector_keys(interpreter: Interpreter) -> Iterator[tuple[str, list[str]]]:
    for row in registrations(interpreter, "KVConnectorFactory.register_connector"):
        modules = list(_with_imports(interpreter, row.module)) if row.module else []
        outside = any(
            f"import {name}" in text or f"from {name}" in text for name in _ELSEWHERE for text in _texts(modules)
        )
        if modules and not outside:
            yield row.names[0], sorted({key for module in modules for key in keys_read(module)})


def _texts(modules: Iterable[Module]) -> Iterator[str]:
    return (module.path.read_text("utf-8") for module in modules)


def _with_imports(interpreter: Interpreter, start: str) -> Iterator[Module]:
    """A connector's module and what it imports of its own folder and of the offloading code, specs excepted."""
    waiting, seen = [start], {start}
    folder = start.rpartition(".")[0]
    while waiting:
        module = interpreter.tree.module(waiting.pop())
        if module is None:
            continue
        yield module
        for binding in module.bindings.values():
            source = binding.source or ""
            for name in (source, source.rpartition(".")[0]):
                own = name.startswith((f"{folder}.", *_HOMES)) and "MultiConnector" not in name
                if own and name not in seen and interpreter.tree.module(name) and not _is_shared(name):
                    seen.add(name)
                    waiting.append(name)


def _is_shared(module: str) -> bool:
    """Whether a module belongs to every connector, or to single specs and tiers, which have entries of their own."""
    last = module.rpartition(".")[2]
    return (last in {"base", "factory", "kv_connector", "v1", "utils"} and "offload" not in module) or (
        module.startswith("vllm.v1.kv_offload.") and last != "factory"
    )


def _bases(interpreter: Interpreter, module: str | None, cls: str | None) -> list[str]:
    """Modules of a class and of its bases."""
    made = interpreter.import_value(f"{module}.{cls}")
    return [base.__module__ for base in made.__mro__ if interpreter.source_of(base)] if isinstance(made, type) else []


def _in_folder(interpreter: Interpreter, folder: str) -> Iterator[Module]:
    names = (name for name in interpreter.tree.texts if name.rpartition(".")[0] == folder)
    return (module for name in names if (module := interpreter.tree.module(name)))


def _tier_keys(interpreter: Interpreter, module: str | None, cls: str | None) -> Iterator[str]:
    """Parameters of a tier's constructor and of its bases' while it hands on the rest, and what its factory takes."""
    made = interpreter.import_value(f"{module}.{cls}")
    for base in made.__mro__ if isinstance(made, type) else ():
        source = interpreter.source_of(base)
        own = (
            [node for node in source[1].body if isinstance(node, ast.FunctionDef) and node.name == "__init__"]
            if source
            else []
        )
        for node in own:
            yield from (
                argument.arg for argument in (*node.args.args, *node.args.kwonlyargs) if argument.arg not in _INJECTED
            )
            if node.args.kwarg is None:
                yield from _factory_keys(interpreter)
                return
    yield from _factory_keys(interpreter)


def _factory_keys(interpreter: Interpreter) -> Iterator[str]:
    """Keys that the factory takes out of a tier's entry before it makes the tier."""
    module = interpreter.tree.defining("SecondaryTierFactory")
    for node in ast.walk(ast.Module(module.body, [])) if module else ():
        match node:
            case ast.Call(
                func=ast.Attribute(value=ast.Name(id="config" | "tier_config"), attr="get" | "pop"),
                args=[ast.Constant(value=str(key)), *_],
            ):
                yield key
