"""Scripts as people write them: the words that a shell would run, and what it would add to their environment."""

import pytest

from longreach.engine.launchfiles.found import FoundCommand
from longreach.engine.launchfiles.recognise import find_commands, find_in_words
from longreach.errors import UsageError


def only(text: str, name: str = "") -> FoundCommand:
    (found,) = find_commands(text, name)
    return found


SERVES = {
    "wrapped": "exec nohup numactl --cpunodebind=0 --membind=0 /opt/venv/bin/vllm serve m --port 80",
    "environment": "CUDA_VISIBLE_DEVICES=0,1 env HF_HOME=/x sudo -E vllm serve m --port 80",
    "uv": "uv run --with vllm==0.32.0 vllm serve m --port 80",
    "cli module": "python3.12 -u -m vllm.entrypoints.cli.main serve m --port 80",
    "output cut off": "vllm serve m --port 80 2>&1 > server.log | tee log &",
    "input cut off": "vllm serve m --port 80 < /dev/null &> all.log; sleep 5",
    "comment at the end": "vllm serve m --port 80 # --dtype half",
    "line ends of Windows": "vllm serve m \\\r\n  --port 80\r\n",
    "line ends of PowerShell": "vllm serve m `\n  --port 80",
    "prompt": "$ vllm serve m \\\n    --port 80",
    "root prompt": "(venv) root@box:~# vllm serve m --port 80",
    "shell in a shell": "ssh box \"cd /srv && bash -lc 'vllm serve m --port 80'\"",
    "container": "docker container run --rm vllm/vllm-openai:v0.32.0 m --port 80",
    "quotes of bash": "vllm serve $'m' --port $'80'",
    "element of a list": "A[0]=x B=m\\n\nP+=80\nvllm serve m --port 80",
    "text added to a list": 'P=(8)\nP+=0\nvllm serve m --port "${P[@]}"',
    "list added to text": "P=m\nP+=(--port 80)\nvllm serve ${P[@]}",
    "tmux": "tmux new-session -d -s vllm 'vllm serve m --port 80'",
    "variables": 'MODEL=m PORT=80\nvllm serve "$MODEL" --port ${PORT}',
    "variable with a default": "vllm serve ${MODEL:-m} --port ${PORT:=80}",
    "variable split": 'ARGS="m --port 80"\nvllm serve $ARGS',
    "command in a variable": 'CMD="vllm serve m"\n$CMD --port 80',
    "array": 'ARGS=(\n  m # the model\n)\nARGS+=(--port 80)\nvllm serve "${ARGS[@]}"',
    "eval": 'ARGS="--port 80"\neval "vllm serve m $ARGS"',
    "here-document": "cat <<'EOF' > README\nvllm serve other\nEOF\nvllm serve m --port 80",
    "function": "start() {\n  local port=80\n  vllm serve m --port $port\n}\nstart",
    "condition": "if command -v vllm >/dev/null; then vllm serve m --port 80; fi",
    "fences": "Start it:\n\n```bash\nvllm serve m --port 80\n```\n\nNot `vllm serve x`, and not:\n\n```\nINFO vllm 0.32\n```\n",
    "guarded addition": 'CMD="vllm serve m --port 80"\n[ -n "$X" ] && CMD+=" --extra"\n$CMD',
    "guard before it": "cd /srv && PORT=80 && vllm serve m --port $PORT",
    "script in a here-document": "cat > run.sh <<'EOF'\n#!/bin/sh\nvllm serve m --port 80\nEOF\nchmod +x run.sh",
    "manifest in a here-document": "kubectl apply -f - <<EOF\n  args: [vllm, serve, m, --port, '80']\nEOF",
    "empty variable": "EXTRA=\nvllm serve m --port 80 $EXTRA",
}


@pytest.mark.parametrize("text", SERVES.values(), ids=SERVES.keys())
def test_the_server_is_found_in(text: str) -> None:
    found = only(text)
    assert found.argv == ("vllm", "serve", "m", "--port", "80")
    assert found.problems == ()


SILENT = [
    "echo 'vllm serve m'",
    "pkill -f 'vllm serve'",
    "pip install vllm",
    "vllm bench serve --model m",
    "# vllm serve m",
    "",
]


@pytest.mark.parametrize("text", SILENT)
def test_what_starts_no_server_is_told(text: str) -> None:
    with pytest.raises(UsageError, match="holds no command that starts a vLLM server"):
        find_commands(text)


def test_open_variables_stay_as_written() -> None:
    found = only('vllm serve "$MODEL" --port $PORT --tp ${TP} --dir $(pwd)/x ${ARGS[@]}')
    assert found.argv[2:] == ("$MODEL", "--port", "$PORT", "--tp", "${TP}", "--dir", "$(pwd)/x", "${ARGS[@]}")


def test_what_one_branch_sets_is_open_and_what_it_appends_left_out() -> None:
    script = (
        'A=(m)\nif x; then A+=(--eager); P=1\nelse P=2; fi\nfor i in 1 2; do Q=$i; done\nvllm serve "${A[@]}" $P $Q'
    )
    assert only(script).argv[2:] == ("m", "$P", "$Q")


def test_an_empty_default_tells_nothing() -> None:
    assert only('MODEL="${1:-${MODEL:-}}"\nvllm serve "$MODEL" ${EXTRA:-}').argv[2:] == (
        "${MODEL:-}",
        "${EXTRA:-}",
    )


def test_a_variable_set_behind_a_test_is_open_afterwards() -> None:
    assert only('P=1\n[ -z "$X" ] && P=2\nQ=1\ntrue || Q=2\nvllm serve m $P $Q').argv[3:] == ("$P", "$Q")


def test_inside_a_branch_its_own_values_hold() -> None:
    script = "case $1 in\nbig) T=8; vllm serve b --tp $T ;;\n*) T=2\nvllm serve s --tp $T ;;\nesac"
    assert [found.argv[2:] for found in find_commands(script)] == [("b", "--tp", "8"), ("s", "--tp", "2")]


def test_exported_and_prefixed_variables_are_the_environment() -> None:
    found = only("export A=1 B\nB=2\nC=3\nexport D=$HOME\nE='x y' vllm serve m")
    assert dict(found.env) == {"A": "1", "B": "2", "D": "$HOME", "E": "x y"}


def test_each_command_knows_its_line_and_format() -> None:
    found = find_commands(
        "#!/bin/sh\n\nvllm serve a &\nvllm serve b \\\n --port 1\npython -m vllm.entrypoints.openai.api_server --model c"
    )
    assert [(item.line, item.format, item.entry) for item in found] == [
        (3, "shell", "vllm serve"),
        (4, "shell", "vllm serve"),
        (6, "shell", "api_server"),
    ]
    assert found[2].argv == ("python3", "-m", "vllm.entrypoints.openai.api_server", "--model", "c")


JOINED = {
    "comment": ("vllm serve m \\\n  # note \\\n  --port 80", "comment_in_continuation"),
    "empty line": ("vllm serve m \\\n\n  --port 80", "continuation_missing"),
    "no backslash": ("vllm serve m\n--port 80", "continuation_missing"),
    "blank behind it": ("vllm serve m \\  \n--port 80", "blank_after_backslash"),
    "open quote": ("vllm serve m --port '80", "quote_not_closed"),
    "dash": ("vllm serve m \u2014port 80", "typographic_characters"),
    "hard blank": ("vllm serve m --port\u00a080", "typographic_characters"),
    "curly quotes": ("vllm serve \u201cm\u201d --port 80", "typographic_characters"),
}


@pytest.mark.parametrize(("text", "kind"), JOINED.values(), ids=JOINED.keys())
def test_what_was_meant_is_read_and_the_mistake_told(text: str, kind: str) -> None:
    found = only(text)
    assert found.argv == ("vllm", "serve", "m", "--port", "80")
    assert [problem.kind for problem in found.problems] == [kind]


def test_json_over_several_lines_stays_whole() -> None:
    found = only('vllm serve m --kv-transfer-config \'{\n  "kv_role": "kv_both"\n}\' -tp 2')
    assert found.argv[3:] == ("--kv-transfer-config", '{\n  "kv_role": "kv_both"\n}', "-tp", "2")


def test_bare_arguments_are_those_of_an_image() -> None:
    found = only("--model m \\\n  --port 80")
    assert (found.argv, found.entry) == (("vllm", "serve", "--model", "m", "--port", "80"), "image")


def test_an_argument_vector_is_unwrapped() -> None:
    found = find_in_words(["A=1", "docker", "run", "--gpus", "all", "-e", "B=2", "vllm/vllm-openai:v0.32.0", "m"])
    assert (found.argv, found.env, found.gpus) == (("vllm", "serve", "m"), (("B", "2"),), "all")
    with pytest.raises(UsageError, match="does not start a vLLM server"):
        find_in_words(["ls", "-l"])


ENVIRONMENTS = {
    "unset": ("export A=1 B=2\nunset A\nvllm serve m", {"B": "2"}),
    "no longer exported": ("export A=1\nexport -n A\nvllm serve m", {}),
    "left subshell": ("export A=1\n(export A=2 B=3)\nvllm serve m", {"A": "1"}),
    "in a subshell": ("export A=1\n(export A=2; vllm serve m)", {"A": "2"}),
    "case in a subshell": ("A=0\n(case $1 in a) A=1 ;; esac; export A)\nexport A\nvllm serve m", {"A": "0"}),
    "declared": ("declare -x A=1\ntypeset -x B=2\nreadonly C=3\nvllm serve m", {"A": "1", "B": "2"}),
    "all": ("set -a\nA=1\nset +a\nB=2\nset -o allexport\nC=3\nvllm serve m", {"A": "1", "C": "3"}),
    "value of an option": ("uv run --with vllm==0.9.2 --index-url a=b vllm serve m", {}),
    "behind env": ("env -u X A=1 timeout 5 vllm serve m", {"A": "1"}),
}


@pytest.mark.parametrize(("script", "env"), ENVIRONMENTS.values(), ids=ENVIRONMENTS.keys())
def test_the_environment_is_what_the_shell_would_hand_over(script: str, env: dict[str, str]) -> None:
    assert dict(only(script).env) == env


@pytest.mark.parametrize(
    "line",
    ["uv run --with vllm==0.9.2 vllm serve m", "uvx vllm@0.9.2 serve m", "uvx --from='vllm[x]==0.9.2' vllm serve m"],
)
def test_a_release_that_the_line_installs_is_told(line: str) -> None:
    assert only(line).release == "0.9.2"
