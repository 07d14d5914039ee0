"""Containers of Kubernetes manifests, whatever kind holds them, and of fragments of them. Pure."""

import re
from collections.abc import Iterator
from collections.abc import Mapping as Values
from dataclasses import dataclass

from longreach.engine.launchfiles.container import Container
from longreach.engine.launchfiles.docker_run import kubernetes_bytes
from longreach.engine.launchfiles.found import TextProblem
from longreach.engine.launchfiles.yaml_command import CommandText, read_command_text
from longreach.engine.launchfiles.yaml_nodes import Mapping, as_mapping, as_scalars

_REFERENCE = re.compile(r"\$\$?\(([A-Za-z_][\w.-]*)\)")
_SHARED_MEMORY = "/dev/" + "shm"  # a mount point of the pod
_GPUS = ("nvidia.com/gpu", "amd.com/gpu", "gpu.intel.com/xe", "gpu.intel.com/i915", "habana.ai/gaudi")


@dataclass(frozen=True, slots=True)
class Pod:
    """What the containers of one pod share."""

    shm_volumes: Values[str, int | None]  # volumes in memory, with their limit
    host_ipc: bool = False
    host_network: bool = False


ALONE = Pod({})


def read_pod(spec: Mapping) -> Pod:
    """What a pod's spec gives to all its containers."""
    volumes: dict[str, int | None] = {}
    for node in spec.items("volumes"):
        volume = as_mapping(node)
        empty = volume.mapping("emptyDir") if volume is not None else None
        name = volume.text("name") if volume is not None else None
        if empty is not None and name is not None and empty.text("medium") == "Memory":
            volumes[name] = kubernetes_bytes(empty.text("sizeLimit"))
    return Pod(volumes, spec.text("hostIPC") == "true", spec.text("hostNetwork") == "true")


def read_container(container: Mapping, pod: Pod) -> tuple[Container, tuple[TextProblem, ...]]:
    """One container, and the mistakes of its text."""
    env = dict(_environment(container))
    command = read_command_text(container, "command", str)
    args = read_command_text(container, "args", str)
    resources = container.mapping("resources", "limits") or container.mapping("resources", "requests")
    security = container.mapping("securityContext")
    added = security.mapping("capabilities") if security is not None else None
    first = args or command
    found = Container(
        image=container.text("image"),
        entrypoint=_expanded(command, env) or None,
        args=_expanded(args, env),
        env=tuple(env.items()),
        service=container.text("name"),
        gpus=next((count for name in _GPUS if (count := resources.text(name))), None)
        if resources is not None
        else None,
        shm_bytes=_shared_memory(container, pod),
        host_ipc=pod.host_ipc,
        host_network=pod.host_network,
        capabilities=tuple(item.text for item in as_scalars(added.get("add")) or ()) if added is not None else (),
        ports=tuple(_ports(container)),
        privileged=security is not None and security.text("privileged") == "true",
        format="kubernetes",
        line=first.line if first is not None else container.line,
    )
    return found, tuple(problem for part in (command, args) if part is not None for problem in part.problems)


def _environment(container: Mapping) -> Iterator[tuple[str, str]]:
    """Variables with a literal value, in their order; those from secrets and fields stay open as `$NAME`."""
    known: dict[str, str] = {}
    for node in container.items("env"):
        variable = as_mapping(node)
        name = variable.text("name") if variable is not None else None
        if variable is None or name is None:
            continue
        value = variable.text("value")
        known[name] = f"${name}" if value is None else _expand(value, known)
        yield name, known[name]


def _expanded(part: CommandText | None, env: Values[str, str]) -> tuple[str, ...]:
    return () if part is None else tuple(_expand(word, env) for word in part.words)


def _expand(text: str, env: Values[str, str]) -> str:
    """`$(NAME)` of the same container; an unknown one stays open, and `$$(NAME)` is the escape."""
    return _REFERENCE.sub(
        lambda found: found[0][1:] if found[0].startswith("$$") else env.get(found[1], f"${found[1]}"), text
    )


def _shared_memory(container: Mapping, pod: Pod) -> int | None:
    for node in container.items("volumeMounts"):
        mount = as_mapping(node)
        if mount is not None and (mount.text("mountPath") or "").rstrip("/") == _SHARED_MEMORY:
            return pod.shm_volumes.get(mount.text("name") or "")
    return None


def _ports(container: Mapping) -> Iterator[str]:
    for node in container.items("ports"):
        port = as_mapping(node)
        inner = port.text("containerPort") if port is not None else None
        if port is not None and inner is not None:
            outer = port.text("hostPort")
            yield f"{outer}:{inner}" if outer else inner
