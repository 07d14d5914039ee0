from pathlib import Path
from textwrap import dedent, indent
from typing import Any

import pytest
from tests.tools.registry_sources import interpret
from tools.registry.values import Unknown

EXPRESSIONS: list[tuple[str, str, Any]] = [
    ("dict merge", "{**{'a': 1}, 'b': 2} | {'c': 3}", {"a": 1, "b": 2, "c": 3}),
    ("comprehension", "[n * 2 for n in (1, 2, 3) if n > 1]", [4, 6]),
    ("nested rounds", "[a + b for a in 'xy' for b in 'zw']", ["xz", "xw", "yz", "yw"]),
    ("dict comprehension", "{name: len(name) for name in ['ab', 'c']}", {"ab": 2, "c": 1}),
    ("generator", "next((n for n in (1, 2) if n > 1), None)", 2),
    ("f-string", "f'{1 + 1}-{unseen}'", "2-{unseen}"),
    ("lambda", "(lambda a, b=2: a + b)(1)", 3),
    ("slice", "[1, 2, 3][1:]", [2, 3]),
    ("starred", "[*(1, 2), *[3]]", [1, 2, 3]),
    ("either", "None or 'x'", "x"),
    ("choice", "'yes' if 1 < 2 else 'no'", "yes"),
    ("method", "'a_b'.replace('_', '-').upper()", "A-B"),
    ("ellipsis", "'+' if Ellipsis in (int, ...) else 1", "+"),
    ("unknown name", "unseen.device_type", Unknown("unseen.device_type")),
    ("unknown sum", "['auto'] + unseen", Unknown("['auto'] + unseen")),
    ("unknown choice", "1 if unseen else 2", Unknown("1 if unseen else 2")),
    ("unknown or known", "unseen or 'x'", "x"),
    ("impossible", "{'a': 1}['b']", Unknown("{'a': 1}['b']")),
]


@pytest.mark.parametrize(("source", "value"), [row[1:] for row in EXPRESSIONS], ids=[row[0] for row in EXPRESSIONS])
def test_expression_is_worth_what_python_makes_of_it_or_unknown(source: str, value: Any, tmp_path: Path) -> None:
    interpreter = interpret(tmp_path, {"m.py": f"value = {source}\n"})
    assert interpreter.import_value("vllm.m.value") == value


FUNCTIONS: dict[str, tuple[str, Any]] = {
    "item assignment and deletion": (
        """
        d = {"a": {"n": 1}, "b": 2}
        d["a"]["t"] = str
        del d["a"]["n"]
        return d
        """,
        {"a": {"t": str}, "b": 2},
    ),
    "methods that change": (
        """
        rows = ["x", "y"]
        rows.remove("x")
        rows.append("z")
        rows += ["w"]
        return rows
        """,
        ["y", "z", "w"],
    ),
    "loop over a dict": (
        """
        out = []
        for key, value in {"a": 1}.items():
            out.append((key, value))
        return out
        """,
        [("a", 1)],
    ),
    "known condition": ("if 'serve' in ['serve']:\n    return 1\nreturn 2", 1),
    "unknown condition takes both ways": (
        """
        out = ["a"]
        if unseen:
            out.append("b")
        else:
            out.append("c")
        return out
        """,
        ["a", "b", "c"],
    ),
    "a sure return goes before a possible one": ("if unseen:\n    return 1\nreturn 2", 2),
    "a possible return goes before none": ("if unseen:\n    return 1", 1),
    "an error on a possible way is passed over": ("if unseen:\n    raise ValueError('no')\nreturn 2", 2),
    "an error leads to its handler": ("try:\n    raise ValueError\nexcept ValueError:\n    return 3", 3),
    "with and nested function": (
        """
        with unseen():
            def f(a, *rest, k=2, **more):
                return [a, rest, k, more]
        return f(1, 5, k=3, z=4)
        """,
        [1, (5,), 3, {"z": 4}],
    ),
    "closure": (
        """
        def outer(x):
            def inner(y):
                return x + y
            return inner
        return outer(1)(2)
        """,
        3,
    ),
    "walrus and tuple": ("(a, b) = (1, 2)\nif (c := a + b) > 2:\n    return c\nreturn 0", 3),
    "local import": ("from vllm.other import LIMIT\nimport json\nreturn (LIMIT, json.dumps([1]))", (7, "[1]")),
}


@pytest.mark.parametrize(("body", "value"), FUNCTIONS.values(), ids=FUNCTIONS)
def test_function_gives_what_its_body_returns(body: str, value: Any, tmp_path: Path) -> None:
    sources = {"m.py": "def f():\n" + indent(dedent(body), "    "), "other.py": "LIMIT = 7\n"}
    interpreter = interpret(tmp_path, sources)
    assert interpreter.call(interpreter.import_value("vllm.m.f")) == value


def test_endless_recursion_becomes_unknown(tmp_path: Path) -> None:
    interpreter = interpret(tmp_path, {"m.py": "def f():\n    return f()\nvalue = f()\n"})
    assert isinstance(interpreter.import_value("vllm.m.value"), Unknown)


def test_methods_find_their_class_and_the_one_above_it(tmp_path: Path) -> None:
    source = """
        class Base:
            kind = "base"

            @classmethod
            def make(cls, found):
                return found + [cls.kind]

        class Child(Base):
            kind = "child"

            @classmethod
            def make(cls, found):
                return super().make(found) + cls.label("x")

            @staticmethod
            def label(text):
                return [text]

        value = Child.make([])
    """
    assert interpret(tmp_path, {"m.py": source}).import_value("vllm.m.value") == ["child", "x"]
