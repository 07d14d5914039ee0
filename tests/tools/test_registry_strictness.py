from pathlib import Path
from typing import Any

import pytest
from tests.tools.registry_sources import interpret
from tools.registry.settings import read_settings, read_strict_settings

SOURCE = '''
    import enum
    from dataclasses import dataclass as plain
    from pathlib import Path
    from typing import Annotated, Any, Literal
    from pydantic import Field, SkipValidation, field_validator
    from pydantic.dataclasses import dataclass

    class Mode(enum.Enum):
        FULL = 2
        NONE = 0

    class Backend(enum.Enum):
        FLASH = "a.Flash"
        TRITON = "a.Triton"

    def config(*args, **words):
        return dataclass(config=ConfigDict(extra="forbid"))

    @config
    class Inner:
        depth: int = 1

    @config
    class Outer:
        count: int = Field(default=1, ge=1, le=8)
        share: float | None = Field(default=None, gt=0)
        kind: Literal["lru", "arc"] | None = None
        rows: list[int] = Field(default_factory=list, min_length=1)
        texts: dict[str, str] = Field(default_factory=dict)
        mixed: list[int | str] | None = None
        mode: Mode = Mode.NONE
        backend: Backend | None = None
        moe: Literal["deep_gemm", "triton"] = "triton"
        place: Path = ""
        unseen: SkipValidation[Any] = None
        inner: Inner = Field(default_factory=Inner)
        """[DEPRECATED] Will be removed in v0.40."""

        @field_validator("backend", mode="before")
        @classmethod
        def validate_backend(cls, value):
            return Backend[value.upper()] if isinstance(value, str) else value

        @field_validator("moe", mode="before")
        @classmethod
        def validate_moe(cls, value):
            return value.lower().replace('-', '_') if isinstance(value, str) else value

        @field_validator("mode", mode="wrap")
        @classmethod
        def skip_none(cls, value, handler):
            return value if value is None else handler(value)

    @dataclass
    class Loose:
        depth: int = 1
'''
WANTED: dict[str, dict[str, Any]] = {
    "count": {"kind": "int", "low": 1, "high": 8},
    "share": {"kind": "float", "optional": True, "low": 5e-324},
    "kind": {"kind": "text", "choices": ["arc", "lru"], "optional": True},
    "rows": {"kind": "list[int]", "filled": True},
    "texts": {"kind": "map[text]"},
    "mixed": {"kind": "list[int/text]", "optional": True},
    "mode": {"kind": "int|text", "choices": [0, 2], "optional": True},
    "backend": {"kind": "text", "choices": ["FLASH", "TRITON"], "folds": True, "optional": True},
    "moe": {"kind": "text", "choices": ["deep_gemm", "triton"], "folds": True},
    "place": {"kind": "text"},
    "unseen": {"kind": "any"},
    "inner": {"kind": "json", "settings": "Inner", "deprecated": "0.40"},
}


@pytest.mark.parametrize("key", WANTED)
def test_key_is_told_as_pydantic_takes_it(key: str, tmp_path: Path) -> None:
    interpreter = interpret(tmp_path, {"m.py": SOURCE})
    entries = read_settings(interpreter, [interpreter.import_value("vllm.m.Outer")])
    assert {*entries} == {f"Outer.{name}" for name in WANTED} | {"Inner.depth"}
    assert entries[f"Outer.{key}"] == WANTED[key]


def test_classes_that_refuse_unknown_keys_are_told_apart(tmp_path: Path) -> None:
    called = "from dataclasses import dataclass\n@dataclass\nclass Called:\n    depth: int = 1\n"
    interpreter = interpret(tmp_path, {"m.py": SOURCE, "called.py": called})
    classes = [interpreter.import_value(name) for name in ("vllm.m.Outer", "vllm.m.Loose", "vllm.called.Called")]
    assert read_strict_settings(interpreter, classes, called=classes[2:]) == ["Outer", "Inner", "Called"]
    assert read_strict_settings(interpreter, classes, called=()) == ["Outer", "Inner"]
