import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.tools.registry_sources import GET_KWARGS, SERVE, write_package
from tests.tools.test_registry_families import NAMES
from tools.registry import download
from tools.registry.__main__ import main, read_data, write_data
from tools.registry.release import differences, read_release, render

from longreach.engine.registry import apply_differences

names = st.sampled_from(["--a", "--b", "VLLM_X", "Class.key"])
entries = st.one_of(st.just(1), st.fixed_dictionaries({"kind": st.sampled_from(["int", "text"])}))
sections = st.dictionaries(st.sampled_from(["flags", "env"]), st.dictionaries(names, entries))


def without_empty(found: Any) -> dict[str, Any]:
    return {section: rows for section, rows in found.items() if rows}


@given(before=sections, after=sections)
def test_differences_lead_from_one_release_to_the_next(before: dict[str, Any], after: dict[str, Any]) -> None:
    everything = {section: after.get(section, {}) for section in {*before, *after}}  # the reader names every section
    written = json.loads(render(differences(before, everything)))
    assert without_empty(apply_differences(before, written)) == without_empty(after)


def test_data_has_one_entry_a_line_so_that_a_release_reads_as_a_difference() -> None:
    assert render({"env": {"B": 1, "A": 1}, "flags": {"--x": {"kind": "int"}}}) == (
        '{"env":{\n"A":1,\n"B":1},\n"flags":{\n"--x":{"kind":"int"}}}\n'
    )


def test_data_is_read_as_it_was_written_and_names_come_and_go(tmp_path: Path) -> None:
    releases = {
        "0.9.2": {"env": {"A": 1, "B": 1}},
        "0.10.0": {"env": {"B": 1}},
        "0.11.0": {"env": {"B": 1, "C": 1}},
    }
    write_data(releases, tmp_path)
    assert read_data(tmp_path) == releases
    assert json.loads((tmp_path / "0.10.0.json").read_text()) == {"env": {"A": None}}


def test_release_that_is_not_published_ends_with_advice_and_changes_nothing(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    monkeypatch.setattr(download, "list_files", lambda: ())
    assert main(["0.99.0", "--cache", str(tmp_path)]) == 1
    error = capsys.readouterr().err
    assert error.startswith("error: vLLM 0.99.0 cannot be fetched\n  why: the package index offers neither")
    assert "\n  fix: name a published release" in error
    assert "0.99.0" not in read_data()


OPTIONS = """
    from dataclasses import dataclass
    from typing import Literal
    from vllm.config.cache import CacheDType

    @dataclass
    class Draft:
        cache_dtype: CacheDType = "auto"
        kind: Literal["a", "b", "c", "d", "e"] = "a"

    @dataclass
    class Options:
        cache_dtype: CacheDType = "auto"
        kind: Literal["e", "d", "c", "b", "a"] = "a"
        draft: Draft = None

    def make_arg_parser(parser):
        for key, value in get_kwargs(Options).items():
            parser.add_argument("--" + key, **value)
        parser.add_argument("--tool-call-parser", choices=list(ToolParserManager.tool_parsers))
        return parser

    class ToolParserManager:
        tool_parsers = {}
"""


def test_lists_of_names_are_written_once_and_referred_to(tmp_path: Path) -> None:
    modules = NAMES | {"arguments.py": GET_KWARGS + OPTIONS, "entrypoints/cli/serve.py": SERVE}
    release = read_release(write_package(tmp_path, modules))
    flags, settings = release["flags"], release["settings"]
    assert flags["--cache-dtype"]["choices"] == "kv_cache_dtype"
    assert settings["Draft.cache_dtype"]["choices"] == "kv_cache_dtype"
    assert flags["--kind"]["choices"] == list("abcde")
    assert settings["Draft.kind"]["choices"] == "--kind"
    assert flags["--tool-call-parser"]["choices"] == "tool_parser"
    assert flags["--draft"]["settings"] == "Draft"
