"""The values that describe a machine. Rates are per GPU; TFLOPS and GB/s are decimal."""

from dataclasses import dataclass, field


@dataclass(frozen=True, slots=True)
class GpuSpec:
    """One row of the GPU catalogue. None means no figure was found."""

    name: str
    vendor: str
    architecture: str
    compute_capability: str  # "8.9" for NVIDIA, "gfx942" for AMD
    memory_bytes: int | None  # total the driver prints
    cuda_memory_bytes: tuple[int, int] | None  # total CUDA sees (what vLLM divides), least and most over prints
    memory_bandwidth_bytes_per_s: float
    fp16_fp32acc_flops: float | None  # dense, fp32 accumulate: the rate of vLLM's matrix multiplications
    fp8_fp32acc_flops: float | None
    fp8_best_flops: float | None
    int8_ops: float | None
    fp4_flops: float | None
    bf16_gemm_flops: tuple[float, float] | None  # published matmul results, least and most
    pcie_gen: int | None
    pcie_lanes: int | None
    host_link_bytes_per_s: float | None  # one direction
    nvlink_bytes_per_s: float | None  # per GPU and direction
    nvlink_kind: str  # "none", "bridge-2", "nvswitch", ...
    p2p_pcie_stock_driver: str  # "yes", "assumed", "no", "n/a"
    fp8_support: str  # "native", "emulated", "none"
    tdp_w: float | None
    notes: str = ""


@dataclass(frozen=True, slots=True)
class LinkSpec:
    """How the GPUs of one TP group reach each other: effective all-reduce bus bandwidth for large messages."""

    name: str  # "pcie4x16", "pcie4x16-p2p", "nvlink-bridge", ...
    p2p: bool
    all_reduce_bytes_per_s: tuple[float, float]  # low, high: from published measurements of this class
    all_reduce_best_bytes_per_s: float  # the most the link can physically carry; lower bounds use this
    all_reduce_latency_s: float  # per small call
    host_bytes_per_s: float  # host to one GPU, one direction, pinned
    certainty: str  # "measured", "assumed"
    source: str


@dataclass(frozen=True, slots=True)
class Machine:
    """One box. Unknown facts are None."""

    gpu: GpuSpec | None
    num_gpus: int
    link: LinkSpec | None
    ram_bytes: int | None = None
    num_numa_nodes: int | None = None
    host_memory_bytes_per_s: float | None = None
    device_type: str = "cuda"  # "cuda", "rocm", "xpu", "cpu": decides vLLM's defaults
    assumptions: tuple[str, ...] = field(default=())
    shm_bytes: int | None = None  # size of /dev/shm, where a CPU tier lives
    link_assumed: bool = False  # several GPUs, and nobody said how they are joined

    @property
    def link_is_open(self) -> bool:
        """PCIe of which nobody knows whether the GPUs reach each other directly."""
        name = self.link.name if self.link else ""
        return name == "pcie" or (self.link_assumed and name.startswith("pcie"))
