"""docker run, compose, Kubernetes and systemd: the command, and what surrounds it."""

import pytest

from longreach.engine.launchfiles.container import image_release
from longreach.engine.launchfiles.docker_run import docker_bytes, kubernetes_bytes
from longreach.engine.launchfiles.found import FoundCommand
from longreach.engine.launchfiles.recognise import find_commands
from longreach.units import GIB

IMAGE = "vllm/vllm-openai:v0.32.0"
SERVE = ("vllm", "serve", "m", "--port", "80")


def only(text: str, name: str = "") -> FoundCommand:
    (found,) = find_commands(text, name)
    return found


DOCKER_RUN = f"""docker run -itd --rm --name big --gpus '"device=4,5"' --shm-size=16g --ipc=host --network host \\
  -e A=1 --env "B=x y" -e HF_TOKEN -p8000:80 -v ~/.cache:/home/u/.cache --ulimit memlock=-1:-1 --cap-add=CAP_SYS_NICE \\
  --restart unless-stopped {IMAGE} m --port 80"""

COMPOSE = f"""
x-base: &base
  image: {IMAGE}
  ipc: host
  shm_size: 16gb
services:
  web: {{image: nginx}}
  big:
    <<: *base
    environment: {{A: 1, B: x y, HF_TOKEN: }}
    command: >
      ${{MODEL:-m}} --port 80
    network_mode: host
    ports: ["8000:80"]
    cap_add: [SYS_NICE]
    restart: unless-stopped
    ulimits: {{memlock: {{soft: -1, hard: -1}}}}
    deploy: {{resources: {{reservations: {{devices: [{{driver: nvidia, device_ids: ["4", "5"], capabilities: [gpu]}}]}}}}}}
"""

MANIFEST = f"""
apiVersion: v1
kind: Service
metadata: {{name: s}}
---
apiVersion: apps/v1
kind: Deployment
spec:
  template:
    spec:
      hostIPC: true
      hostNetwork: true
      volumes:
        - name: shm
          emptyDir: {{medium: Memory, sizeLimit: 16Gi}}
      containers:
        - name: big
          image: {IMAGE}
          args: ["$(MODEL)", --port, "80"]
          env:
            - {{name: MODEL, value: m}}
            - {{name: A, value: "1"}}
            - {{name: B, value: "x y"}}
            - name: HF_TOKEN
              valueFrom: {{secretKeyRef: {{name: hf, key: token}}}}
          ports: [{{containerPort: 80, hostPort: 8000}}]
          resources: {{limits: {{nvidia.com/gpu: 2}}}}
          securityContext: {{capabilities: {{add: [SYS_NICE]}}}}
          volumeMounts: [{{name: shm, mountPath: /dev/shm}}]
"""


def test_options_in_an_open_variable_are_no_image() -> None:
    found = only('docker run --gpus all $MOUNTS --name big "$IMAGE" m --max-model-len 8k')
    assert (found.argv, found.image, found.service) == (
        ("vllm", "serve", "m", "--max-model-len", "8k"),
        "$IMAGE",
        "big",
    )


@pytest.mark.parametrize(
    ("service", "gpus"),
    [
        ("gpus: all", "all"),
        ("deploy: {resources: {reservations: {devices: [{driver: nvidia, count: 2, capabilities: [gpu]}]}}}", "2"),
        ("deploy: {resources: {reservations: {devices: [{driver: nvidia, capabilities: [gpu]}]}}}", "all"),
        ("deploy: {resources: {reservations: {devices: [gpu]}}}", None),
        ("runtime: nvidia", None),
    ],
)
def test_the_gpus_of_a_service(service: str, gpus: str | None) -> None:
    assert only(f"services:\n  a:\n    image: {IMAGE}\n    command: m\n    {service}").gpus == gpus


def test_an_environment_may_be_a_list_and_a_limit_a_number() -> None:
    given = 'environment: [A=1, "B=${C:-2}", HF_TOKEN]\n    ulimits: {memlock: -1}'
    found = only(f"services:\n  a:\n    image: {IMAGE}\n    command: m\n    {given}")
    assert found.env == (("A", "1"), ("B", "2"), ("HF_TOKEN", "$HF_TOKEN"))
    assert found.memlock == "-1"


CONTAINER_UNIT = f"""[Container]
Image={IMAGE}
ContainerName=big
Environment=A=1 "B=x y"
AddDevice=nvidia.com/gpu=all
ShmSize=16g
PublishPort=8000:80
Exec=m \\
  --port 80
"""


@pytest.mark.parametrize("text", [DOCKER_RUN, COMPOSE, MANIFEST], ids=["docker", "compose", "kubernetes"])
def test_a_container_tells_its_command_and_what_it_is_given(text: str) -> None:
    found = only(text)
    assert found.argv == SERVE
    assert {"A": "1", "B": "x y", "HF_TOKEN": "$HF_TOKEN"}.items() <= dict(found.env).items()
    assert (found.image, found.service, found.entry, found.problems) == (IMAGE, "big", "image", ())
    assert (found.shm_bytes, found.host_ipc, found.host_network) == (16 * GIB, True, True)
    assert (found.capabilities, found.ports) == (("SYS_NICE",), ("8000:80",))


def test_what_only_some_formats_say() -> None:
    docker, compose, manifest = only(DOCKER_RUN), only(COMPOSE), only(MANIFEST)
    assert (docker.gpus, compose.gpus, manifest.gpus) == ("device=4,5", "device=4,5", "2")
    assert (docker.memlock, compose.memlock, manifest.memlock) == ("-1", "-1", None)
    assert (docker.restart, compose.restart, manifest.restart) == ("unless-stopped", "unless-stopped", None)
    assert (docker.format, compose.format, manifest.format) == ("docker", "compose", "kubernetes")
    assert (docker.line, compose.line, manifest.line) == (1, 12, 19)


def test_a_merged_environment_is_part_of_the_service() -> None:
    text = f"""
x-env: &env {{A: '1', B: '2'}}
x-more: &more {{<<: *env, C: '3'}}
x-service: &service {{image: {IMAGE}, command: m}}
services:
  web: {{<<: *service, environment: {{<<: [*more], B: '4'}}}}
"""
    assert dict(only(text).env) == {"A": "1", "B": "4", "C": "3"}


def test_a_container_of_podman_in_a_unit() -> None:
    found = only(CONTAINER_UNIT, "big.container")
    assert (found.argv, found.image, found.gpus, found.shm_bytes) == (SERVE, IMAGE, "all", 16 * GIB)
    assert found.env == (("A", "1"), ("B", "x y"))


UNIT = """[Unit]
Description=big
[Service]
Environment="A=x y" MODEL=m
EnvironmentFile=/etc/big.env
LimitMEMLOCK=infinity
Restart=always
ExecStartPre=/usr/bin/docker pull x
ExecStart=-/opt/vllm serve ${MODEL} \\
  # a comment is skipped here
  --port ${PORT} --json '{"a": "100%%"}' --name %i
"""


def test_a_unit() -> None:
    found = only(UNIT, "big.service")
    assert found.argv == ("vllm", "serve", "m", "--port", "${PORT}", "--json", '{"a": "100%"}', "--name", "%i")
    assert dict(found.env) == {"A": "x y", "MODEL": "m"}
    assert (found.service, found.memlock, found.restart, found.line) == ("big.service", "infinity", "always", 9)


def test_a_unit_may_start_a_shell_or_a_container() -> None:
    shell = only("[Service]\nExecStart=/bin/bash -c 'exec vllm serve m --port 80'")
    container = only(f"[Service]\nExecStart=/usr/bin/podman run --rm {IMAGE} m --port 80")
    assert (shell.argv, container.argv, container.image) == (SERVE, SERVE, IMAGE)


SYSTEMD = {
    "variable split": "Environment=ARGS='m --port 80'\nExecStart=vllm serve $ARGS",
    "variable kept whole": "Environment=M=m\nExecStart=vllm serve ${M} --port 80",
    "escapes": r"ExecStart=vllm serve \x6d --port '8\060'",
    "several commands": "ExecStartPre=/bin/sleep 1\nExecStart=vllm serve m --port 80 ; /bin/true",
    "continued": "ExecStart=vllm serve m \\\n# no\n; no\n  --port 80",
}


@pytest.mark.parametrize("text", SYSTEMD.values(), ids=SYSTEMD.keys())
def test_systemd_has_its_own_quoting(text: str) -> None:
    assert (only(f"[Service]\n{text}\n").argv, only(f"[Service]\n{text}\n").problems) == (SERVE, ())


def test_an_open_quote_in_a_unit_is_told() -> None:
    assert [item.kind for item in only("[Service]\nExecStart=vllm serve m --port '80\n").problems] == [
        "quote_not_closed"
    ]


def test_a_container_unit_takes_options_of_podman() -> None:
    found = only(
        f"[Container]\nImage={IMAGE}\nEntrypoint=vllm\nPodmanArgs=--gpus=all --ipc=host\nExec=serve m --port 80\n"
    )
    assert (found.argv, found.gpus, found.host_ipc, found.problems) == (SERVE, "all", True, ())


FRAGMENTS = {
    "list": "[vllm, serve, m, --port, '80']",
    "JSON": '["vllm", "serve", "m", "--port", "80"]',
    "arguments": "args:\n  - m\n  - --port\n  - '80'\n  - --model\n",
    "command and arguments": "command: [vllm]\nargs: [serve, m, --port, '80']",
    "script": "command: [sh, -c]\nargs:\n  - |\n    export A=1\n    exec vllm serve m \\\n      --port 80\n",
    "folded script": "command: [/bin/bash, -c]\nargs:\n  - >-\n    vllm serve m\n    --port 80\n",
    "literal text": "command: |\n  vllm serve m\n  --port 80\n",
    "entry point": "entrypoint: vllm serve\ncommand: m --port 80",
    "between fences": f"Run:\n\n```yaml\nimage: {IMAGE}\ncommand: [m, --port, '80']\n```\n",
    "escaped variable": "command: sh -c 'P=80; vllm serve m --port $$P'",
    "deep": "spec:\n  leaderTemplate:\n    spec:\n      containers:\n      - command: [vllm, serve, m, --port, '80']\n",
}


@pytest.mark.parametrize("text", FRAGMENTS.values(), ids=FRAGMENTS.keys())
def test_fragments_of_files_are_read(text: str) -> None:
    found = only(text)
    assert found.argv[:5] == SERVE
    assert found.problems == ()


def test_numbers_keep_their_text() -> None:
    found = only(
        f"services:\n  a:\n    image: {IMAGE}\n    command: [m, --gpu-memory-utilization, 0.90, --seed, 1_0, --x, yes]"
    )
    assert found.argv[2:] == ("m", "--gpu-memory-utilization", "0.90", "--seed", "1_0", "--x", "yes")


@pytest.mark.parametrize(
    ("image", "argv"),
    [
        ("vllm/vllm-openai:v0.8.5", ("python3", "-m", "vllm.entrypoints.openai.api_server", "--model", "m")),
        ("vllm/vllm-openai:v0.32.0", ("vllm", "serve", "--model", "m")),
        ("vllm/vllm-openai:latest", ("vllm", "serve", "--model", "m")),
    ],
)
def test_the_entry_point_of_an_image_follows_its_release(image: str, argv: tuple[str, ...]) -> None:
    assert only(f"docker run {image} --model m").argv == argv


STRAY = {
    "docker": f"docker run {IMAGE} serve m --port 80",
    "both words": f"docker run {IMAGE} vllm serve m --port 80",
    "compose": f"image: {IMAGE}\ncommand: [serve, m, --port, '80']",
    "entry point": "entrypoint: [vllm, serve]\ncommand: serve m --port 80",
    "shell": f"image: {IMAGE}\ncommand: bash -c 'vllm serve m --port 80'",
}


@pytest.mark.parametrize("text", STRAY.values(), ids=STRAY.keys())
def test_a_repeated_serve_is_told_and_left_out(text: str) -> None:
    found = only(text)
    assert found.argv == SERVE
    assert [problem.kind for problem in found.problems] == ["stray_serve_in_image_args"]
    assert found.received is not None
    assert found.received[:2] == ("vllm", "serve")
    assert found.received != found.argv


@pytest.mark.parametrize(
    "text", ["docker run rocm/vllm vllm serve m --port 80", f"docker run --entrypoint vllm {IMAGE} serve m --port 80"]
)
def test_an_image_without_a_server_needs_the_words(text: str) -> None:
    assert (only(text).argv, only(text).problems) == (SERVE, ())


@pytest.mark.parametrize(
    ("image", "release"),
    [
        ("vllm/vllm-openai:v0.27.1", "0.27.1"),
        ("ghcr.io/x/vllm-openai:v0.26.0-cu129@sha256:0", "0.26.0"),
        ("host:5000/vllm/vllm-openai", None),
        ("vllm/vllm-openai:latest", None),
        ("lmcache/vllm-openai:v0.3.9", None),
        (None, None),
    ],
)
def test_the_tag_of_an_image_tells_the_release(image: str | None, release: str | None) -> None:
    assert image_release(image) == release


def test_a_program_of_another_kind_is_no_server() -> None:
    text = f"services:\n  a: {{image: nginx, command: [nginx, -g, daemon off;]}}\n  b: {{image: {IMAGE}, command: m}}"
    assert [found.service for found in find_commands(text)] == ["b"]


def test_sizes_are_read_as_each_format_means_them() -> None:
    assert [docker_bytes(text) for text in ("16g", "16GB", "1.5k", "7", "lots", None)] == [
        16 * GIB,
        16 * GIB,
        1536,
        7,
        None,
        None,
    ]
    assert [kubernetes_bytes(text) for text in ("16Gi", "16G", "512", "half", None)] == [
        16 * GIB,
        16 * 10**9,
        512,
        None,
        None,
    ]
