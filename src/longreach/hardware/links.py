"""How the GPUs of one box reach each other and the host: link classes and what each was measured to carry. Pure.

All-reduce rates are bus bandwidth as nccl-tests defines it: bytes x 2(n-1)/n over time, so no ring beats the link's own
rate in one direction. A prefill chunk is a message of tens of MiB, so ranges run from what vLLM prefills were seen to get (or
16 MiB messages) to nccl-tests at large messages. A link class is added by adding a row.
"""

import re
from dataclasses import dataclass

from longreach.errors import UsageError
from longreach.hardware.spec import GpuSpec, LinkSpec
from longreach.units import did_you_mean

_GB = 1e9
_PCIE_X16_RAW = {3: 15.75, 4: 31.5, 5: 63.0, 6: 121.0}  # GB/s in one direction, after encoding
_PCIE_X16_HOST = {3: 12.1, 4: 26.2, 5: 55.0, 6: 105.0}  # pinned copies as measured; gen 6 by the same share of raw
_C2C_HOST_SHARE = 0.75  # "several hundred" GB/s of 450 measured
_PCIE_NAME = re.compile(r"pcie([3-6])x(4|8|16)(-p2p)?")

# Latency of one small all-reduce: one-shot kernels 6 to 9 us where all GPUs reach each other (NVLink), NCCL 13 to 16 us on
# four PCIe GPUs; host staging adds about 14 us.
_NVLINK_LATENCY_S, _P2P_LATENCY_S, _HOST_STAGED_LATENCY_S = 8e-6, 15e-6, 30e-6

LINK_NAMES = (
    "pcie",
    *(f"pcie{gen}x{lanes}{p2p}" for gen in (3, 4, 5, 6) for lanes in (4, 8, 16) for p2p in ("", "-p2p")),
    "nvlink-bridge",
    "nvlink",
    "xgmi",
)


@dataclass(frozen=True, slots=True)
class _Measured:
    """All-reduce bus bandwidth in GB/s: least and most seen, and where."""

    low: float
    high: float
    source: str
    certainty: str = "measured"

    def scaled(self, share: float, why: str) -> "_Measured":
        return _Measured(self.low * share, self.high * share, f"{why} ({self.source})", "assumed")


_PCIE = {
    "pcie": _Measured(2.4, 13.0, "the range of consumer boards whose lanes are not known", "assumed"),
    "pcie, gen 5": _Measured(15.0, 46.0, "x8 desktop boards up to server boards with P2P", "assumed"),
    "pcie3x16": _Measured(1.7, 5.7, "half of PCIe 4 up to a host-staged copy between two RTX 2080 Ti", "assumed"),
    "pcie3x16-p2p": _Measured(5.4, 11.0, "vLLM prefill on 2 and 4 RTX 3090 with a patched driver"),
    "pcie4x8": _Measured(2.7, 10.0, "vLLM prefill on RTX 3090 rigs with mixed x4/x8 and with x8 lanes"),
    "pcie4x16": _Measured(3.0, 6.5, "vLLM prefill on 2 and 4 RTX 3090, 3.5 to 4.2, and better host paths"),
    "pcie4x16-p2p": _Measured(
        8.9, 24.7, "vLLM prefill over PCIe 3 up to nccl-tests on 5 RTX 4090 (32 MB), patched drivers"
    ),
    "pcie5x8": _Measured(15.0, 30.0, "vLLM prefill on 2 RTX 5090 up to the practical rate of the lanes"),
    "pcie5x8-p2p": _Measured(18.0, 31.0, "the same boxes up to the raw rate", "assumed"),
    "pcie5x16": _Measured(20.0, 37.6, "the x8 prefill rate up to nccl-tests on 4 and 8 cards of server boards"),
    "pcie5x16-p2p": _Measured(22.2, 46.7, "nccl-tests on 4 and 8 RTX PRO 6000, two sockets to one"),
}

_BRIDGE = {  # by GB/s of the bridge in one direction
    56.25: _Measured(15.0, 48.0, "vLLM prefill on 2 RTX 3090 up to what NCCL assumes for 4 links"),
    300.0: _Measured(116.0, 208.0, "nccl-tests on pairs of H100 PCIe and A100"),
}
_BRIDGE_SHARE = (0.33, 0.70)  # of the raw rate, over the measured bridges

_NVLINK = {  # by architecture and GB/s in one direction; 16 MiB messages up to large ones, ring
    ("Ampere", 300.0): _Measured(109.0, 230.0, "nccl-tests on 8 A100"),
    ("Hopper", 450.0): _Measured(234.0, 370.0, "nccl-tests on 8 H100 and 4 H200"),
    ("Hopper", 200.0): _Measured(104.0, 215.0, "nccl-tests on 8 H800; low end by the H100's share"),
    ("Blackwell", 900.0): _Measured(255.0, 673.0, "nccl-tests on 4 and 8 B200"),
}
_NVLINK_SHARE = (0.36, 0.77)  # of the raw rate: A100
# In-switch reduction engages above four GPUs on Hopper and five on Blackwell.
_NVLINK_SWITCH_REDUCED = {("Hopper", 450.0): 480.0, ("Blackwell", 900.0): 846.0}
_SWITCH_REDUCTION_ABOVE = 4
_SWITCH_REDUCING = frozenset({"Hopper", "Blackwell", "Blackwell Ultra"})

_XGMI_MESH_PEERS = 7  # an OAM board joins each GPU to seven others by one link each
_XGMI_LINK = _Measured(44.7, 48.0, "rccl-tests on 8 and 2 MI300X, per link of 64 GB/s")
_XGMI_LINK_RAW = 64.0


def find_link(name: str, gpu: GpuSpec, num_gpus: int = 2) -> LinkSpec:
    """The link class `--link` names, for `num_gpus` of these GPUs in one group.

    Raises UsageError for an unknown name and for a link this GPU does not have.
    """
    if name in {"nvlink-bridge", "nvlink", "xgmi"}:
        return _fabric_link(name, gpu, num_gpus)
    if name == "pcie" or _PCIE_NAME.fullmatch(name):
        _check_pcie(name, gpu)
        return _pcie_link(name, gpu)
    near = did_you_mean(name, LINK_NAMES)
    raise UsageError(
        f"link '{name}' is not known",
        f"known links: {', '.join(LINK_NAMES)}",
        near or "use one of them, or 'pcie' when unsure",
    )


def default_link(gpu: GpuSpec, num_gpus: int) -> LinkSpec | None:
    """The link taken when nothing is said: the switched fabric of a board that has one, else PCIe without P2P and without
    a bridge (a bridge is an extra part; GeForce drivers have no PCIe P2P; NCCL leaves it off across a host bridge above two GPUs).
    None when no link between such GPUs or to their host is known (unified memory).
    """
    if gpu.nvlink_kind in {"nvswitch", "nvlink2", "nvlink4"}:
        return _fabric_link("nvlink", gpu, num_gpus)
    if gpu.nvlink_kind == "xgmi-mesh":
        return _fabric_link("xgmi", gpu, num_gpus)
    if gpu.pcie_gen is None:
        return None
    p2p = "-p2p" if gpu.p2p_pcie_stock_driver == "yes" and num_gpus <= 2 else ""
    return _pcie_link(f"pcie{gpu.pcie_gen}x{gpu.pcie_lanes}{p2p}", gpu)


def link_of_group(link: LinkSpec, gpu: GpuSpec, group_size: int) -> LinkSpec:
    """The link as a TP group of this size sees it: a bridge joins pairs, so a ring of more crosses PCIe; a mesh uses
    only the links among its members.
    """
    if link.name == "nvlink-bridge" and group_size > bridge_size(gpu):
        return _pcie_link(_own_pcie(gpu), gpu)
    if link.name in {"nvlink", "xgmi"}:
        return _fabric_link(link.name, gpu, group_size)
    return link


def with_and_without_p2p(link: LinkSpec, gpu: GpuSpec) -> tuple[LinkSpec, LinkSpec]:
    """A PCIe link as it is without and with direct access between GPUs; unknown lanes count as the card's own with it."""
    plain = link.name.removesuffix("-p2p")
    lanes = plain if _PCIE_NAME.fullmatch(plain) else _own_pcie(gpu)
    return _pcie_link(plain, gpu), _pcie_link(f"{lanes}-p2p", gpu)


def bridge_size(gpu: GpuSpec) -> int:
    """GPUs that one NVLink bridge joins: 4 where a four-way bridge exists, else 2."""
    return 4 if gpu.nvlink_kind == "bridge-2or4" else 2


def _pcie_link(name: str, gpu: GpuSpec) -> LinkSpec:
    match = _PCIE_NAME.fullmatch(name)
    p2p = name.endswith("-p2p")
    gen = int(match[1]) if match else gpu.pcie_gen or 3
    lanes = int(match[2]) if match else gpu.pcie_lanes or 16
    measured = _pcie_measured(name, gen, lanes, p2p=p2p)
    raw = _PCIE_X16_RAW[gen] * lanes / 16
    host = _PCIE_X16_HOST[gen] * lanes / 16 * (1 if match else 0.5)  # unknown lanes: half of the card's
    return LinkSpec(
        name=name,
        p2p=p2p,
        all_reduce_bytes_per_s=(min(measured.low, raw) * _GB, min(measured.high, raw) * _GB),
        all_reduce_best_bytes_per_s=raw * _GB,
        all_reduce_latency_s=_P2P_LATENCY_S if p2p else _HOST_STAGED_LATENCY_S,
        host_bytes_per_s=host * _GB,
        certainty=measured.certainty,
        source=measured.source,
    )


def _pcie_measured(name: str, gen: int, lanes: int, *, p2p: bool) -> _Measured:
    """The row of this name, or the nearest x16 row scaled: lanes in proportion, a generation doubles."""
    if name == "pcie" and gen >= 5:  # hosts of that generation stage copies far faster
        return _PCIE["pcie, gen 5"]
    if name in _PCIE:
        return _PCIE[name]
    suffix = "-p2p" if p2p else ""
    nearest = min(gen, 5)
    share = lanes / 16 * _PCIE_X16_RAW[gen] / _PCIE_X16_RAW[nearest]
    return _PCIE[f"pcie{nearest}x16{suffix}"].scaled(share, f"scaled from pcie{nearest}x16{suffix}")


def _check_pcie(name: str, gpu: GpuSpec) -> None:
    match = _PCIE_NAME.fullmatch(name)
    if match is None:
        return
    gen, lanes = gpu.pcie_gen, gpu.pcie_lanes
    if gen is None or lanes is None:
        raise UsageError(
            f"link '{name}' does not fit {gpu.name}", "it has no PCIe link in the catalogue", "leave --link out"
        )
    if int(match[1]) > gen or int(match[2]) > lanes:
        raise UsageError(
            f"link '{name}' does not fit {gpu.name}",
            f"the card has PCIe {gen} x{lanes}",
            f"--link pcie{gen}x{lanes}{match[3] or ''}",
        )


def _fabric_link(name: str, gpu: GpuSpec, num_gpus: int) -> LinkSpec:
    raw, measured = _fabric_rates(name, gpu, num_gpus)
    reducing = name == "nvlink" and gpu.architecture in _SWITCH_REDUCING
    return LinkSpec(
        name=name,
        p2p=True,
        all_reduce_bytes_per_s=(measured.low * _GB, measured.high * _GB),
        # A switch that reduces in flight halves what each GPU must send and receive.
        all_reduce_best_bytes_per_s=raw * _GB * (2 if reducing else 1),
        all_reduce_latency_s=_NVLINK_LATENCY_S,
        host_bytes_per_s=_fabric_host_bytes_per_s(gpu),
        certainty=measured.certainty,
        source=measured.source,
    )


def _fabric_rates(name: str, gpu: GpuSpec, num_gpus: int) -> tuple[float, _Measured]:
    """Raw GB/s in one direction, and the measured all-reduce range."""
    kinds = {
        "nvlink-bridge": ("bridge-2", "bridge-2or4"),
        "nvlink": ("nvswitch", "nvlink2", "nvlink4"),
        "xgmi": ("xgmi-mesh", "xgmi", "xgmi-bridge"),
    }
    if gpu.nvlink_bytes_per_s is None or gpu.nvlink_kind not in kinds[name]:
        raise _missing_fabric(name, gpu)
    raw = gpu.nvlink_bytes_per_s / _GB
    if name == "xgmi":
        return _xgmi_rates(gpu, raw, num_gpus)
    if name == "nvlink-bridge":
        low, high = _BRIDGE_SHARE
        assumed = _Measured(raw * low, raw * high, "the measured bridges' share of the raw rate", "assumed")
        return raw, _BRIDGE.get(raw, assumed)
    low, high = _NVLINK_SHARE
    architecture = gpu.architecture.removesuffix(" Ultra")
    assumed = _Measured(raw * low, raw * high, "the A100's share of the raw rate", "assumed")
    measured = _NVLINK.get((architecture, raw), assumed)
    reduced = _NVLINK_SWITCH_REDUCED.get((architecture, raw))
    if reduced and num_gpus > _SWITCH_REDUCTION_ABOVE:
        return raw, _Measured(measured.low, reduced, f"{measured.source}, reduced in the switch")
    return raw, measured


def _xgmi_rates(gpu: GpuSpec, raw: float, num_gpus: int) -> tuple[float, _Measured]:
    if gpu.nvlink_kind != "xgmi-mesh":
        low, high = _BRIDGE_SHARE
        return raw, _Measured(raw * low, raw * high, "the NVLink bridges' share of the raw rate", "assumed")
    peers = max(1, min(num_gpus - 1, _XGMI_MESH_PEERS))
    per_link = raw / _XGMI_MESH_PEERS
    return per_link * peers, _XGMI_LINK.scaled(peers * per_link / _XGMI_LINK_RAW, f"{peers} links of each GPU")


def _missing_fabric(name: str, gpu: GpuSpec) -> UsageError:
    own = {"none": "has no link of its own beside PCIe", "unknown": "has no such link in the catalogue"}
    alternative = default_link(gpu, 2)
    if gpu.nvlink_kind.startswith("bridge"):
        fix = "--link nvlink-bridge"
    else:
        fix = f"--link {alternative.name}" if alternative else "leave --link out"
    return UsageError(
        f"link '{name}' does not fit {gpu.name}",
        f"it {own.get(gpu.nvlink_kind, f'is joined by {gpu.nvlink_kind}')}",
        fix,
    )


def _fabric_host_bytes_per_s(gpu: GpuSpec) -> float:
    """Pinned copies between the host and one GPU that has a fabric, one direction, over the card's own lanes."""
    if gpu.pcie_gen is not None and gpu.pcie_lanes is not None and not _is_c2c(gpu):
        return _PCIE_X16_HOST[gpu.pcie_gen] * gpu.pcie_lanes / 16 * _GB
    assert gpu.host_link_bytes_per_s is not None, f"{gpu.name}: a card with a fabric has a host link in the catalogue"
    return gpu.host_link_bytes_per_s * _C2C_HOST_SHARE


def _is_c2c(gpu: GpuSpec) -> bool:
    raw = _PCIE_X16_RAW.get(gpu.pcie_gen or 0, 0.0) * _GB
    return gpu.host_link_bytes_per_s is not None and gpu.host_link_bytes_per_s > 2 * raw


def _own_pcie(gpu: GpuSpec) -> str:
    return f"pcie{gpu.pcie_gen}x{gpu.pcie_lanes}" if gpu.pcie_gen else "pcie"
