"""What vLLM refuses before it counts anything."""

from collections.abc import Iterable

from longreach.errors import UsageError
from longreach.sizing.pages import LayerCache
from longreach.sizing.values import KvCacheRequest


def check_request(request: KvCacheRequest) -> None:
    """Sizes that do not divide or that no release takes. Raises UsageError."""
    model = request.model
    for option, value in (
        ("--max-model-len", request.max_model_len),
        ("--tp", request.tp_size),
        ("--pp", request.pp_size),
        ("--dcp", request.dcp_size),
        ("--prefill-context-parallel-size", request.pcp_size),
        ("--block-size", request.block_size or request.default_block_size),
    ):
        if value < 1:
            raise UsageError(f"{option} {value} is not a size", "it must be at least 1", f"{option} 1 or more")
    if model.num_attention_heads % request.tp_size:
        raise UsageError(
            f"tensor parallel size {request.tp_size} does not divide {model.num_attention_heads} attention heads",
            "vLLM splits the heads of every layer evenly and stops otherwise",
            f"--tp {_largest_divisor(model.num_attention_heads, request.tp_size)}",
        )
    if request.pp_size > model.num_layers:
        raise UsageError(
            f"pipeline parallel size {request.pp_size} exceeds {model.num_layers} decoder layers",
            "every stage holds at least one layer",
            f"--pp {model.num_layers} or less",
        )
    if request.tp_size % request.dcp_size:
        raise UsageError(
            f"decode context parallel size {request.dcp_size} does not divide tensor parallel size {request.tp_size}",
            "DCP shares the KV of one TP group among its GPUs",
            f"--dcp {_largest_divisor(request.tp_size, request.dcp_size)}",
        )


def check_context_parallel(caches: Iterable[LayerCache], dcp_size: int) -> None:
    """Windows cannot be spread over GPUs. Raises UsageError."""
    if dcp_size > 1 and any(cache.kind == "sliding_window" for cache in caches):
        raise UsageError(
            f"decode context parallel size {dcp_size} does not work with sliding-window layers",
            "vLLM stops with 'DCP not support sliding window.'",
            "--dcp 1",
        )


def _largest_divisor(value: int, limit: int) -> int:
    return max(size for size in range(1, min(value, limit) + 1) if value % size == 0)
