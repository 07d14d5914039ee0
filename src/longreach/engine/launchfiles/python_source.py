"""Python files that start a server: lists of words, and lines handed to a shell. Pure; nothing is run."""

import ast
import re
from collections.abc import Iterator
from dataclasses import dataclass

PYTHON = re.compile(r"\A#!.*python|^(import|from) +(subprocess|os|sys)\b", re.MULTILINE)


@dataclass(frozen=True, slots=True)
class PythonCommand:
    """The words of a list, or the text of one line for a shell. What is computed stays open as `${expression}`."""

    words: tuple[str, ...]
    line: int
    is_script: bool = False


def read_python(text: str) -> Iterator[PythonCommand]:
    """Every list of words, and every text that a call is given, in their order; none of what is no Python."""
    try:
        tree = ast.parse(text)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return
    values = {name: value for node in ast.walk(tree) for name, value in _constant(node)}
    for node in ast.walk(tree):
        if isinstance(node, ast.List | ast.Tuple) and len(node.elts) > 1:
            words = tuple(_text(element, values) for element in node.elts)
            yield PythonCommand(words, node.lineno)
        elif isinstance(node, ast.Call) and node.args and isinstance(node.args[0], ast.Constant | ast.JoinedStr):
            yield PythonCommand((_text(node.args[0], values),), node.lineno, is_script=True)


def _constant(node: ast.AST) -> Iterator[tuple[str, str]]:
    """`model = "m"`; what is set again counts as it was set last."""
    if isinstance(node, ast.Assign) and isinstance(node.value, ast.Constant):
        yield from ((name.id, str(node.value.value)) for name in node.targets if isinstance(name, ast.Name))


def _text(node: ast.expr, values: dict[str, str]) -> str:
    if isinstance(node, ast.Constant):
        return str(node.value)
    if isinstance(node, ast.Name) and node.id in values:
        return values[node.id]
    if isinstance(node, ast.JoinedStr):
        return "".join(_text(part, values) for part in node.values)
    if isinstance(node, ast.FormattedValue):
        return _text(node.value, values)
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "str" and len(node.args) == 1:
        return _text(node.args[0], values)
    if isinstance(node, ast.Starred):
        return f"${{{node.value.id}}}" if isinstance(node.value, ast.Name) else "${arguments}"
    return f"${{{node.id}}}" if isinstance(node, ast.Name) else "${value}"
