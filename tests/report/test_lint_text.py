"""The mended command as a script: untouched words as the source spells them, what stood around them kept."""

import pytest
from tests.accuracy.commands import CommandLine, read_lines

from longreach.engine.launchfiles.recognise import find_commands
from longreach.engine.options import ServeCommand
from longreach.report.lint_text import render_open_shell


def rendered(script: str, *more: str) -> str:
    (found,) = find_commands(script, "a.sh")
    command = ServeCommand((*found.argv, *more), found.env)
    return render_open_shell(command, found.source).replace(" \\\n  ", " ").replace(" \\\n", " ")


UNTOUCHED = {
    "home": "vllm serve ~/models/x --download-dir ~root",
    "arguments": 'vllm serve m "$@" $* "${@:2}"',
    "unquoted variable": "vllm serve m $EXTRA_ARGS --port ${PORT}",
    "option that may be given": "vllm serve m ${TP:+--tensor-parallel-size $TP}",
    "quotes in a substitution": 'vllm serve m --served-model-name "$(echo "a  b")"',
    "several words of a substitution": "vllm serve m $(echo --seed 4)",
    "single quotes": "vllm serve m --api-key 'pa$HOME' --served-model-name 'it'\\''s'",
    "backticks": 'vllm serve m --served-model-name `hostname` "`date`"',
    "C escapes": "vllm serve m --served-model-name $'it\\'s\\ttab'",
    "globs and braces": "vllm serve m --lora-modules {a,b}=/x l*.yaml m{1..3}",
    "escapes": 'vllm serve m --served-model-name a\\ b "q\\"d\\$x"',
    "arithmetic": "vllm serve m --port $((P + 1))",
    "nothing": 'vllm serve m --served-model-name ""',
    "environment": "CUDA_VISIBLE_DEVICES=\"$(seq -s, 0 1)\" A='$x' vllm serve m",
    "a program at its place": "/opt/venv/bin/vllm serve m",
    "a python of its own": "/opt/python3.12 -u -m vllm.entrypoints.openai.api_server --model m",
    "wrappers": "nohup numactl --membind=0 vllm serve m",
    "wrappers around the environment": "sudo -E env A=1 nice -n 5 vllm serve m",
    "a word of the shell": "time A=1 timeout 9 vllm serve m",
    "redirections": 'vllm serve m > "log_$port.txt" 2>&1 < /dev/null &',
    "pipe": "vllm serve m 2>&1 | tee -a logs/$(date +%F).log &",
    "text for input": 'vllm serve m >& log <<< "$X"',
    "option of another program": "docker exec -e A=1 box vllm serve m",
    "expression of a template": "vllm serve ${{ matrix.model }} --tp ${{ x }}",
    "processes": "vllm serve m > >(tee log) 2>> e",
}


@pytest.mark.parametrize("script", UNTOUCHED.values(), ids=UNTOUCHED.keys())
def test_an_untouched_command_is_spelled_as_it_was(script: str) -> None:
    assert rendered(script).removeprefix("A=1 docker").removeprefix("docker") == script.removeprefix("docker")


EXPANDED = {
    "literal": ("A='pa$HOME'\nvllm serve m --api-key \"$A\"", "vllm serve m --api-key 'pa$HOME'"),
    "default of an open variable": (
        'M="${1:-m}"\nvllm serve "$M" --port ${PORT:-80} ${X:---seed 1}',
        'vllm serve "${1:-m}" --port ${PORT:-80} --seed 1',
    ),
    "default of a set variable": ('P=1\nvllm serve m --port "${P:-80}"', "vllm serve m --port 1"),
    "open": ('A="pa$HOME"\nvllm serve m --api-key $A', 'vllm serve m --api-key pa"$HOME"'),
    "split": ("A='--api-key $x'\nvllm serve m $A", "vllm serve m --api-key '$x'"),
    "home": ("M=~/x\nvllm serve $M", "vllm serve ~/x"),
    "beside open text": ('D=/d\nvllm serve "$D/$N" --port $P', 'vllm serve /d/"$N" --port $P'),
    "grown": ("A=x\nA+='$y'\nvllm serve m --api-key \"$A\"", "vllm serve m --api-key x'$y'"),
    "array": ("A=(--seed '$1')\nvllm serve m \"${A[@]}\"", "vllm serve m --seed '$1'"),
    "exported": ("export A='$x' B=$y\nvllm serve m", "A='$x' B=\"$y\" vllm serve m"),
    "quote never closed": ("vllm serve m --api-key 'x", "vllm serve m --api-key x"),
    "substitution never closed": ("vllm serve $(cat x", "vllm serve '$(cat' x"),
    "log of a variable": ("L=/l\nvllm serve m > $L/log | tee $L/x", "vllm serve m > /l/log | tee /l/x"),
    "redirection in the midst": ("vllm serve m 2>/dev/null --port 1", "vllm serve m --port 1 2> /dev/null"),
}


@pytest.mark.parametrize(("script", "expected"), EXPANDED.values(), ids=EXPANDED.keys())
def test_what_the_script_sets_is_put_in_and_a_literal_dollar_stays_one(script: str, expected: str) -> None:
    assert rendered(script) == expected


def test_new_words_are_quoted_beside_those_of_the_source() -> None:
    assert rendered("vllm serve ~/x '$a' &", "--port", "$P", "--hf-overrides", '{"a": 1}') == (
        "vllm serve ~/x '$a' --port \"$P\" --hf-overrides '{\"a\": 1}' &"
    )


def test_typed_words_keep_their_variables_open() -> None:
    assert render_open_shell(ServeCommand(("vllm", "serve", "m", "--port", "$P"))) == 'vllm serve m \\\n  --port "$P"'


LEFT_OUT = {
    "ssh": ("ssh host 'vllm serve m' > log", "ssh host ... > log"),
    "container": ("docker run --gpus all vllm/vllm-openai m", "docker run --gpus all vllm/vllm-openai ..."),
    "loop behind it": ("vllm serve m | while read l; do :; done", "what it is piped into"),
    "pipe behind its group": ("{ vllm serve m; } 2>&1 | tee log", "what stands behind its group"),
    "loop in the background": ("while true; do vllm serve m; done &", "what stands behind its group"),
    "pipe before it": ("yes | vllm serve m", "what is piped into it"),
    "here-document": ("vllm serve m <<E\nx\nE", "the here-document that it reads"),
}


@pytest.mark.parametrize(("script", "said"), LEFT_OUT.values(), ids=LEFT_OUT.keys())
def test_what_cannot_stay_on_the_line_is_said(script: str, said: str) -> None:
    (found,) = find_commands(script, "a.sh")
    assert found.source.left_out == (said,)
    assert found.source.after == ""


@pytest.mark.parametrize("line", [line for line in read_lines() if line.argv is not None], ids=lambda line: line.id)
def test_a_published_line_printed_as_it_was_spelled_is_found_again(line: CommandLine) -> None:
    for found in find_commands(line.command):
        (again,) = find_commands(render_open_shell(ServeCommand(found.argv, found.env), found.source), "a.sh")
        assert (again.argv, dict(again.env)) == (found.argv, dict(found.env))
