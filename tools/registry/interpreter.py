"""Follow a function of the source symbolically: both ways of an `if` that hangs on what is not known are taken."""

import ast
from collections.abc import Iterable
from functools import cache
from typing import Any

from tools.registry.expressions import Expressions
from tools.registry.values import Instance, Scope, SourceFunction, SourceRaisedError, Unknown

_DEPTH = 40


class _ReturnedError(Exception):  # control flow, as StopIteration is
    def __init__(self, value: Any) -> None:
        super().__init__()
        self.value = value


class Interpreter(Expressions):
    """Runs functions of one release."""

    _depth = 0

    def call(self, function: Any, arguments: Iterable[Any] = (), keywords: dict[str, Any] | None = None) -> Any:
        """What calling a value gives."""
        keywords = keywords or {}
        if isinstance(function, SourceFunction):
            return self._run(function, list(arguments), keywords)
        if isinstance(function, type) and self.source_of(function):
            return Instance(function)  # which class it is of, is all that is kept
        if isinstance(function, Unknown):
            return Unknown(f"{function.text}()")
        return function(*arguments, **keywords)

    def _run(self, function: SourceFunction, arguments: list[Any], keywords: dict[str, Any]) -> Any:
        if self._depth >= _DEPTH:
            return Unknown(f"{function.name}()")
        scope = function.scope.inner(_bind(function, arguments, keywords))
        scope.owner, scope.bound = function.owner or scope.owner, function.bound or scope.bound
        self._depth += 1
        try:
            if isinstance(function.node, ast.Lambda):
                return self.evaluate(function.node.body, scope)
            return self._result(function.node, scope)
        finally:
            self._depth -= 1

    def _result(self, node: ast.FunctionDef, scope: Scope) -> Any:
        if _is_generator(node):
            return Unknown(f"{node.name}()")
        try:
            self._execute(node.body, scope)
        except _ReturnedError as returned:
            return returned.value
        return scope.variables.get("\x00maybe")  # returned on a way that may be taken

    # Statements

    def _execute(self, body: Iterable[ast.stmt], scope: Scope) -> None:
        for statement in body:
            self._step(statement, scope)

    def _step(self, statement: ast.stmt, scope: Scope) -> None:
        match statement:
            case ast.Expr(value=value):
                self.evaluate(value, scope)
            case ast.Assign(targets=targets, value=value):
                found = self.evaluate(value, scope)
                for target in targets:
                    self.assign(target, found, scope)
            case ast.AnnAssign(target=target, value=ast.expr() as value):
                self.assign(target, self.evaluate(value, scope), scope)
            case ast.AugAssign(target=target, op=op, value=value):
                new = self.operate(op, self.evaluate(_as_load(target), scope), self.evaluate(value, scope), statement)
                self.assign(target, new, scope)
            case ast.FunctionDef():
                scope.variables[statement.name] = self.make_function(statement, scope)
            case ast.Import() | ast.ImportFrom():
                self._import(statement, scope)
            case ast.Delete(targets=targets):
                self._delete(targets, scope)
            case _:
                self._control(statement, scope)

    def _control(self, statement: ast.stmt, scope: Scope) -> None:
        match statement:
            case ast.Return(value=value):
                raise _ReturnedError(None if value is None else self.evaluate(value, scope))
            case ast.Raise():
                raise SourceRaisedError(ast.unparse(statement))
            case ast.If(test=test, body=body, orelse=orelse):
                truth = self.truth(self.evaluate(test, scope))
                if truth is None:
                    self._maybe(body, scope)
                    self._maybe(orelse, scope)
                else:
                    self._execute(body if truth else orelse, scope)
            case ast.For(target=target, iter=items, body=body):
                for item in self.items(self.evaluate(items, scope)):
                    self.assign(target, item, scope)
                    self._execute(body, scope)
            case ast.With(body=body):
                self._execute(body, scope)
            case ast.Try(body=body, handlers=handlers):
                try:
                    self._execute(body, scope)
                except SourceRaisedError:
                    self._execute(handlers[0].body if handlers else (), scope)

    def _maybe(self, body: list[ast.stmt], scope: Scope) -> None:
        """Take a way that may or may not be taken: what it returns counts only if nothing else is returned."""
        try:
            self._execute(body, scope)
        except _ReturnedError as returned:
            scope.variables.setdefault("\x00maybe", returned.value)
        except SourceRaisedError:
            pass

    def _delete(self, targets: list[ast.expr], scope: Scope) -> None:
        for target in targets:
            if isinstance(target, ast.Subscript):
                container = self.evaluate(target.value, scope)
                if isinstance(container, dict):
                    container.pop(self.evaluate(target.slice, scope), None)

    def _import(self, statement: ast.Import | ast.ImportFrom, scope: Scope) -> None:
        relative = isinstance(statement, ast.ImportFrom) and statement.level
        home = f"{statement.module}." if isinstance(statement, ast.ImportFrom) and not relative else ""
        for alias in statement.names:
            name = alias.asname or alias.name.partition(".")[0]
            dotted = home + (alias.name if home or alias.asname else name)
            scope.variables[name] = Unknown(alias.name) if relative else self.import_value(dotted)


def _bind(function: SourceFunction, arguments: list[Any], keywords: dict[str, Any]) -> dict[str, Any]:
    """Parameters to values."""
    wanted = function.node.args
    names = [argument.arg for argument in (*wanted.posonlyargs, *wanted.args)]
    if function.bound is not None:
        arguments = [function.bound, *arguments]
    given = {**function.defaults, **dict(zip(names, arguments, strict=False))}
    known = {*names, *(argument.arg for argument in wanted.kwonlyargs)}
    given.update({name: value for name, value in keywords.items() if name in known})
    if wanted.vararg:
        given[wanted.vararg.arg] = tuple(arguments[len(names) :])
    if wanted.kwarg:
        given[wanted.kwarg.arg] = {name: value for name, value in keywords.items() if name not in known}
    return given | {name: Unknown(name) for name in known if name not in given}


@cache
def _is_generator(node: ast.FunctionDef) -> bool:
    return any(isinstance(part, ast.Yield | ast.YieldFrom) for part in ast.walk(node))


def _as_load(target: ast.expr) -> ast.expr:
    """The expression that reads what an assignment's target names."""
    return ast.parse(ast.unparse(target), mode="eval").body
