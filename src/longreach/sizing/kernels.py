"""What the kernels of a device ask of the KV cache's blocks. Pure."""

from longreach.engine.attention import latent_block_size
from longreach.engine.defaults import DeviceDefaults
from longreach.hardware.spec import GpuSpec, Machine
from longreach.model.spec import GatedDeltaNetLayer, IndexerLayer, MlaLayer, ModelSpec


def kernel_block_sizes(model: ModelSpec, machine: Machine, device: DeviceDefaults, dtype: str) -> tuple[int, int]:
    """(block size when none is given, smallest block of the attention kernel) in tokens."""
    if not any(isinstance(layer, MlaLayer) for layer in model.layers):
        return device.block_size, device.min_kernel_block_size
    size = device.mla_block_size
    if machine.device_type == "cuda" and machine.gpu is not None:
        has_indexer = any(isinstance(layer, IndexerLayer) for layer in model.layers)
        size = latent_block_size(machine.gpu.compute_capability, dtype, has_indexer=has_indexer) or size
    return size, size


def prefills_on_flashinfer(model: ModelSpec, gpu: GpuSpec | None) -> bool:
    """Gated-delta prefill: Hopper always; Blackwell with key heads of 128 dimensions (and CUDA 13, which its drivers bring)."""
    if gpu is None or gpu.vendor != "NVIDIA":
        return False
    generation = gpu.compute_capability.partition(".")[0]
    heads = {layer.k_head_dim for layer in model.layers if isinstance(layer, GatedDeltaNetLayer)}
    return generation == "9" or (generation in ("10", "12") and heads == {128})
