"""A container as docker run, compose or a pod describe it, and what its image is known to start by itself. Pure."""

import re
from dataclasses import dataclass

from longreach.engine.launchfiles.found import LaunchFormat

_SERVING = re.compile(r"vllm-openai|vllm-cpu-env|vllm-cpu-release|vllm-arm64-cpu|vllm-cpu\b|rhaiis|nm-vllm")
_PLAIN = re.compile(r"(^|/)(rocm/vllm|vllm-tpu|vllm-dev|vllm-rocm|nvidia/vllm|tritonserver|llm-d|python|ubuntu|cuda)\b")
_TAG = re.compile(r"v?(\d+\.\d+(?:\.\d+)?(?:\.post\d+)?)(?:rc\d+)?(?:[-+_.].*)?")


@dataclass(frozen=True, slots=True)
class Container:
    """What runs in it and what it is given; None: not said. `entrypoint` replaces the image's own."""

    image: str | None = None
    entrypoint: tuple[str, ...] | None = None
    args: tuple[str, ...] = ()
    env: tuple[tuple[str, str], ...] = ()
    service: str | None = None
    gpus: str | None = None
    shm_bytes: int | None = None
    host_ipc: bool = False
    host_network: bool = False
    memlock: str | None = None
    capabilities: tuple[str, ...] = ()
    ports: tuple[str, ...] = ()
    restart: str | None = None
    privileged: bool = False
    format: LaunchFormat = "docker"
    line: int = 1


def starts_server(image: str | None) -> bool | None:
    """Whether the image's own entry point starts the server; None where that is not known."""
    if image is None:
        return None
    name = image.partition("@")[0]
    if _PLAIN.search(name):
        return False
    return True if _SERVING.search(name) else None


def image_release(image: str | None) -> str | None:
    """The vLLM release in the tag of a vLLM image: `vllm/vllm-openai:v0.27.1` and `...:v0.26.0-cu129`; None: not told."""
    name, _, tag = (image or "").partition("@")[0].rpartition(":")
    match = _TAG.fullmatch(tag)
    return (
        match[1]
        if match and "/" not in tag and "vllm" in name and "lmcache" not in name and "llm-d" not in name
        else None
    )
