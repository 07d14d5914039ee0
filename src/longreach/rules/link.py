"""How the GPUs of one TP group reach each other: LR511 to LR515. Pure."""

from collections.abc import Iterator

from longreach.hardware.spec import LinkSpec
from longreach.rules.deployment import Deployment
from longreach.rules.remedy import add_environment, set_option
from longreach.rules.rule import Diagnosis, Rule, rule
from longreach.units import format_duration

_DOMINATING_SHARE = 0.25
_CUSTOM_SIZES = (2, 4, 6, 8, 16)


def _is_pcie(link: LinkSpec) -> bool:
    return link.name.startswith("pcie")


@rule("LR511", "warning", "all_reduce_dominates_prefill", "the link between the GPUs takes a large part of prefill")
def all_reduce_dominates_prefill(deployment: Deployment) -> Iterator[Diagnosis]:
    """Every layer sums its activations over the group twice; a slow link waits for each of them."""
    speed, link, tp = deployment.speed_at_full_length, deployment.machine.link, deployment.tp_size
    if speed is None or link is None or tp == 1 or speed.ttft_cold_s.high is None:
        return
    slow, fast = link.all_reduce_bytes_per_s
    low, high = speed.work.all_reduce_bytes / fast, speed.work.all_reduce_bytes / slow
    total = speed.ttft_cold_s.high
    if high < _DOMINATING_SHARE * total:
        return
    yield Diagnosis(
        f"all-reduce over {link.name} takes {format_duration(low)} to {format_duration(high)} of the first token of "
        f"{speed.prompt_tokens} tokens",
        f"each GPU moves {speed.work.all_reduce_bytes / 1e9:.0f} GB at {slow / 1e9:.1f} to {fast / 1e9:.1f} GB/s "
        f"({link.certainty}: {link.source}); {format_duration(total)} at most in all",
        _faster_link(deployment, link),
    )


def _faster_link(deployment: Deployment, link: LinkSpec) -> str:
    tp = deployment.tp_size
    fewer = (
        f"two instances of --tp {tp // 2} where the model and its length fit"
        if tp > 2
        else "one GPU where the model fits"
    )
    if not _is_pcie(link) or link.p2p:
        return f"use {fewer}: fewer GPUs move fewer bytes per prompt"
    p2p = "a driver with peer-to-peer access (1.7 times faster at 90K in two reports on four RTX 3090; verify the data)"
    return f"use {fewer}; or {p2p}; or NVLink"


@rule("LR512", "advice", "custom_all_reduce_unavailable", "vLLM's own all-reduce is not available here")
def custom_all_reduce_unavailable(deployment: Deployment) -> Iterator[Diagnosis]:
    """Above two GPUs it needs NVLink between all of them; NCCL does the work."""
    options, link, tp = deployment.options, deployment.machine.link, deployment.tp_size
    if tp == 1 or link is None or options.disable_custom_all_reduce or deployment.machine.device_type != "cuda":
        return
    full_mesh = link.name == "nvlink"
    if tp in _CUSTOM_SIZES and (full_mesh or tp == 2):
        return
    if tp in _CUSTOM_SIZES:
        why = f"above 2 GPUs it wants NVLink between all {tp}; over {link.name} vLLM warns and uses NCCL, P2P driver or not"
    else:
        why = f"it knows group sizes {', '.join(map(str, _CUSTOM_SIZES))}, not {tp}; vLLM warns and uses NCCL"
    yield Diagnosis(
        f"vLLM's own all-reduce is off for {tp} GPUs over {link.name}",
        why,
        "add --disable-custom-all-reduce to say so and silence the warning",
        set_option("disable_custom_all_reduce", True),
    )


@rule(
    "LR513",
    "warning",
    "custom_all_reduce_on_patched_driver",
    "custom all-reduce over a patched driver is not to be trusted",
)
def custom_all_reduce_on_patched_driver(deployment: Deployment) -> Iterator[Diagnosis]:
    """The peer test passes and the data may still be wrong."""
    machine, options = deployment.machine, deployment.options
    gpu, link = machine.gpu, machine.link
    if gpu is None or link is None or deployment.tp_size != 2 or options.disable_custom_all_reduce:
        return
    if not (_is_pcie(link) and link.p2p and gpu.p2p_pcie_stock_driver == "no"):
        return
    yield Diagnosis(
        f"2 x {gpu.name} with P2P means a patched driver, and vLLM will use its own all-reduce over it",
        f"the stock driver of {gpu.name} has no PCIe P2P; one rig of two patched RTX 3090 got wrong text at normal speed, "
        "another hung with the P2P tests passing",
        "add --disable-custom-all-reduce, or read generated text before you believe it",
        set_option("disable_custom_all_reduce", True),
    )


@rule("LR514", "warning", "tp_crosses_sockets", "one TP group spans NUMA nodes")
def tp_crosses_sockets(deployment: Deployment) -> Iterator[Diagnosis]:
    """Every all-reduce then crosses the bridge between the sockets."""
    machine, tp = deployment.machine, deployment.tp_size
    nodes, link = machine.num_numa_nodes, machine.link
    if link is None or not _is_pcie(link) or nodes is None or nodes < 2 or tp <= machine.num_gpus / nodes:
        return
    half = tp // 2
    yield Diagnosis(
        f"tensor-parallel-size {tp} spans {nodes} NUMA nodes",
        f"{machine.num_gpus} GPUs over {nodes} nodes are {machine.num_gpus // nodes} a node, so all-reduce crosses sockets; "
        "worst case reported: 0.9 GB/s between two RTX 4090 on two nodes, and TP 2 at 26 tokens/s against 60 on one card",
        f"run {tp // half if half else 2} instances of --tp {max(half, 1)}, one per node, {_fits_on_half(deployment)}",
    )


def _fits_on_half(deployment: Deployment) -> str:
    memory = deployment.memory
    if memory is None or memory.weights_bytes is None or memory.gpu_total_bytes is None:
        return "if the weights fit on half the GPUs"
    fits = 2 * memory.weights_bytes[1] < memory.gpu_total_bytes[0]
    return (
        "whose weights fit on half the GPUs"
        if fits
        else "but the weights do not fit on half the GPUs: prefer cards of one node"
    )


@rule("LR515", "advice", "nccl_p2p_level_unset", "NCCL does not use P2P across a host bridge by itself")
def nccl_p2p_level_unset(deployment: Deployment) -> Iterator[Diagnosis]:
    """Its default level stops at PCIe switches, and is raised only on AMD hosts with two GPUs."""
    link, options, tp = deployment.machine.link, deployment.options, deployment.tp_size
    if link is None or not _is_pcie(link) or not link.p2p or tp <= 2 or "NCCL_P2P_LEVEL" in dict(options.env):
        return
    yield Diagnosis(
        f"NCCL will not use P2P between {tp} GPUs across a host bridge",
        "with 3 or more GPUs its default level is PXB; on four RTX PRO 6000 SYS gained 25 to 44 % from 128 KB up",
        "set NCCL_P2P_LEVEL=SYS in the engine's environment",
        add_environment(options, "NCCL_P2P_LEVEL", "SYS"),
    )


RULES: tuple[Rule, ...] = (
    all_reduce_dominates_prefill,
    custom_all_reduce_unavailable,
    custom_all_reduce_on_patched_driver,
    tp_crosses_sockets,
    nccl_p2p_level_unset,
)
