from pathlib import Path
from typing import Any

import pytest
from tests.tools.registry_sources import GET_KWARGS, SERVE, write_package
from tools.registry.options import deprecation, read_options, start

CONFIG = '''
    from dataclasses import dataclass, field
    from typing import TYPE_CHECKING, Literal, Optional, Union
    from pydantic import SkipValidation
    from vllm.names import Backend

    if TYPE_CHECKING:
        from vllm.names import Quantization
    else:
        Quantization = str

    @dataclass
    class Inner:
        depth: int = 1

    @dataclass
    class CacheConfig:
        dtype: Literal["auto", "fp8"] = "auto"
        """[DEPRECATED] Kind of cache. Will be removed in v0.34.0."""
        method: Optional[Literal["lru", "arc"]] = None
        quantization: Optional[Quantization] = None
        backend: Optional[Backend] = None
        max_bytes: SkipValidation[int] = None
        size: int = 3
        prefix: bool = True
        """Turn it on. It reads deprecated names too."""
        names: list[str] = field(default_factory=list)
        inner: Inner = field(default_factory=Inner)
        extra: dict[str, int] = field(default_factory=dict)
'''
NAMES = """
    import enum
    from typing import Literal
    Quantization = Literal["awq", "fp8"]

    class Backend(enum.Enum):
        FLASH = "a.b"
        TRITON = "a.c"
"""
ARGUMENTS = """
    class Manager:
        parsers = {}  # filled when the program runs

    def make_arg_parser(parser):
        parser.add_argument("model_tag", type=str, nargs="?")
        parser.add_argument("--headless", action="store_true")
        kwargs = get_kwargs(CacheConfig)
        kwargs["names"]["action"] = "append"
        del kwargs["names"]["nargs"]
        group = parser.add_argument_group(title="CacheConfig")
        for key, value in kwargs.items():
            group.add_argument("--" + key, **value)
        group.add_argument("--tensor-parallel-size", "-tp", **{**kwargs["size"], "default": None})
        parser.add_argument("--fold", type=lambda s: s.lower().replace("-", "_"), choices=["a_b", "c"])
        parser.add_argument("--parser", choices=list(Manager.parsers), deprecated=True, help="It has no effect.")
        parser.add_argument("--hf-token", type=str, nargs="?", const=True, default=unseen)
        return parser
"""
MODULES = {
    "entrypoints/cli/serve.py": SERVE,
    "config/__init__.py": CONFIG,
    "names.py": NAMES,
    "arguments.py": GET_KWARGS + "    from vllm.config import CacheConfig\n" + ARGUMENTS,
}
WANTED: dict[str, dict[str, Any]] = {
    "--headless": {"kind": "switch"},
    "--dtype": {"kind": "text", "choices": ["auto", "fp8"], "default": "auto", "deprecated": "0.34"},
    "--method": {"kind": "text", "choices": ["arc", "lru"], "optional": True},
    "--quantization": {"kind": "text", "optional": True, "known": ["awq", "fp8"]},
    "--backend": {"kind": "text", "optional": True, "known": ["FLASH", "TRITON"]},
    "--max-bytes": {"kind": "size"},
    "--size": {"kind": "int", "default": 3},
    "--prefix": {"kind": "bool", "default": True},
    "--names": {"kind": "text", "default": [], "repeats": True},
    "--inner": {"kind": "json", "default_is_static": False, "settings": "Inner"},
    "--extra": {"kind": "json", "default": {}},
    "--tensor-parallel-size": {"kind": "int", "aliases": ["-tp"]},
    "--fold": {"kind": "text", "choices": ["a_b", "c"], "folds": True},
    "--parser": {"kind": "text", "deprecated": "", "no_effect": True},
    "--hf-token": {"kind": "text", "nargs": "?", "default_is_static": False},
}


def test_each_option_is_told_as_its_parser_takes_it(tmp_path: Path) -> None:
    folder = write_package(tmp_path, MODULES)
    options = read_options(start(folder), start(folder, typed=True))
    got = {option.name: {key: value for key, value in option.entry.items() if key in _ALL} for option in options}
    assert got == WANTED
    assert [option.name for option in options if option.lists_when_run] == ["--parser"]


_ALL = {key for entry in WANTED.values() for key in entry}


@pytest.mark.parametrize(
    ("text", "entry"),
    [
        ("[DEPRECATED] Use --x. Will be removed in v0.12.0.", {"deprecated": "0.12"}),
        ("(Deprecated) The old way.", {"deprecated": ""}),
        ("This parameter is deprecated and will be\n removed in a future release.", {"deprecated": ""}),
        ("The flag is deprecated and has\n no effect.", {"deprecated": "", "no_effect": True}),
        ("Whether to allow deprecated quantization methods.", {}),
        ("It has no effect with Ray.", {}),
        ("", {}),
    ],
    ids=["bracket", "parenthesis", "sentence", "without effect", "speaks of others", "no effect alone", "empty"],
)
def test_only_a_text_about_the_option_itself_makes_it_deprecated(text: str, entry: dict[str, Any]) -> None:
    assert deprecation(text) == entry
