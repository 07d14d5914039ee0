"""Texts that are no launch files, or mean harm: told in plain words, in bounded time."""

import random

import pytest
from tests.accuracy.commands import read_lines

from longreach.engine.launchfiles.recognise import MAX_CHARACTERS, find_commands
from longreach.errors import LongreachError, UsageError

BOMB = "a: &a0 [x, x]\n" + "".join(f"b{i}: &a{i + 1} [*a{i}, *a{i}]\n" for i in range(60)) + "command: *a60\n"
MERGE_BOMB = (
    "a: &a0 {x: 1}\n"
    + "".join(f"b{i}: &a{i + 1} {{<<: [*a{i}, *a{i}]}}\n" for i in range(60))
    + "services: {s: *a60}\n"
)

REFUSED = {
    "zero bytes": ("\0ELF vllm serve", "", "not a text file"),
    "too large": ("x" * (MAX_CHARACTERS + 1), "", "too large"),
    "bad YAML": ("services:\n  a: [vllm serve\n", "compose.yaml", "is not YAML"),
    "template": ("containers:\n{{- if x }}\n- args: [vllm, serve]\n", "pod.yaml", "is not YAML"),
    "deep YAML": ("command: " + "[" * 5000, "a.yaml", "is not YAML"),
    "alias bomb": (BOMB, "a.yaml", "no command"),
    "merge bomb": (MERGE_BOMB, "a.yaml", "no command"),
    "alias of itself": ("services: &a\n  s: *a\n  command: *a\n", "a.yaml", "no command"),
    "other unit": ("[Service]\nExecStart=/bin/true\n", "a.service", "no command"),
}


@pytest.mark.parametrize(("text", "name", "what"), REFUSED.values(), ids=REFUSED.keys())
def test_what_cannot_be_read_is_told(text: str, name: str, what: str) -> None:
    with pytest.raises(LongreachError, match=what) as caught:
        find_commands(text, name)
    assert caught.value.why
    assert "longreach lint" in caught.value.fix or "render it first" in caught.value.fix


NAMES = ["", "x.yaml", "a.sh", "u.service", "Dockerfile", "Makefile", "a.py"]
NESTED = {
    "one long word": "a" * 490_000,
    "an image of one long line": "FROM " + "a" * 490_000,
    "a definition of blanks": "x:\n\ty\nA =" + " " * 490_000 + "x",
    "settings without a value": "[program:x]\nenvironment=" + "a" * 490_000,
    "openers in a variable": "A=" + "'" + "${" * 40_000 + "'\nvllm serve $A",
    "scripts below many variables": "env: {"
    + ", ".join(f"A{n}: 1" for n in range(3_000))
    + "}\n"
    + "steps:\n"
    + "- {run: vllm serve m}\n" * 1_500,
    "deep Python": "import os\nx = " + "-" * 90_000 + "1",
    "subshells": "(A=1; " * 20_000 + "vllm serve m" + ")" * 20_000,
    "keys that hold themselves": "services:\n  v:\n    image: vllm/vllm-openai\n    environment:\n      ? &k [*k]\n      : 1",
    "values that hold themselves": "services:\n  v:\n    image: vllm/vllm-openai\n    environment: &e [*e, {<<: *e}]",
    "pipes": "vllm serve m " + "| vllm serve m " * 5_000,
    "substitutions": "vllm serve " + "$(" * 20_000,
    "defaults": "vllm serve " + "${A:-" * 10_000 + "}" * 10_000,
    "quotes": "vllm serve " + "'\"" * 20_000,
    "doubling variable": "A=aaaa\n" + "A=$A$A\n" * 200 + "vllm serve $A",
    "doubling array": "A=(a b)\n" + 'A=("${A[@]}" "${A[@]}")\n' * 60 + 'vllm serve "${A[@]}"',
    "conditions": "if x; then A=1\n" * 3_000 + "vllm serve $A",
    "here-documents": "cat <<EOF\n" * 5_000 + "vllm serve m",
    "here-documents on a line": "cat " + "<<E " * 20_000,
    "documents": "---\n" * 20_000 + "command: vllm serve m",
    "blanks": " " * 60_000 + "vllm serve",
    "JSON": "vllm serve m " + "{a " * 10_000,
    "fences": "```a\n" * 5_000 + "```\n```\nvllm serve m\n```",
    "stray options": "vllm serve m\n" + "--x\n" * 5_000,
    "shells": "bash -c 'bash -c \"" * 500 + "vllm serve m",
}


@pytest.mark.timeout(20)
@pytest.mark.parametrize("text", NESTED.values(), ids=NESTED.keys())
def test_nesting_and_doubling_stay_bounded(text: str) -> None:
    try:
        found = find_commands(text)
    except UsageError:
        return
    assert sum(len(word) for command in found for word in command.argv) < 5_000_000


def test_no_damaged_text_makes_it_fall() -> None:
    chance = random.Random(7)
    texts = [line.command for line in read_lines()]
    outcomes: set[str] = set()
    for _ in range(400):
        text = chance.choice(texts)
        for _ in range(chance.randint(1, 6)):
            at = chance.randrange(len(text) + 1)
            text = (
                text[:at]
                + chance.choice("\\\n'\"`$(){}[]#&|;<> \t-:,*!~%\u2013\u201c")
                + text[at + chance.randint(0, 4) :]
            )
        try:
            outcomes.add("found" if find_commands(text, chance.choice(NAMES)) else "nothing")
        except LongreachError as error:
            outcomes.add("told" if error.why and error.fix else "silent")
    assert outcomes == {"found", "told"}
