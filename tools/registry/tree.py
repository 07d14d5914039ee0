"""The source of one release: modules by name, and where a name is bound in each."""

import ast
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path


@dataclass(frozen=True, slots=True)
class Binding:
    """What binds a name at the top of a module: the statement, and for an import where it comes from."""

    statement: ast.stmt
    source: str | None = None  # "vllm.config.cache.CacheDType": the module, or the module and the name


@dataclass
class Module:
    """One module of the release."""

    name: str
    path: Path
    typed: bool  # whether `if TYPE_CHECKING` branches count, as for a type checker, or their `else`, as when it runs

    @cached_property
    def body(self) -> list[ast.stmt]:
        return ast.parse(self.path.read_text(encoding="utf-8")).body

    @cached_property
    def statements(self) -> list[ast.stmt]:
        """Top statements with conditions opened up, in the order in which the last binding of a name counts."""
        return list(_flatten(self.body, typed=self.typed))

    @cached_property
    def stars(self) -> list[str]:
        """Modules whose names are all imported."""
        froms = [node for node in self.statements if isinstance(node, ast.ImportFrom)]
        return [self._absolute(node) for node in froms if node.names[0].name == "*"]

    @cached_property
    def bindings(self) -> dict[str, Binding]:
        found: dict[str, Binding] = {}
        for statement in self.statements:
            found.update(self._bound_by(statement))
        return found

    def _bound_by(self, statement: ast.stmt) -> Iterator[tuple[str, Binding]]:
        match statement:
            case ast.Import():
                for alias in statement.names:
                    name, source = alias.asname or alias.name.partition(".")[0], alias.name
                    yield name, Binding(statement, source if alias.asname else name)
            case ast.ImportFrom():
                for alias in statement.names:
                    yield alias.asname or alias.name, Binding(statement, f"{self._absolute(statement)}.{alias.name}")
            case ast.FunctionDef() | ast.ClassDef():
                yield statement.name, Binding(statement)
            case ast.Assign(targets=targets):
                yield from ((target.id, Binding(statement)) for target in targets if isinstance(target, ast.Name))
            case ast.AnnAssign(target=ast.Name(id=name), value=value) if value is not None:
                yield name, Binding(statement)

    def _absolute(self, node: ast.ImportFrom) -> str:
        if not node.level:
            return node.module or ""
        package = self.name.split(".") if self.path.name == "__init__.py" else self.name.split(".")[:-1]
        base = package[: len(package) - node.level + 1]
        return ".".join([*base, node.module] if node.module else base)


@dataclass
class SourceTree:
    """Every module of a release under one folder, parsed when it is first asked for."""

    folder: Path  # the folder that holds the package `vllm`
    typed: bool = False
    _modules: dict[str, Module | None] = field(default_factory=dict)

    def module(self, name: str) -> Module | None:
        """The module of that dotted name; None when the release has none."""
        if name not in self._modules:
            stem = self.folder.joinpath(*name.split("."))
            paths = (stem.with_suffix(".py"), stem / "__init__.py")
            path = next((path for path in paths if path.is_file()), None) if name else None
            self._modules[name] = Module(name, path, self.typed) if path else None
        return self._modules[name]

    @cached_property
    def texts(self) -> dict[str, str]:
        """The text of every module by dotted name, sorted: what to search before parsing."""
        return {
            ".".join(path.relative_to(self.folder).with_suffix("").parts).removesuffix(".__init__"): path.read_text(
                encoding="utf-8"
            )
            for path in sorted(self.folder.rglob("*.py"))
        }

    def modules_with(self, text: str) -> list[Module]:
        """Modules whose text holds `text`, by name."""
        found = (self.module(name) for name, content in self.texts.items() if text in content)
        return [module for module in found if module is not None]

    def defining(self, name: str) -> Module | None:
        """The module that defines a class, function or variable of that name itself."""
        for module in self.modules_with(name):
            binding = module.bindings.get(name)
            if binding is not None and binding.source is None:
                return module
        return None


def _flatten(body: Iterable[ast.stmt], *, typed: bool) -> Iterator[ast.stmt]:
    for statement in body:
        for part in _parts(statement, typed=typed):
            yield from _flatten(part, typed=typed)
        if not isinstance(statement, ast.If | ast.Try | ast.With):
            yield statement


def _parts(statement: ast.stmt, *, typed: bool) -> list[list[ast.stmt]]:
    """The blocks of a compound statement that count, the one that is likely to run last."""
    match statement:
        case ast.If(test=test, body=body, orelse=orelse):
            asked = ast.unparse(test).removeprefix("typing.")
            if asked == "TYPE_CHECKING":
                return [body if typed else orelse]
            return [body] if asked == "not TYPE_CHECKING" and not typed else [orelse, body]
        case ast.Try(body=body, handlers=handlers, orelse=orelse, finalbody=final):
            return [*(handler.body for handler in handlers), body, orelse, final]
        case ast.With(body=body):
            return [body]
    return []
