"""Dockerfiles, Makefiles, Python, workflows and supervisord: their commands, and what is said of what is not read."""

import pytest

from longreach.engine.launchfiles.found import FoundCommand
from longreach.engine.launchfiles.recognise import find_commands
from longreach.errors import UsageError

SERVE = ("vllm", "serve", "m", "--port", "80")


def only(text: str, name: str = "") -> FoundCommand:
    (found,) = find_commands(text, name)
    return found


READ = {
    "image with arguments": ('FROM vllm/vllm-openai:v0.32.0\nENV A=1\nCMD ["m", "--port", "80"]', "Dockerfile", 3),
    "entry point": ('FROM x\nENV A 1\nENTRYPOINT ["vllm", "serve"]\nCMD ["m", "--port", "80"]', "a/b.Dockerfile", 3),
    "for a shell": (
        'ARG T=1\nFROM x:$T AS y\nARG P=80\nENV A=1 B="2 3"\nCMD vllm serve m \\\n  # why\n  --port 80',
        "",
        5,
    ),
    "command that the entry point resets": (
        'FROM x\nENV A=1\nCMD ["x"]\nENTRYPOINT vllm serve m --port 80',
        "Dockerfile",
        4,
    ),
    "recipe": (
        "M ?= m\nPORT := 80\n.PHONY: serve\nserve: x\n\t@A=1 vllm serve $(M) \\\n\t\t--port ${PORT}\n",
        "Makefile",
        5,
    ),
    "recipe without a name": ("serve:\n\tA=1 vllm serve m --port 80\n", "", 2),
    "list of words": ('import subprocess\nm = "m"\np = ["vllm", "serve", m, "--port", str(80)]\n', "a.py", 3),
    "line for a shell": ('import os\nos.system(f"A=1 vllm serve m --port {80}")\n', "", 2),
    "workflow": (
        "jobs:\n  t:\n    env: {A: 1}\n    services: {db: {image: x}}\n    steps:\n    - run: |\n        vllm serve m --port 80\n",
        "ci.yml",
        7,
    ),
    "pipeline": (
        "t:\n  variables: {A: '1'}\n  script:\n    - pip install vllm\n    - vllm serve m --port 80\n",
        "x.yml",
        5,
    ),
    "task of Ansible": ("- name: x\n  shell: vllm serve m --port 80\n  environment: {A: '1'}\n", "x.yml", 2),
    "task of SkyPilot": (
        "envs: {A: '1', M: m}\nresources: {cpus: 4}\nrun: |\n  vllm serve $M --port 80\n",
        "x.yaml",
        4,
    ),
    "supervisord": ("[program:v]\ncommand=/opt/bin/vllm serve m --port 80\nenvironment=A=\"1\",B='x'\n", "", 2),
}


@pytest.mark.parametrize(("text", "name", "line"), READ.values(), ids=READ.keys())
def test_the_command_is_found_in(text: str, name: str, line: int) -> None:
    found = only(text, name)
    assert (found.argv, found.problems, found.line) == (SERVE, (), line)
    assert dict(found.env).get("A", "1") == "1"
    assert bool(found.env) == ("A" in text)


def test_computed_words_of_python_and_of_a_workflow_stay_open() -> None:
    assert only('import os\ncmd = ["vllm", "serve", model, *more, f"--port={p}", a.b]\n').argv[2:] == (
        "${model}", "${more}", "--port=${p}", "${value}",
    )  # fmt: skip
    assert only("steps:\n  - run: vllm serve ${{ matrix.model }} --tp ${{ x }}\n").argv[2:] == (
        "${{ matrix.model }}", "--tp", "${{ x }}",
    )  # fmt: skip


def test_a_dockerfile_says_nothing_of_how_its_container_is_run() -> None:
    assert only('FROM vllm/vllm-openai\nCMD ["m"]').format == "dockerfile"


def test_every_stage_of_a_dockerfile_has_its_command() -> None:
    text = 'FROM vllm/vllm-openai:v0.32.0 AS a\nCMD ["a"]\nFROM nginx\nCMD ["serve"]\nFROM vllm/vllm-openai:v0.8.5\nCMD ["b"]\n'
    assert [(found.argv[0], found.argv[-1]) for found in find_commands(text)] == [("vllm", "a"), ("python3", "b")]


def test_a_script_that_writes_a_unit_has_its_own_commands_too() -> None:
    text = "cat > a.service <<EOF\n[Service]\nExecStart=/bin/vllm serve a\nEOF\nssh h 'vllm serve b'\ntmux new 'vllm serve c'\n"
    assert [(found.argv[2], found.line, found.format) for found in find_commands(text)] == [
        ("a", 3, "systemd"),
        ("b", 5, "shell"),
        ("c", 6, "shell"),
    ]


def test_a_script_that_only_looks_like_another_format_is_read_as_a_script() -> None:
    assert only("python - <<EOF\nimport os\nEOF\nvllm serve m\n").argv == ("vllm", "serve", "m")


OTHERS = {
    "proxy": "services:\n  a: {image: 'nginx', command: [--tensor-parallel-size, '2']}",
    "another server": "services:\n  a: {image: 'ollama/ollama', command: serve}",
    "another server's flag": "docker run lmsysorg/sglang:latest --model m",
    "KServe": "apiVersion: serving.kserve.io/v1beta1\nkind: InferenceService\nspec:\n  predictor:\n    model:\n"
    "      modelFormat: {name: huggingface}\n      args: [--model_name=x, --max-model-len, '4096']",
}


@pytest.mark.parametrize("text", OTHERS.values(), ids=OTHERS.keys())
def test_a_container_of_something_else_is_no_vllm(text: str) -> None:
    with pytest.raises(UsageError, match="holds no command that starts a vLLM server"):
        find_commands(text)


@pytest.mark.parametrize("image", ["$IMAGE", "IMAGE_ID", "{{ image }}", "0123456789ab", "mine/vllm-fork:1"])
def test_an_image_that_is_not_told_may_be_vllm(image: str) -> None:
    assert only(f"docker run '{image}' --model m").argv == ("vllm", "serve", "--model", "m")


UNREAD = {
    "hcl": ('job "v" {\n  args = ["vllm serve m"]\n}', "'vllm serve' stands on line 2"),
    "terraform": ('x "vllm" {\n image = "vllm/vllm-openai:v0.11.0"\n}', "'vllm/vllm-openai:v0.11.0' stands on line 2"),
    "KServe": (OTHERS["KServe"], "modelFormat huggingface"),
    "nothing": ("echo hello", "neither 'vllm serve'"),
}


@pytest.mark.parametrize(("text", "why"), UNREAD.values(), ids=UNREAD.keys())
def test_what_is_not_read_is_said_with_its_line(text: str, why: str) -> None:
    with pytest.raises(UsageError) as caught:
        find_commands(text)
    assert why in caught.value.why
