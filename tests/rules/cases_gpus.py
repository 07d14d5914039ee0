"""Deployments on which the rules of `parallel`, `link` and `gpu` speak, and near ones on which they stay silent."""

from dataclasses import replace

from tests.rules.case import Case
from tests.rules.deployments import (
    DENSE,
    FULL_27B,
    GDN_27B,
    HYBRID,
    SPEED_750K,
    with_gpu,
    with_link,
    with_machine,
    with_model,
    with_options,
)

from longreach.forecast.values import Span
from longreach.model.spec import MlaLayer, WeightsSpec
from longreach.rules import gpu, link, parallel
from longreach.units import GIB

_FITTING = with_options(DENSE, max_model_len=131_072)
_TP3 = {"tensor_parallel_size": 3}
_TP8 = {"tensor_parallel_size": 8}
_SIXTEEN = with_machine(_FITTING, num_gpus=16)
_P2P = {"name": "pcie4x16-p2p", "p2p": True}
_NVLINK = {"name": "nvlink", "p2p": True}
_PAIR = with_options(_FITTING, tensor_parallel_size=2)
_MLA = with_model(
    _FITTING,
    name="deepseek-v3",
    layers=(MlaLayer(num_heads=128, kv_lora_rank=512, rope_head_dim=64, nope_head_dim=128, v_head_dim=128),) * 61,
    num_layers=61,
    num_attention_heads=128,
    num_kv_heads=128,
)
_W4A16 = WeightsSpec("w4a16", "awq", 18 * GIB, "index")
_3090 = {"name": "GeForce RTX 3090", "architecture": "Ampere", "compute_capability": "8.6", "fp8_support": "emulated"}
_V100 = {"name": "Tesla V100 SXM2 16GB", "architecture": "Volta", "compute_capability": "7.0", "fp8_support": "none"}
_TWO_NODES = with_machine(HYBRID, num_numa_nodes=2)

CASES = (
    Case(
        parallel.tp_not_dividing_heads,
        with_options(_FITTING, **_TP3),
        (_FITTING, with_options(HYBRID, **_TP3)),
    ),
    Case(
        parallel.tp_does_not_divide_vocabulary,
        with_options(HYBRID, **_TP3),
        (HYBRID, _FITTING, with_model(with_options(HYBRID, **_TP3), vocab_size=248_300 // 192 * 192)),
    ),
    Case(
        parallel.tp_splits_kv_heads_unevenly,
        with_options(HYBRID, tensor_parallel_size=6),
        (HYBRID, with_options(HYBRID, **_TP8), with_options(HYBRID, tensor_parallel_size=2)),
    ),
    Case(
        parallel.tp_splits_state_unevenly,
        with_options(with_model(HYBRID, layers=(replace(GDN_27B, num_k_heads=6), FULL_27B)), tensor_parallel_size=4),
        (HYBRID, DENSE),
    ),
    Case(
        parallel.kv_heads_replicated,
        with_options(_SIXTEEN, tensor_parallel_size=16),
        (
            _FITTING,
            with_options(_SIXTEEN, **_TP8),
            with_options(_SIXTEEN, tensor_parallel_size=16, decode_context_parallel_size=2),
            with_model(with_options(_SIXTEEN, tensor_parallel_size=16), layers=(GDN_27B,)),
            with_options(_MLA, tensor_parallel_size=16),
        ),
    ),
    Case(
        parallel.mla_latent_replicated,
        _MLA,
        (_FITTING, with_options(_MLA, tensor_parallel_size=1), with_options(_MLA, decode_context_parallel_size=4)),
    ),
    Case(
        parallel.more_workers_than_gpus,
        with_options(_FITTING, **_TP8),
        (_FITTING, with_machine(with_options(_FITTING, **_TP8), device_type="cpu")),
    ),
    Case(
        parallel.dcp_impossible,
        with_options(_FITTING, decode_context_parallel_size=2),
        (_FITTING, with_options(_MLA, decode_context_parallel_size=4)),
    ),
    Case(
        parallel.quantization_group_split,
        with_model(_PAIR, name="qwen2.5-0.5b", weights=_W4A16, num_attention_heads=14, num_kv_heads=2, head_dim=64),
        (
            with_model(_FITTING, weights=_W4A16),
            _FITTING,
            with_options(with_model(_FITTING, weights=_W4A16), tensor_parallel_size=1),
        ),
    ),
    Case(
        parallel.pp_stages_uneven,
        with_options(_FITTING, tensor_parallel_size=1, pipeline_parallel_size=3),
        (_FITTING, with_options(_FITTING, tensor_parallel_size=2, pipeline_parallel_size=2)),
    ),
    Case(
        link.all_reduce_dominates_prefill,
        HYBRID,
        (
            DENSE,
            with_options(HYBRID, tensor_parallel_size=1),
            with_link(HYBRID, all_reduce_bytes_per_s=(234e9, 370e9)),
            replace(HYBRID, speed=(replace(SPEED_750K, ttft_cold_s=Span(None, None)),)),
        ),
    ),
    Case(
        link.custom_all_reduce_unavailable,
        HYBRID,
        (
            with_options(HYBRID, disable_custom_all_reduce=True),
            with_link(HYBRID, **_NVLINK),
            with_options(HYBRID, tensor_parallel_size=2),
            with_machine(HYBRID, link=None),
        ),
    ),
    Case(
        link.custom_all_reduce_on_patched_driver,
        with_link(_PAIR, **_P2P),
        (
            _PAIR,
            with_link(_FITTING, **_P2P),
            with_gpu(with_link(_PAIR, **_P2P), p2p_pcie_stock_driver="yes"),
            with_link(with_options(_PAIR, disable_custom_all_reduce=True), **_P2P),
            with_machine(_PAIR, gpu=None),
        ),
    ),
    Case(
        link.tp_crosses_sockets,
        _TWO_NODES,
        (HYBRID, with_options(_TWO_NODES, tensor_parallel_size=2), with_link(_TWO_NODES, **_NVLINK)),
    ),
    Case(
        link.nccl_p2p_level_unset,
        with_link(HYBRID, **_P2P),
        (HYBRID, with_link(_PAIR, **_P2P), with_options(with_link(HYBRID, **_P2P), env=(("NCCL_P2P_LEVEL", "SYS"),))),
    ),
    Case(
        gpu.gpu_without_bf16,
        with_gpu(with_options(_FITTING, dtype="bfloat16"), **_V100),
        (
            with_gpu(_FITTING, **_V100),
            with_options(_FITTING, dtype="bfloat16"),
            with_gpu(with_options(_FITTING, dtype="float16"), **_V100),
            with_gpu(with_options(_FITTING, dtype="bfloat16"), compute_capability="gfx906"),
        ),
    ),
    Case(
        gpu.dtype_falls_back,
        with_gpu(_FITTING, **_V100),
        (
            _FITTING,
            with_gpu(with_options(_FITTING, dtype="float16"), **_V100),
            with_gpu(with_model(_FITTING, dtype="float16"), **_V100),
            with_gpu(_FITTING, compute_capability="gfx906"),
        ),
    ),
    Case(
        gpu.gpu_name_ambiguous,
        with_gpu(_FITTING, name="GeForce RTX 4090 48GB (modified)", memory_bytes=49140 * 2**20),
        (_FITTING, with_machine(_FITTING, gpu=None)),
    ),
    Case(
        gpu.fp8_weights_only_smaller,
        with_gpu(_FITTING, **_3090),
        (_FITTING, with_gpu(with_model(_FITTING, weights=_W4A16), **_3090), with_machine(_FITTING, gpu=None)),
    ),
    Case(
        gpu.fp4_weights_only_smaller,
        with_model(_FITTING, weights=WeightsSpec("nvfp4", "modelopt", 20 * GIB, "index")),
        (
            _FITTING,
            with_gpu(with_model(_FITTING, weights=replace(_W4A16, quantization="nvfp4")), compute_capability="12.0"),
        ),
    ),
    Case(
        gpu.gpu_unknown,
        with_machine(_FITTING, gpu=None),
        (_FITTING, with_machine(_FITTING, gpu=None, device_type="cpu")),
    ),
    Case(gpu.numa_not_bound, _TWO_NODES, (HYBRID, with_options(_TWO_NODES, numa_bind=True))),
    Case(gpu.numa_bind_without_numactl, with_options(_TWO_NODES, numa_bind=True), (_TWO_NODES,)),
)
