"""The environment that a command is given, and the container it runs in: LR950 to LR958. Pure."""

import re
from collections.abc import Iterator

from longreach.engine.parsing.parsed import is_open
from longreach.engine.registry import REGISTRY_VERSIONS, releases_with_name
from longreach.rules.edit import Edit
from longreach.rules.rule import Diagnosis, rule
from longreach.rules.written import CommandRule, WrittenCommand, span_text
from longreach.units import nearest_name

_SUCCESSORS = {
    "VLLM_ATTENTION_BACKEND": "--attention-backend",
    "VLLM_ALL2ALL_BACKEND": "--all2all-backend",
}
"""Variables that became flags."""

# Other packages' and Kubernetes' own names: a service called "vllm" makes VLLM_PORT, VLLM_SERVICE_HOST and the like.
_FOREIGN = re.compile(
    r"VLLM_(OMNI|ASCEND|SPYRE|GAUDI|HPU|NEURON|TT|METAL|SERVICE|PORT)(_|$)|VLLM_(IMAGE|MODEL|VERSION|TAG)(_|$)"
    r"|VLLM_CPU_SIM_MULTI_NUMA$"  # vLLM's own, but in no list of its variables
)
_OTHER_OFFLOAD = ("LMCACHE_", "MOONCAKE_")
_SMALL_SHM = 2 * 2**30
_CONTAINERS = ("docker", "compose")


@rule(
    "LR950",
    "warning",
    "unknown_variable",
    "the release reads no environment variable of this name",
    outcome="no_effect",
)
def unknown_variable(written: WrittenCommand) -> Iterator[Diagnosis]:
    """At most, a warning is logged for a VLLM_ variable that it does not know."""
    known = written.registry.names("env")
    for name, value in written.env:
        if not known or not name.startswith("VLLM_") or name in known or _FOREIGN.match(name):
            continue
        releases = releases_with_name("env", name)
        flag = _SUCCESSORS.get(name)
        near = nearest_name(name, sorted(known)) if not releases else None
        why = (
            f"it exists {span_text(releases, REGISTRY_VERSIONS[-1])}"
            if releases
            else f"it is none of {len(known)} that it reads"
        )
        yield Diagnosis(
            f"{name} is not read by vLLM {written.release.version}",
            why,
            _fix(name, flag, value, near),
            edit=_edit(written, name, flag, value, near),
        )


def _fix(name: str, flag: str | None, value: str, near: str | None) -> str:
    if flag is not None:
        return f"{flag} {value}"
    return f"{near}={value}" if near is not None else f"take {name} out"


def _edit(written: WrittenCommand, name: str, flag: str | None, value: str, near: str | None) -> Edit:
    if flag is not None and flag in written.registry.flags and written.parsed.value(flag) is None:
        return Edit(set=((flag, (value,)),), unset_env=(name,))
    if near is not None and written.variable(near) is None:
        return Edit(set_env=((near, value),), unset_env=(name,))
    return Edit(unset_env=(name,))


@rule(
    "LR951",
    "warning",
    "offload_env_without_connector",
    "variables configure an offload connector that is not loaded",
    outcome="no_effect",
)
def offload_env_without_connector(written: WrittenCommand) -> Iterator[Diagnosis]:
    """LMCache and Mooncake act only as KV connectors."""
    names = [name for name, _ in written.env if name.startswith(_OTHER_OFFLOAD)]
    asked = (
        written.parsed.value("--kv-transfer-config") is not None
        or written.parsed.value("--kv-offloading-size") is not None
    )
    if not names or asked:
        return
    connector = "LMCacheConnectorV1" if names[0].startswith("LMCACHE_") else "MooncakeConnector"
    yield Diagnosis(
        f"the variable {names[0]} is set and no KV connector is loaded",
        f"without --kv-transfer-config vLLM loads none, so {len(names)} variable{'s' if len(names) > 1 else ''} of it do nothing",
        f'--kv-transfer-config \'{{"kv_connector": "{connector}", "kv_role": "kv_both"}}\'',
    )


@rule("LR952", "advice", "api_key_in_argv", "the API key stands in the command")
def api_key_in_argv(written: WrittenCommand) -> Iterator[Diagnosis]:
    """Every user of the machine can read a process's arguments."""
    value = written.parsed.value("--api-key")
    if value is None or is_open(value):
        return
    yield Diagnosis(
        "--api-key stands in the command",
        "arguments show in ps, in docker inspect and in logs; vLLM reads the same key from VLLM_API_KEY",
        "set VLLM_API_KEY in the environment, and take --api-key out",
    )


@rule(
    "LR953",
    "error",
    "visible_devices_below_world_size",
    "fewer GPUs are visible than the command needs",
    outcome="refused_at_start",
)
def visible_devices_below_world_size(written: WrittenCommand) -> Iterator[Diagnosis]:
    """CUDA_VISIBLE_DEVICES and the container hide the others from vLLM; several nodes and Ray bring more."""
    options = written.options
    needed = options.tensor_parallel_size * options.pipeline_parallel_size
    for shown, count in () if _spans_nodes(written) else _visible_gpus(written):
        if count < needed:
            yield Diagnosis(
                f"{shown} shows {count} GPU{'s' if count != 1 else ''} and {needed} are needed",
                f"tensor parallel {options.tensor_parallel_size} x pipeline parallel {options.pipeline_parallel_size} = {needed}",
                f"give it {needed} GPUs, or set --tensor-parallel-size {count}",
            )


def _visible_gpus(written: WrittenCommand) -> Iterator[tuple[str, int]]:
    """What limits the GPUs, and to how many."""
    visible = written.variable("CUDA_VISIBLE_DEVICES") or ""
    if visible.strip() and not is_open(visible):
        count = len([name for name in visible.split(",") if name.strip()])
        yield f"the variable CUDA_VISIBLE_DEVICES={visible}", count
    given = written.found.gpus if written.found is not None else None
    if given is not None and given.isascii() and given.isdigit() and int(given) > 0:
        yield f"the container, with {given} of the machine's GPUs,", int(given)


def _spans_nodes(written: WrittenCommand) -> bool:
    ray = written.value("--distributed-executor-backend") == "ray"
    return ray or (written.number("--nnodes") or 1) > 1


_MORE_SHM = {
    "compose": "'ipc: host', or 'shm_size: 16gb', in the service",
    "kubernetes": "an emptyDir volume with 'medium: Memory', mounted at the shared memory's path",
    "systemd": "'ShmSize=16g' in [Container]",
}
"""How each format gives a container more than Docker's default; docker run takes options."""


@rule("LR954", "warning", "container_shm_small", "the container's shared memory is small")
def container_shm_small(written: WrittenCommand) -> Iterator[Diagnosis]:
    """Docker gives /dev/shm 64 MiB unless told otherwise; workers and NCCL exchange data there."""
    found = written.found
    if found is None or found.format not in _CONTAINERS or found.host_ipc:
        return
    workers = written.options.tensor_parallel_size * written.options.pipeline_parallel_size
    size = found.shm_bytes if found.shm_bytes is not None else 64 * 2**20
    if workers < 2 or size >= _SMALL_SHM:
        return
    yield Diagnosis(
        f"the container's /dev/shm has {size >> 20} MiB for {workers} workers",
        "worker processes and NCCL exchange data in shared memory; Docker's default is 64 MiB",
        _MORE_SHM.get(found.format, "--ipc=host, or --shm-size 16g"),
    )


@rule("LR955", "warning", "numa_in_container", "NUMA binding needs a capability that the container lacks")
def numa_in_container(written: WrittenCommand) -> Iterator[Diagnosis]:
    """set_mempolicy is filtered by Docker's seccomp profile."""
    found = written.found
    if found is None or found.format not in _CONTAINERS or found.privileged or "SYS_NICE" in found.capabilities:
        return
    binds = written.parsed.is_on("--numa-bind") or written.variable("VLLM_CPU_OMP_THREADS_BIND") is not None
    cpu_workers = "cpu" in (found.image or "").rpartition("/")[2] and written.options.tensor_parallel_size > 1
    if not binds and not cpu_workers:
        return
    asked = "--numa-bind" if written.parsed.is_on("--numa-bind") else "the CPU build's thread binding"
    yield Diagnosis(
        f"{asked} sets a NUMA memory policy, and the container may not",
        "Docker's default profile refuses set_mempolicy without the capability SYS_NICE",
        "--cap-add SYS_NICE (compose: cap_add: [SYS_NICE])",
    )


@rule(
    "LR956",
    "warning",
    "container_listens_on_loopback",
    "nobody outside the container reaches the server",
    outcome="no_effect",
)
def container_listens_on_loopback(written: WrittenCommand) -> Iterator[Diagnosis]:
    """A published port reaches the container's own interface, not its loopback."""
    found, host = written.found, written.value("--host")
    if found is None or found.format not in (*_CONTAINERS, "kubernetes") or found.host_network:
        return
    if host not in ("127.0.0.1", "localhost", "::1"):
        return
    yield Diagnosis(
        f"--host {host} inside a container is reachable from that container only",
        "published ports and services connect to the container's network interface",
        "--host 0.0.0.0 inside, and publish the port on 127.0.0.1 outside",
        edit=Edit(set=(("--host", ("0.0.0.0",)),)),  # noqa: S104 - inside a container
    )


@rule(
    "LR957",
    "warning",
    "published_port_differs",
    "the published port is not the one vLLM listens on",
    outcome="no_effect",
)
def published_port_differs(written: WrittenCommand) -> Iterator[Diagnosis]:
    """`-p 8000:8000` with --port 8080 connects to nothing."""
    found = written.found
    if found is None or found.format not in _CONTAINERS or found.host_network or not found.ports:
        return
    text = written.parsed.value("--port")
    port = text if text is not None else "8000"
    inner = [published.partition("/")[0].rpartition(":")[2] for published in found.ports]
    if is_open(port) or any(is_open(name) or "-" in name or not name.isdigit() for name in inner) or port in inner:
        return
    yield Diagnosis(
        f"vLLM listens on port {port} and the container publishes {', '.join(found.ports)}",
        f"the part after the colon is the port inside: {', '.join(inner)}",
        f"--port {inner[0]}",
        edit=Edit(set=(("--port", (inner[0],)),)),
    )


@rule("LR958", "warning", "proxy_in_container", "a proxy is set for a server that talks to itself")
def proxy_in_container(written: WrittenCommand) -> Iterator[Diagnosis]:
    """Clients in the same environment then ask the proxy for localhost."""
    names = [name for name, value in written.env if name.lower() in ("http_proxy", "all_proxy") and value]
    spared = {name.lower(): value for name, value in written.env}.get("no_proxy", "")
    if not names or any(word in spared for word in ("localhost", "127.0.0.1", "*")) or is_open(spared):
        return
    yield Diagnosis(
        f"the variable {names[0]!r} is set and no_proxy spares no local address",
        "health checks and workers of this environment then send requests for 127.0.0.1 to the proxy",
        "no_proxy=localhost,127.0.0.1,::1",
        edit=Edit(set_env=(("no_proxy", "localhost,127.0.0.1,::1"),)),
    )


RULES: tuple[CommandRule, ...] = (
    unknown_variable,
    offload_env_without_connector,
    api_key_in_argv,
    visible_devices_below_world_size,
    container_shm_small,
    numa_in_container,
    container_listens_on_loopback,
    published_port_differs,
    proxy_in_container,
)
