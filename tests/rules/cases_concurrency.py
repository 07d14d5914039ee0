"""Deployments on which the rules of `concurrency` and `kv_dtype` speak, and near ones on which they stay silent."""

from dataclasses import replace

from tests.rules.case import Case
from tests.rules.deployments import DENSE, HYBRID, QWEN3_32B, with_gpu, with_machine, with_model, with_options

from longreach.model.spec import AttentionLayer, MlaLayer
from longreach.rules import concurrency, kv_dtype
from longreach.units import GIB

_MEAN_32K = replace(HYBRID, mean_input_tokens=32_768, mean_output_tokens=1024)
_FITTING = with_options(DENSE, max_model_len=131_072)
_SLIDING = AttentionLayer(num_heads=32, num_kv_heads=16, head_dim=128, v_head_dim=128, window_tokens=1024)
_GEMMA = replace(
    QWEN3_32B,
    name="gemma-3-27b",
    layers=((_SLIDING,) * 5 + (replace(_SLIDING, window_tokens=None),)) * 10 + (_SLIDING,) * 2,
    num_layers=62,
    num_attention_heads=32,
    num_kv_heads=16,
    max_position_embeddings=131_072,
)
_WINDOWED = with_options(
    with_model(DENSE, **{name: getattr(_GEMMA, name) for name in _GEMMA.__slots__}), max_model_len=131_072
)
_SMALL_CHUNKS = with_options(_WINDOWED, max_num_batched_tokens=2048)
_BF16 = with_options(_FITTING, kv_cache_dtype=None)
_MLA = with_model(
    DENSE,
    layers=(MlaLayer(num_heads=64, kv_lora_rank=512, rope_head_dim=64, nope_head_dim=128, v_head_dim=128),) * 64,
)
_NO_GPU = with_machine(_FITTING, gpu=None)
_ESTIMATED = replace(
    _FITTING,
    capacity=replace(
        _FITTING.capacity, certainty="estimate", estimate_reason="block-outermost layouts are not modelled"
    )
    if _FITTING.capacity
    else None,
)

CASES = (
    Case(
        concurrency.max_num_seqs_beyond_cache,
        with_options(_MEAN_32K, max_num_seqs=64),
        (_MEAN_32K, with_options(HYBRID, max_num_seqs=64), replace(_MEAN_32K, kv_request=None)),
    ),
    Case(
        concurrency.max_num_seqs_beyond_cache,
        replace(with_options(DENSE, max_num_seqs=50_000, kv_cache_memory_bytes=GIB), is_foreign=True),
        (replace(with_options(DENSE, max_num_seqs=64, kv_cache_memory_bytes=GIB), is_foreign=True),),
    ),
    Case(
        concurrency.concurrency_not_met,
        replace(HYBRID, concurrency=4),
        (HYBRID, replace(HYBRID, concurrency=1), replace(_MEAN_32K, concurrency=8), replace(DENSE, concurrency=4)),
    ),
    Case(concurrency.window_capacity_depends_on_chunk, _WINDOWED, (_SMALL_CHUNKS, _FITTING, HYBRID)),
    Case(
        concurrency.printed_tokens_depend_on_length,
        HYBRID,
        (DENSE, _FITTING, with_options(HYBRID, max_model_len=32_768), with_options(HYBRID, kv_cache_memory_bytes=GIB)),
    ),
    Case(concurrency.kv_capacity_estimated, _ESTIMATED, (_FITTING, replace(_FITTING, capacity=None))),
    Case(
        concurrency.one_request_fills_cache,
        HYBRID,
        (_FITTING, DENSE, replace(HYBRID, concurrency=1)),
    ),
    Case(
        kv_dtype.fp8_kv_moves_backend,
        _FITTING,
        (_BF16, _NO_GPU, with_gpu(_FITTING, compute_capability="9.0"), with_machine(_FITTING, device_type="rocm")),
    ),
    Case(
        kv_dtype.fp8_kv_emulated,
        with_gpu(_FITTING, name="GeForce RTX 3090", compute_capability="8.6", fp8_support="emulated"),
        (_FITTING, _NO_GPU, with_gpu(_BF16, fp8_support="emulated")),
    ),
    Case(
        kv_dtype.fp8_kv_unsupported,
        with_gpu(_FITTING, name="Tesla V100", compute_capability="7.0", fp8_support="none"),
        (_FITTING, _NO_GPU, with_gpu(_BF16, fp8_support="none")),
    ),
    Case(
        kv_dtype.fp8_kv_uncalibrated,
        _FITTING,
        (_BF16, with_model(_FITTING, kv_cache_dtype_forced="fp8_e4m3")),
    ),
    Case(
        kv_dtype.no_backend_for_kv_dtype,
        with_options(_FITTING, kv_cache_dtype="nvfp4_4over6"),
        (
            _FITTING,
            with_gpu(with_options(_FITTING, kv_cache_dtype="nvfp4_4over6"), compute_capability="10.0"),
            with_options(_NO_GPU, kv_cache_dtype="nvfp4_4over6"),
            with_options(_MLA, kv_cache_dtype="fp8_ds_mla"),
        ),
    ),
    Case(
        kv_dtype.packed_kv_needs_backend,
        with_options(_FITTING, kv_cache_dtype="turboquant_4bit_nc"),
        (_FITTING, _BF16, with_options(_NO_GPU, kv_cache_dtype="nvfp4")),
    ),
    Case(
        kv_dtype.kv_dtype_overrides_checkpoint,
        with_options(with_model(_FITTING, kv_cache_dtype_forced="fp8_e4m3"), kv_cache_dtype="bfloat16"),
        (
            _FITTING,
            _BF16,
            with_options(with_model(_FITTING, kv_cache_dtype_forced="fp8_e4m3"), kv_cache_dtype="fp8"),
        ),
    ),
)
