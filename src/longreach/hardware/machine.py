"""A machine from what a user says about it, with every assumption in words. Pure."""

from longreach.errors import UsageError
from longreach.hardware.catalogue import MAX_GPUS
from longreach.hardware.links import bridge_size, default_link, find_link
from longreach.hardware.spec import GpuSpec, LinkSpec, Machine

_DEVICE_TYPES = {"NVIDIA": "cuda", "AMD": "rocm", "Intel": "xpu"}


def machine_from(
    gpu: GpuSpec | None,
    count: int,
    link: str | None = None,
    ram_bytes: int | None = None,
    num_numa_nodes: int | None = None,
    host_memory_bytes_per_s: float | None = None,
    assumptions: tuple[str, ...] = (),
) -> Machine:
    """One box of `count` equal GPUs. `link` is a name of `links.LINK_NAMES`; None takes the card's default and says so.

    Without a GPU it is a CPU machine. `assumptions` are those already made (a family name taken for its usual card).
    """
    _check_counts(count, gpu, ram_bytes, num_numa_nodes)
    if gpu is None:
        return Machine(None, 0, None, ram_bytes, num_numa_nodes, host_memory_bytes_per_s, "cpu", assumptions)
    spec = find_link(link, gpu, count) if link is not None else default_link(gpu, count)
    words = (
        *assumptions,
        *_link_assumptions(gpu, count, spec, named=link is not None),
        *_unsaid(ram_bytes, num_numa_nodes),
    )
    return Machine(
        gpu=gpu,
        num_gpus=count,
        link=spec,
        ram_bytes=ram_bytes,
        num_numa_nodes=num_numa_nodes,
        host_memory_bytes_per_s=host_memory_bytes_per_s,
        device_type=_DEVICE_TYPES[gpu.vendor],
        assumptions=words,
        link_assumed=link is None and count > 1,
    )


def _check_counts(count: int, gpu: GpuSpec | None, ram_bytes: int | None, num_numa_nodes: int | None) -> None:
    if gpu is not None and not 1 <= count <= MAX_GPUS:
        raise UsageError(
            f"GPU count {count} is out of range", f"one box holds 1 to {MAX_GPUS} GPUs", "write it as 4xRTX4090"
        )
    if ram_bytes is not None and ram_bytes <= 0:
        raise UsageError(f"host memory of {ram_bytes} bytes is impossible", "it must be above zero", "--ram 256GiB")
    if num_numa_nodes is not None and num_numa_nodes <= 0:
        raise UsageError(f"{num_numa_nodes} NUMA nodes are impossible", "a box has at least one", "--numa 1")


def _link_assumptions(gpu: GpuSpec, count: int, link: LinkSpec | None, *, named: bool) -> list[str]:
    if count == 1:
        return [] if named or link is None else [f"the host link is the card's own, {link.name}"]
    if link is None:
        return [f"no link between several {gpu.name} is known"]
    return [] if named and not _is_doubtful(gpu, link) else [_why(gpu, count, link, named=named)]


def _is_doubtful(gpu: GpuSpec, link: LinkSpec) -> bool:
    pcie_p2p = link.p2p and link.name.startswith("pcie")
    return link.certainty == "assumed" or (pcie_p2p and gpu.p2p_pcie_stock_driver != "yes")


def _why(gpu: GpuSpec, count: int, link: LinkSpec, *, named: bool) -> str:
    if link.p2p and link.name.startswith("pcie") and gpu.p2p_pcie_stock_driver == "no":
        return f"{link.name}: the stock driver of {gpu.name} has no PCIe P2P, so a patched one is taken to work"
    if named:
        return f"{link.name}: rates are {link.source}"
    if not link.name.startswith("pcie"):
        return f"the GPUs are joined by their own fabric ({link.name})"
    reasons = {
        "no": "its stock driver has no PCIe P2P",
        "yes": "NCCL uses P2P across a host bridge above two GPUs only with NCCL_P2P_LEVEL=SYS",
    }
    reason = reasons.get(gpu.p2p_pcie_stock_driver, "P2P is not proven for it")
    bridge = f" and no bridge (it joins {bridge_size(gpu)})" if gpu.nvlink_kind.startswith("bridge") else ""
    p2p = "with P2P, the stock driver has it" if link.p2p else f"without P2P{bridge}: {reason}"
    return f"the {count} GPUs have all lanes of the card ({link.name}) {p2p}"


def _unsaid(ram_bytes: int | None, num_numa_nodes: int | None) -> list[str]:
    unsaid = [] if ram_bytes else ["host memory is unknown"]
    return unsaid if num_numa_nodes else [*unsaid, "the number of NUMA nodes is unknown"]
