"""What this machine is: its GPUs, memory and NUMA nodes, as a `Machine`. Works where there is no GPU and no nvidia-smi."""

import shutil
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path

import psutil

from longreach.errors import UsageError
from longreach.hardware.catalogue import find_gpu
from longreach.hardware.machine import machine_from
from longreach.hardware.spec import GpuSpec, Machine
from longreach.host.commands import CommandRunner, run_command

NVIDIA_SMI = (
    "nvidia-smi",
    "--query-gpu=index,uuid,name,memory.total",
    "--format=csv,noheader,nounits",
)
_TIMEOUT_S = 20.0  # a driver that has to wake eight idle GPUs takes several seconds
_CGROUP_LIMITS = ("memory.max", "memory/memory.limit_in_bytes")  # cgroup v2, v1


@dataclass(frozen=True, slots=True)
class DetectedGpu:
    """One line of nvidia-smi. `memory_mib` is None where the driver prints none (GB10 and Jetson share the host's memory)."""

    index: int
    uuid: str
    name: str
    memory_mib: int | None


def detect_machine(environ: Mapping[str, str], run: CommandRunner = run_command, root: Path = Path("/")) -> Machine:
    """The machine as vLLM will see it. `environ` matters for CUDA_VISIBLE_DEVICES; `root` is where /sys lies."""
    result = run(NVIDIA_SMI, _TIMEOUT_S)
    notes: list[str] = []
    gpus: tuple[DetectedGpu, ...] = ()
    if result.succeeded:
        gpus = _visible(parse_nvidia_smi(result.stdout), environ.get("CUDA_VISIBLE_DEVICES"), notes)
    elif result.returncode is not None:
        notes.append(f"nvidia-smi failed: {(result.stdout + result.stderr).strip()[:200]}; no GPU is counted")
    else:
        notes.append(
            f"{result.problem}: no GPU is counted (AMD and Intel GPUs are not looked for; name them with --gpus)"
        )
    kind, gpus = _one_kind(gpus, notes)
    gpu = _catalogued(kind, notes) if kind else None
    ram_bytes, num_numa_nodes = _read_ram_bytes(root, notes), _read_num_numa_nodes(root)
    if gpu is None and gpus:
        found = Machine(None, len(gpus), None, ram_bytes, num_numa_nodes, assumptions=tuple(notes))
    else:
        found = machine_from(
            gpu, len(gpus), ram_bytes=ram_bytes, num_numa_nodes=num_numa_nodes, assumptions=tuple(notes)
        )
    return replace(found, shm_bytes=_read_shm_bytes(root))


def parse_nvidia_smi(text: str) -> tuple[DetectedGpu, ...]:
    """The lines of `NVIDIA_SMI`; lines that are not GPUs are left out."""
    found = []
    for line in text.splitlines():
        cells = [cell.strip() for cell in line.split(",")]
        if len(cells) == 4 and cells[0].isdigit():
            memory_mib = int(cells[3]) if cells[3].isdigit() else None
            found.append(DetectedGpu(int(cells[0]), cells[1], cells[2], memory_mib))
    return tuple(found)


def _visible(gpus: tuple[DetectedGpu, ...], setting: str | None, notes: list[str]) -> tuple[DetectedGpu, ...]:
    """The GPUs a CUDA program sees, in its order. CUDA stops at the first entry it does not know."""
    if setting is None:
        return gpus
    visible: list[DetectedGpu] = []
    for entry in (part.strip() for part in setting.split(",")):
        match = next((g for g in gpus if entry == str(g.index) or (entry and g.uuid.startswith(entry))), None)
        if match is None:
            break
        visible.append(match)
    notes.append(f"CUDA_VISIBLE_DEVICES={setting} shows {len(visible)} of {len(gpus)} GPUs")
    return tuple(visible)


def _one_kind(gpus: tuple[DetectedGpu, ...], notes: list[str]) -> tuple[DetectedGpu | None, tuple[DetectedGpu, ...]]:
    """The most frequent kind of GPU: a tensor-parallel group wants equals."""
    if not gpus:
        return None, ()
    kinds = Counter((gpu.name, gpu.memory_mib) for gpu in gpus)
    chosen, count = kinds.most_common(1)[0]
    same = tuple(gpu for gpu in gpus if (gpu.name, gpu.memory_mib) == chosen)
    if len(kinds) > 1:
        others = ", ".join(f"{number}x {name}" for (name, _), number in kinds.items() if name != chosen[0])
        indices = ",".join(str(gpu.index) for gpu in same)
        notes.append(f"GPUs differ: {count}x {chosen[0]} are used (CUDA_VISIBLE_DEVICES={indices}), not {others}")
    return same[0], same


def _catalogued(kind: DetectedGpu, notes: list[str]) -> GpuSpec | None:
    try:
        return find_gpu(kind.name, kind.memory_mib)
    except UsageError as error:
        notes.append(f"{error.what}: its figures are unknown; {error.fix}")
        return None


def _read_ram_bytes(root: Path, notes: list[str]) -> int:
    """Memory that may be used: the machine's, or a container's limit where that is lower."""
    total = int(psutil.virtual_memory().total)
    for name in _CGROUP_LIMITS:
        try:
            limit = (root / "sys/fs/cgroup" / name).read_text(encoding="ascii").strip()
        except OSError:
            continue
        if limit.isdigit() and int(limit) < total:
            notes.append(f"memory is limited to {int(limit)} bytes by the container (the machine has {total})")
            return int(limit)
    return total


def _read_shm_bytes(root: Path) -> int | None:
    try:
        return shutil.disk_usage(root / "dev/shm").total  # what an empty one would hold
    except OSError:
        return None


def _read_num_numa_nodes(root: Path) -> int | None:
    """Nodes that have CPUs. GPU memory and memory expanders are nodes as well (Grace shows dozens); nothing is bound to those."""
    nodes = (root / "sys/devices/system/node").glob("node[0-9]*/cpulist")
    return sum(1 for path in nodes if path.read_text(encoding="ascii").strip()) or None
