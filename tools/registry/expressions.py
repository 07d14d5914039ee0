"""What an expression of the source is worth; what the source alone does not tell is an `Unknown`."""

import ast
import operator
from collections.abc import Callable, Iterable, Iterator
from typing import Any

from tools.registry.resolver import Resolver
from tools.registry.values import Instance, Recorder, Scope, SourceFunction, SourceModule, Super, Unknown

_OPERATORS: dict[type[ast.AST], Callable[[Any, Any], Any]] = {
    ast.Add: operator.add,
    ast.Sub: operator.sub,
    ast.Mult: operator.mul,
    ast.Div: operator.truediv,
    ast.FloorDiv: operator.floordiv,
    ast.Mod: operator.mod,
    ast.Pow: operator.pow,
    ast.BitOr: operator.or_,
    ast.BitAnd: operator.and_,
    ast.LShift: operator.lshift,
    ast.Eq: operator.eq,
    ast.NotEq: operator.ne,
    ast.Lt: operator.lt,
    ast.LtE: operator.le,
    ast.Gt: operator.gt,
    ast.GtE: operator.ge,
    ast.Is: operator.is_,
    ast.IsNot: operator.is_not,
    ast.In: lambda item, container: item in container,
    ast.NotIn: lambda item, container: item not in container,
}
_BUILTINS: dict[str, Any] = {
    function.__name__: function
    for function in (
        *(abs, all, any, bool, bytes, dict, enumerate, float, frozenset, getattr, hasattr, int, isinstance, issubclass),
        *(len, list, max, min, next, object, range, repr, reversed, round, set, sorted, str, sum, tuple, type, zip),
    )
} | {"Ellipsis": ...}
_KEEPERS = frozenset({"add", "append", "extend", "get", "insert", "list", "pop", "remove", "update"})
"""Methods and functions that hold or hand on a value without looking into it."""
_WRONG = (TypeError, ValueError, AttributeError, KeyError, IndexError, ArithmeticError)
"""What Python raises where a value is not what the source would have had: the result is unknown then."""


class Expressions(Resolver):
    """Evaluates expressions of one release."""

    def call(self, function: Any, arguments: Iterable[Any] = (), keywords: dict[str, Any] | None = None) -> Any:
        """What calling a value gives."""
        raise NotImplementedError

    def evaluate(self, node: ast.expr, scope: Scope) -> Any:
        """The value of an expression; Unknown where the source alone does not tell it."""
        try:
            return self._value(node, scope)
        except _WRONG:
            return Unknown(ast.unparse(node))

    def _value(self, node: ast.expr, scope: Scope) -> Any:  # noqa: PLR0911 - one return a kind of expression
        match node:
            case ast.Constant(value=value):
                return value
            case ast.Name(id=name):
                return self._name(name, scope)
            case ast.Attribute(value=value, attr=attr):
                return self._attribute(self.evaluate(value, scope), attr, node)
            case ast.Call():
                return self._call(node, scope)
            case ast.Subscript(value=value, slice=index):
                return self._subscript(self.evaluate(value, scope), self.evaluate(index, scope), node)
            case ast.List() | ast.Tuple() | ast.Set() | ast.Dict():
                return self._display(node, scope)
            case ast.JoinedStr(values=values):
                return "".join(self._piece(value, scope) for value in values)
            case ast.ListComp() | ast.SetComp() | ast.GeneratorExp() | ast.DictComp():
                return self._comprehension(node, scope)
            case ast.Lambda():
                return self.make_function(node, scope)
            case ast.Slice(lower=lower, upper=upper, step=step):
                return slice(*(None if part is None else self.evaluate(part, scope) for part in (lower, upper, step)))
            case ast.NamedExpr(target=target, value=value):
                self.assign(target, found := self.evaluate(value, scope), scope)
                return found
        return self._decide(node, scope)

    def _decide(self, node: ast.expr, scope: Scope) -> Any:
        match node:
            case ast.BinOp(left=left, op=op, right=right):
                return self.operate(op, self.evaluate(left, scope), self.evaluate(right, scope), node)
            case ast.Compare(left=left, ops=[op], comparators=[right]):
                return self._compare(op, self.evaluate(left, scope), self.evaluate(right, scope), node)
            case ast.UnaryOp(op=ast.Not(), operand=operand):
                truth = self.truth(self.evaluate(operand, scope))
                return Unknown(ast.unparse(node)) if truth is None else not truth
            case ast.UnaryOp(op=ast.USub(), operand=operand):
                return -self.evaluate(operand, scope)
            case ast.BoolOp():
                return self._bool_op(node, scope)
            case ast.IfExp(test=test, body=body, orelse=orelse):
                truth = self.truth(self.evaluate(test, scope))
                return Unknown(ast.unparse(node)) if truth is None else self.evaluate(body if truth else orelse, scope)
        return Unknown(ast.unparse(node))

    def _name(self, name: str, scope: Scope) -> Any:
        at: Scope | None = scope
        while at is not None:
            if name in at.variables:
                return at.variables[name]
            at = at.outer
        if self.tree.module(scope.module):
            found = self.global_value(scope.module, name)
            if not isinstance(found, Unknown) or name not in _BUILTINS:
                return found
        return _BUILTINS.get(name, Unknown(name))

    def _attribute(self, holder: Any, attr: str, node: ast.Attribute) -> Any:
        home = _module_name(holder)
        if isinstance(holder, SourceModule) or f"{home}.{attr}" in self.overrides:
            return self.import_value(f"{home}.{attr}")
        if isinstance(holder, Super):
            return self.class_attribute(type_of(holder.bound), attr, holder.bound, after=holder.owner)
        if isinstance(holder, type) and self.source_of(holder):
            try:
                return self.class_attribute(holder, attr, holder)
            except AttributeError:
                return getattr(holder, attr)
        if isinstance(holder, Instance):
            return self.class_attribute(holder.cls, attr, holder)
        return Unknown(ast.unparse(node)) if isinstance(holder, Unknown) else getattr(holder, attr)

    def _call(self, node: ast.Call, scope: Scope) -> Any:
        if isinstance(node.func, ast.Name) and node.func.id == "super" and scope.owner:
            return Super(scope.owner, scope.bound)
        function = self.evaluate(node.func, scope)
        if isinstance(function, Unknown):
            return Unknown(ast.unparse(node))
        arguments: list[Any] = []
        for argument in node.args:
            value = self.evaluate(argument.value if isinstance(argument, ast.Starred) else argument, scope)
            arguments.extend(self.items(value) if isinstance(argument, ast.Starred) else (value,))
        keywords: dict[str, Any] = {}
        for word in node.keywords:
            value = self.evaluate(word.value, scope)
            keywords.update({word.arg: value} if word.arg else value if isinstance(value, dict) else {})
        if _needs_knowing(function) and any(isinstance(value, Unknown) for value in arguments):
            return Unknown(ast.unparse(node))
        return self.call(function, arguments, keywords)

    def _subscript(self, holder: Any, index: Any, node: ast.Subscript) -> Any:
        if isinstance(holder, Unknown) or (isinstance(index, Unknown) and isinstance(holder, dict | list | tuple)):
            return Unknown(ast.unparse(node))
        return holder[index]

    def _display(self, node: ast.List | ast.Tuple | ast.Set | ast.Dict, scope: Scope) -> Any:
        if isinstance(node, ast.Dict):
            made: dict[Any, Any] = {}
            for key, value in zip(node.keys, node.values, strict=True):
                found = self.evaluate(value, scope)
                made.update({self.evaluate(key, scope): found} if key else found if isinstance(found, dict) else {})
            return made
        items: list[Any] = []
        for part in node.elts:
            value = self.evaluate(part.value if isinstance(part, ast.Starred) else part, scope)
            items.extend(self.items(value) if isinstance(part, ast.Starred) else (value,))
        return {ast.List: list, ast.Tuple: tuple, ast.Set: set}[type(node)](items)

    def _piece(self, node: ast.expr, scope: Scope) -> str:
        if isinstance(node, ast.FormattedValue):
            value = self.evaluate(node.value, scope)
            return f"{{{value.text}}}" if isinstance(value, Unknown) else str(value)
        return str(self.evaluate(node, scope))

    def _comprehension(self, node: ast.ListComp | ast.SetComp | ast.GeneratorExp | ast.DictComp, scope: Scope) -> Any:
        scopes = list(self._rounds(node.generators, scope.inner()))
        if isinstance(node, ast.DictComp):
            return {self.evaluate(node.key, one): self.evaluate(node.value, one) for one in scopes}
        items = [self.evaluate(node.elt, one) for one in scopes]
        return (
            set(items)
            if isinstance(node, ast.SetComp)
            else iter(items)
            if isinstance(node, ast.GeneratorExp)
            else items
        )

    def _rounds(self, generators: list[ast.comprehension], scope: Scope) -> Iterator[Scope]:
        if not generators:
            yield scope.inner(scope.variables)
            return
        for item in self.items(self.evaluate(generators[0].iter, scope)):
            self.assign(generators[0].target, item, scope)
            if all(self.truth(self.evaluate(test, scope)) for test in generators[0].ifs):
                yield from self._rounds(generators[1:], scope.inner(scope.variables))

    def operate(self, op: ast.operator, left: Any, right: Any, node: ast.AST) -> Any:
        types = isinstance(op, ast.BitOr)  # `X | None`: a type that is not known is still one of the two
        if (isinstance(left, Unknown) or isinstance(right, Unknown)) and not types:
            return Unknown(ast.unparse(node))
        return _OPERATORS[type(op)](left, right)

    def _compare(self, op: ast.cmpop, left: Any, right: Any, node: ast.AST) -> Any:
        identity = isinstance(op, ast.Is | ast.IsNot) and left is not None and right is not None
        if (isinstance(left, Unknown) or isinstance(right, Unknown)) and not identity:
            return Unknown(ast.unparse(node))
        return _OPERATORS[type(op)](left, right)

    def _bool_op(self, node: ast.BoolOp, scope: Scope) -> Any:
        stops = isinstance(node.op, ast.Or)
        value: Any = None
        unknown = False
        for part in node.values:
            value = self.evaluate(part, scope)
            truth = self.truth(value)
            unknown = unknown or truth is None
            if truth is stops:
                return value
        return Unknown(ast.unparse(node)) if unknown else value

    def truth(self, value: Any) -> bool | None:
        """Whether a value is true; None when that is not known."""
        return None if isinstance(value, Unknown) else bool(value)

    def items(self, value: Any) -> Iterable[Any]:
        """What a loop over a value goes through: nothing where it is not known."""
        return () if isinstance(value, Unknown) or value is None else list(value)

    def assign(self, target: ast.expr, value: Any, scope: Scope) -> None:
        match target:
            case ast.Name(id=name):
                scope.variables[name] = value
            case ast.Tuple(elts=parts) | ast.List(elts=parts):
                items = list(self.items(value))
                if len(items) != len(parts):
                    items = [Unknown(ast.unparse(part)) for part in parts]
                for part, item in zip(parts, items, strict=True):
                    self.assign(part, item, scope)
            case ast.Subscript(value=holder, slice=index):
                container = self.evaluate(holder, scope)
                if isinstance(container, dict | list):
                    container[self.evaluate(index, scope)] = value


def type_of(bound: Any) -> type:
    """The class that a method was called on."""
    return bound if isinstance(bound, type) else bound.cls if isinstance(bound, Instance) else type(bound)


def _module_name(holder: Any) -> str:
    """The dotted name of a module of the source, a standard one, or one that is not known."""
    if isinstance(holder, Unknown):
        return holder.text
    return str(getattr(holder, "name" if isinstance(holder, SourceModule) else "__name__", ""))


def _needs_knowing(function: Any) -> bool:
    """Whether a call computes with its arguments: methods that only keep a value take an unknown one too."""
    if isinstance(function, SourceFunction) or isinstance(getattr(function, "__self__", None), Recorder):
        return False
    return getattr(function, "__name__", "") not in _KEEPERS
