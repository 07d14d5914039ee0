"""Compose services: command, entrypoint, environment and what the container gets. Pure."""

from collections.abc import Iterator

from longreach.engine.launchfiles.container import Container
from longreach.engine.launchfiles.docker_run import docker_bytes
from longreach.engine.launchfiles.found import TextProblem
from longreach.engine.launchfiles.parameters import expand_text
from longreach.engine.launchfiles.yaml_command import read_command_text
from longreach.engine.launchfiles.yaml_nodes import Mapping, as_mapping, as_scalar, as_scalars


def read_service(service: Mapping, name: str | None) -> tuple[Container, tuple[TextProblem, ...]]:
    """The container of one service, and the mistakes of its text."""
    command = read_command_text(service, "command", _interpolate)
    entrypoint = read_command_text(service, "entrypoint", _interpolate)
    image = service.text("image")
    container = Container(
        image=None if image is None else _interpolate(image),
        entrypoint=entrypoint.words if entrypoint is not None else None,
        args=command.words if command is not None else (),
        env=tuple(read_environment(service)),
        service=service.text("container_name") or name,
        gpus=_gpus(service),
        shm_bytes=docker_bytes(service.text("shm_size")),
        host_ipc=service.text("ipc") == "host",
        host_network=service.text("network_mode") == "host",
        memlock=_memlock(service),
        capabilities=tuple(item.text.removeprefix("CAP_") for item in as_scalars(service.get("cap_add")) or ()),
        ports=tuple(_interpolate(item.text) for item in as_scalars(service.get("ports")) or ()),
        restart=service.text("restart"),
        privileged=service.text("privileged") == "true",
        format="compose",
        line=command.line if command is not None else service.line,
    )
    problems = tuple(problem for part in (entrypoint, command) if part is not None for problem in part.problems)
    return container, problems


def read_environment(service: Mapping) -> Iterator[tuple[str, str]]:
    """`environment` as a map or a list; a name without a value is the caller's own and stays open."""
    written = service.get("environment")
    mapping = as_mapping(written)
    if mapping is not None:
        for name, node in mapping.pairs().items():
            value = as_scalar(node)
            yield name, f"${name}" if value is None else _interpolate(value.text)
    for item in as_scalars(written) or ():
        name, equals, text = item.text.partition("=")
        yield name, _interpolate(text) if equals else f"${name}"


def _interpolate(text: str) -> str:
    return expand_text(text, {}, doubled="$")


def _gpus(service: Mapping) -> str | None:
    direct = service.text("gpus")
    if direct is not None:
        return direct
    resources = service.mapping("deploy", "resources", "reservations")
    for node in resources.items("devices") if resources is not None else ():
        device = as_mapping(node)
        if device is None:
            continue
        ids = as_scalars(device.get("device_ids"))
        if ids:
            return "device=" + ",".join(item.text for item in ids)
        return device.text("count") or "all"
    return None


def _memlock(service: Mapping) -> str | None:
    limits = service.mapping("ulimits")
    if limits is None:
        return None
    both = limits.mapping("memlock")
    return both.text("soft") if both is not None else limits.text("memlock")
