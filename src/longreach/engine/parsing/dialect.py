"""How the parser of each release treats the words of a command before argparse sees them. Pure.

Read in FlexibleArgumentParser of 29 releases; a boundary is the first of them that behaves so.
"""

from dataclasses import dataclass

from longreach.engine.registry import version_key


@dataclass(frozen=True, slots=True)
class Dialect:
    """What one release's parser does with words, where releases differ."""

    dotted_keys: bool  # `--hf-overrides.text_config.x 3`, `--flag.key+ element`
    suffixes_in_json: bool  # `80g` as a bare JSON value, or as the value of a dotted key
    model_option: bool  # `vllm serve --model X` is moved to the front; before, it is refused
    name_needs_model: bool  # `--served-model-name` first and no model anywhere: refused
    module_takes_model: bool  # a bare word of the api_server module is accepted (and ignored)
    config_for_module: bool  # `--config` may follow the api_server module at once
    config_lists: bool  # a YAML list becomes several values; before, one text in brackets
    config_objects: bool  # a YAML mapping becomes JSON; before, Python's text of a dict
    config_negation: bool  # `key: false` of the api_server module becomes `--no-key`; else it is dropped
    python_compilation: bool  # --compilation-config takes a level or Python's text of a dict
    optimization: tuple[str, ...]  # what `-O3` turns into; empty: argparse's own reading of a short option
    compilation_dots: str | None  # what `-O` of `-O.key` turns into; None: it is an optimization level


_SINCE = {
    "dotted_keys": "0.9.2",
    "suffixes_in_json": "0.20.2",
    "model_option": "0.11.2",
    "name_needs_model": "0.17.1",
    "module_takes_model": "0.10.0",
    "config_for_module": "0.10.2",
    "config_lists": "0.10.2",
    "config_objects": "0.16.0",
    "config_negation": "0.28.0",
}
_OPTIMIZATION: tuple[tuple[str, tuple[str, ...], str | None], ...] = (
    ("0.8.5", (), "-O"),
    ("0.9.2", ("-O.level",), "-O"),
    ("0.11.2", ("-O.mode",), "-O"),
    ("0.12.0", ("--optimization-level",), "-cc"),
    ("0.13.0", ("--optimization-level",), None),
)


def get_dialect(version: str) -> Dialect:
    """The dialect of a release of the registry."""
    number = version_key(version)
    known = [row for row in _OPTIMIZATION if version_key(row[0]) <= number]
    _, optimization, dots = known[-1] if known else _OPTIMIZATION[0]
    since = {name: number >= version_key(first) for name, first in _SINCE.items()}
    since["python_compilation"] = number < version_key("0.9")
    return Dialect(**since, optimization=optimization, compilation_dots=dots)
