"""Any argument vector written into any format is found again."""

import json

import yaml
from hypothesis import given, settings
from hypothesis import strategies as st

from longreach.engine.launchfiles.recognise import find_commands
from longreach.engine.launchfiles.split_words import split_words
from longreach.engine.launchfiles.typography import make_plain
from longreach.engine.options import ServeCommand
from longreach.engine.shell import render_shell

# Line ends are left out: prompts and continuations of other shells are cleared at line ends before quotes are read.
texts = st.text(st.characters(exclude_categories=["Cs", "Cc", "Zl", "Zp"]), max_size=12) | st.sampled_from(
    ['{"a": "it\'s $HOME"}', "--flag", "-tp=2", "$PORT", "${TP}", "a b", "\\", "'", '"', "#", ""]
)
words = texts.filter(lambda text: make_plain(f"vllm {text}").text == f"vllm {text}")
arguments = st.lists(words, min_size=1, max_size=6).filter(lambda items: items[0] != "serve")
environments = st.dictionaries(st.from_regex(r"[A-Z][A-Z0-9_]{0,6}", fullmatch=True), words, max_size=3)


@settings(deadline=None)
@given(arguments, environments)
def test_a_rendered_command_is_found_in_a_script(tail: list[str], env: dict[str, str]) -> None:
    command = ServeCommand(("vllm", "serve", *tail), tuple(env.items()))
    (found,) = find_commands(f"#!/bin/sh\nset -e\n{render_shell(command)}wait\n")
    assert (found.argv, found.env, found.problems) == (command.argv, command.env, ())


@settings(deadline=None)
@given(arguments, environments)
def test_a_compose_file_gives_back_what_was_written(tail: list[str], env: dict[str, str]) -> None:
    service = {
        "image": "vllm/vllm-openai",
        "entrypoint": ["vllm", "serve"],
        "command": [word.replace("$", "$$") for word in tail],
        "environment": {name: value.replace("$", "$$") for name, value in env.items()},
    }
    (found,) = find_commands(yaml.safe_dump({"services": {"s": service}}, allow_unicode=True), "compose.yaml")
    assert (found.argv[2:], dict(found.env), found.problems) == (tuple(tail), env, ())


@settings(deadline=None)
@given(arguments, environments)
def test_a_manifest_gives_back_what_was_written(tail: list[str], env: dict[str, str]) -> None:
    variables = [{"name": name, "value": value.replace("$(", "$$(")} for name, value in env.items()]
    container = {"command": ["vllm", "serve"], "args": [word.replace("$(", "$$(") for word in tail], "env": variables}
    pod = {"apiVersion": "v1", "kind": "Pod", "spec": {"containers": [container]}}
    for text in (yaml.safe_dump(pod, allow_unicode=True), json.dumps(pod, ensure_ascii=False)):
        (found,) = find_commands(text)
        assert (found.argv[2:], dict(found.env), found.problems) == (tuple(tail), env, ())


@given(st.lists(words, max_size=6))
def test_words_in_double_quotes_are_split_as_they_were_joined(items: list[str]) -> None:
    quoted = ['"' + item.replace("\\", "\\\\").replace('"', '\\"') + '"' for item in items]
    assert split_words(" ".join(quoted)).words == tuple(items)
    assert split_words(" ".join(quoted), c_escapes=True).words == tuple(items)
