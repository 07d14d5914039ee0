"""Names, classes and their fields: what a dotted name of the release stands for."""

import ast
import dataclasses
import enum
import importlib
from collections.abc import Callable, Iterator
from typing import Any, get_origin

from tools.registry.tree import Binding, SourceTree
from tools.registry.values import Scope, SourceField, SourceFunction, SourceModule, Unknown

_REAL_MODULES = frozenset(
    {
        "argparse",
        "collections",
        "dataclasses",
        "enum",
        "itertools",
        "json",
        "ssl",
        "types",
        "typing",
        "typing_extensions",
    }
)
"""Standard modules whose values are taken as they are: they only describe types or parsers, or compute."""

_FIELD_MAKERS = frozenset({"field", "Field"})  # of dataclasses and of pydantic


class Resolver:
    """Turns names into values. Each class of the source is stood for by an empty class of its name."""

    def __init__(self, tree: SourceTree, overrides: dict[str, Callable[..., Any]]) -> None:
        self.tree = tree
        self.overrides = overrides  # dotted name -> what to use in place of what the source has there
        self.marked: dict[str, SourceField] = {}  # mark -> field
        self._globals: dict[tuple[str, str], Any] = {}
        self._sources: dict[type, tuple[str, ast.ClassDef]] = {}

    def evaluate(self, node: ast.expr, scope: Scope) -> Any:
        raise NotImplementedError

    # Names

    def import_value(self, dotted: str) -> Any:
        """The value of `package.module.name`: a module, what it binds, or Unknown."""
        if dotted in self.overrides:
            return self.overrides[dotted]
        if self.tree.module(dotted):
            return SourceModule(dotted)
        module, _, name = dotted.rpartition(".")
        if self.tree.module(module):
            return self.global_value(module, name)
        return _real_value(dotted)

    def global_value(self, module: str, name: str) -> Any:
        """What `name` is bound to at the top of a module, evaluated once."""
        place = (module, name)
        if place not in self._globals:
            self._globals[place] = Unknown(name)  # while it is worked out: a value that needs itself is unknown
            self._globals[place] = self._find_global(module, name)
        return self._globals[place]

    def _find_global(self, module: str, name: str) -> Any:
        dotted = f"{module}.{name}"
        if dotted in self.overrides:
            return self.overrides[dotted]
        source = self.tree.module(module)
        assert source is not None, module
        binding = source.bindings.get(name)
        if binding is not None:
            return self._bound_value(module, binding)
        if self.tree.module(dotted):
            return SourceModule(dotted)
        for star in source.stars:
            value = self.import_value(f"{star}.{name}")
            if not isinstance(value, Unknown):
                return value
        return self._lazy_value(module, name)

    def _bound_value(self, module: str, binding: Binding) -> Any:
        match binding.statement:
            case ast.Import() | ast.ImportFrom():
                return self.import_value(binding.source or "")
            case ast.FunctionDef() as node:
                return self.make_function(node, Scope(module))
            case ast.ClassDef() as node:
                return self.make_class(module, node)
            case ast.Assign(value=value) | ast.AnnAssign(value=ast.expr() as value):
                return self.evaluate(value, Scope(module))
        return Unknown(ast.unparse(binding.statement))

    def _lazy_value(self, module: str, name: str) -> Any:
        """A name that the module's `__getattr__` imports by a table of name to module."""
        source = self.tree.module(module)
        assert source is not None, module
        if "__getattr__" in source.bindings:
            for statement in source.statements:
                value = getattr(statement, "value", None)
                for key, home in zip(value.keys, value.values, strict=True) if isinstance(value, ast.Dict) else ():
                    if isinstance(key, ast.Constant) and key.value == name and isinstance(home, ast.Constant):
                        return self.import_value(_home(module, name, str(home.value)))
        return Unknown(name)

    # Classes

    def make_function(self, node: ast.FunctionDef | ast.Lambda, scope: Scope) -> SourceFunction:
        """A function as a value; its defaults are evaluated where it is defined."""
        arguments = node.args
        positional = [*arguments.posonlyargs, *arguments.args]
        late = positional[len(positional) - len(arguments.defaults) :]
        pairs = [
            *zip(late, arguments.defaults, strict=True),
            *zip(arguments.kwonlyargs, arguments.kw_defaults, strict=True),
        ]
        defaults = {argument.arg: self.evaluate(value, scope) for argument, value in pairs if value is not None}
        return SourceFunction(node, scope, defaults)

    def make_class(self, module: str, node: ast.ClassDef) -> type:
        """An empty class that stands for one of the source; an Enum with its members where it is one."""
        bases = [self.evaluate(base, Scope(module)) for base in node.bases]
        bases = [get_origin(base) or base for base in bases]
        if any(isinstance(base, type) and issubclass(base, enum.Enum) for base in bases):
            made = self._make_enum(module, node)
        else:
            own = tuple(base for base in bases if base in self._sources or base is dict)
            made = type(node.name, own, {"__module__": module})
        self._sources[made] = (module, node)
        return made

    def _make_enum(self, module: str, node: ast.ClassDef) -> type:
        make: Any = enum.Enum  # called as a function: members that are not written down here
        made: type = make(node.name, dict(self._enum_members(module, node)), module=module)
        return made

    def _enum_members(self, module: str, node: ast.ClassDef) -> Iterator[tuple[str, Any]]:
        for statement in node.body:
            match statement:
                case ast.Assign(targets=[ast.Name(id=name)], value=value) if not name.startswith("_"):
                    found = self.evaluate(value, Scope(module))
                    yield name, found if isinstance(found, str | int) else name

    def source_of(self, cls: type) -> tuple[str, ast.ClassDef] | None:
        """Module and definition of a class of the source."""
        return self._sources.get(cls)

    def class_attribute(self, cls: type, name: str, bound: Any, after: type | None = None) -> Any:
        """An attribute along the order of bases, from behind `after` on; AttributeError when the source has none."""
        if issubclass(cls, enum.Enum) and name in cls.__members__:
            return cls[name]
        order = [base for base in cls.__mro__ if base in self._sources]
        for base in order[order.index(after) + 1 :] if after in order else order:
            module, node = self._sources[base]
            found = [statement for statement in node.body if name in _binds(statement)]
            if found:
                return self._attribute_value(found[-1], module, base, bound)
        raise AttributeError(name)

    def _attribute_value(self, statement: ast.stmt, module: str, owner: type, bound: Any) -> Any:
        match statement:
            case ast.FunctionDef(decorator_list=decorators) as node:
                words = {ast.unparse(decorator).rpartition(".")[2] for decorator in decorators}
                function = self.make_function(node, Scope(module))
                function.owner = owner
                function.bound = None if "staticmethod" in words else bound
                if "classmethod" not in words and "staticmethod" not in words and isinstance(bound, type):
                    function.bound = None
                return Unknown(f"{owner.__name__}.{node.name}") if words & {"property", "cached_property"} else function
            case ast.Assign(value=value) | ast.AnnAssign(value=ast.expr() as value):
                made = self._field(owner, "", None, value, Scope(module))
                return made.default if made.default is not dataclasses.MISSING else Unknown(ast.unparse(value))
        return Unknown(ast.unparse(statement))

    # Fields

    def is_dataclass(self, cls: Any) -> bool:
        """Whether a class of the source is made a dataclass, itself or by a base."""
        return isinstance(cls, type) and any(self._decorated(base) for base in cls.__mro__ if base in self._sources)

    def _decorated(self, cls: type) -> bool:
        words = {ast.unparse(decorator).partition("(")[0] for decorator in self._sources[cls][1].decorator_list}
        return any(word.rpartition(".")[2] in {"dataclass", "config"} for word in words)

    def fields(self, cls: type) -> tuple[SourceField, ...]:
        """The fields of a dataclass in order, as `dataclasses.fields`, those of `InitVar` left out."""
        return tuple(field for field in self.keys(cls) if not isinstance(field.type, dataclasses.InitVar))

    def keys(self, cls: type) -> tuple[SourceField, ...]:
        """Every field of a settings class, those that only its constructor takes included."""
        found: dict[str, SourceField] = {}
        for base in reversed([base for base in cls.__mro__ if base in self._sources]):
            module, node = self._sources[base]
            for statement, document in _documented(node.body):
                if isinstance(statement.target, ast.Name) and "ClassVar" not in ast.unparse(statement.annotation):
                    name = statement.target.id
                    made = self._field(cls, name, statement.annotation, statement.value, Scope(module))
                    found[name] = dataclasses.replace(made, document=document)
        self.marked.update({field.mark: field for field in found.values()})
        return tuple(found.values())

    def _field(
        self, cls: type, name: str, annotation: ast.expr | None, value: ast.expr | None, scope: Scope
    ) -> SourceField:
        field = SourceField(name, self.annotation(annotation, scope), owner=cls.__name__)
        if isinstance(value, ast.Call) and ast.unparse(value.func).rpartition(".")[2] in _FIELD_MAKERS:
            return self._made_field(field, value, scope)
        return field if value is None else dataclasses.replace(field, default=self.evaluate(value, scope))

    def _made_field(self, field: SourceField, call: ast.Call, scope: Scope) -> SourceField:
        """A field that `field(...)` or pydantic's `Field(...)` describes."""
        given = {word.arg: word.value for word in call.keywords if word.arg}
        if call.args:
            given["default"] = call.args[0]
        values = {
            word: self.evaluate(given[word], scope) for word in ("default", "default_factory", "init") if word in given
        }
        if values.get("default", 0) is Ellipsis:
            del values["default"]
        return dataclasses.replace(field, **values)

    def annotation(self, node: ast.expr | None, scope: Scope) -> Any:
        """An annotation as a type; one written as text is read."""
        if isinstance(node, ast.Constant) and isinstance(node.value, str):
            node = ast.parse(node.value, mode="eval").body
        return None if node is None else self.evaluate(node, scope)


def _real_value(dotted: str) -> Any:
    """A value of a standard module that is taken as it is, else Unknown."""
    top = dotted.partition(".")[0]
    if top not in _REAL_MODULES:
        return Unknown(dotted)
    top = "typing" if top == "typing_extensions" else top
    value: Any = importlib.import_module(top)
    for part in dotted.split(".")[1:]:
        value = getattr(value, part, Unknown(dotted))
    return value


def _home(module: str, name: str, text: str) -> str:
    """The dotted name for an entry of a lazy table: `.engine.llm_engine:LLMEngine`, `vllm.config.cache`."""
    home, _, attribute = text.partition(":")
    package = f"{module}{home}" if home.startswith(".") else home
    return f"{package}.{attribute or name}"


def _binds(statement: ast.stmt) -> tuple[str, ...]:
    match statement:
        case ast.FunctionDef(name=name):
            return (name,)
        case ast.Assign(targets=targets):
            return tuple(target.id for target in targets if isinstance(target, ast.Name))
        case ast.AnnAssign(target=ast.Name(id=name), value=ast.expr()):
            return (name,)
    return ()


def _documented(body: list[ast.stmt]) -> Iterator[tuple[ast.AnnAssign, str]]:
    """Each annotated name of a class with the text that stands under it."""
    for statement, following in zip(body, [*body[1:], None], strict=True):
        if isinstance(statement, ast.AnnAssign):
            match following:
                case ast.Expr(value=ast.Constant(value=str(text))):
                    yield statement, text
                case _:
                    yield statement, ""
