"""Deployments built by hand: the how-to's box with the dense 32B and the hybrid 27B, and what vLLM says of them."""

from dataclasses import replace
from typing import Any

from longreach.engine.options import EngineOptions
from longreach.engine.release import get_release
from longreach.hardware.spec import GpuSpec, LinkSpec, Machine
from longreach.model.spec import (
    AttentionLayer,
    GatedDeltaNetLayer,
    ModelSpec,
    ParameterCount,
    RopeSpec,
    WeightsSpec,
    YarnRecommendation,
)
from longreach.rules.deployment import Deployment
from longreach.sizing.values import KvCapacity, KvGroup, MemoryBudget, RopePlan
from longreach.units import GIB, MIB

RTX_4090 = GpuSpec(
    name="GeForce RTX 4090",
    vendor="NVIDIA",
    architecture="Ada",
    compute_capability="8.9",
    memory_bytes=24564 * MIB,
    cuda_memory_bytes=(24081 * MIB, 24217 * MIB),
    memory_bandwidth_bytes_per_s=1008e9,
    fp16_fp32acc_flops=165.2e12,
    fp8_fp32acc_flops=330.3e12,
    fp8_best_flops=660.6e12,
    int8_ops=660.6e12,
    fp4_flops=None,
    bf16_gemm_flops=(162e12, 173e12),
    pcie_gen=4,
    pcie_lanes=16,
    host_link_bytes_per_s=31.5e9,
    nvlink_bytes_per_s=None,
    nvlink_kind="none",
    p2p_pcie_stock_driver="no",
    fp8_support="native",
    tdp_w=450,
)

PCIE4 = LinkSpec(
    name="pcie4x16",
    p2p=False,
    all_reduce_bytes_per_s=(3.3e9, 4.2e9),
    all_reduce_best_bytes_per_s=31.5e9,
    all_reduce_latency_s=15e-6,
    host_bytes_per_s=26e9,
    certainty="measured",
    source="prefill times on four 3090s",
)

BOX = Machine(RTX_4090, 4, PCIE4, ram_bytes=512 * GIB, num_numa_nodes=1)

FULL_32B = AttentionLayer(num_heads=64, num_kv_heads=8, head_dim=128, v_head_dim=128)
FULL_27B = AttentionLayer(num_heads=24, num_kv_heads=4, head_dim=256, v_head_dim=256)
GDN_27B = GatedDeltaNetLayer(num_k_heads=16, num_v_heads=48, k_head_dim=128, v_head_dim=128, conv_kernel=4)

QWEN3_32B = ModelSpec(
    name="qwen3-32b",
    architecture="Qwen3ForCausalLM",
    model_type="qwen3",
    layers=(FULL_32B,) * 64,
    draft_layers=(),
    num_layers=64,
    hidden_size=5120,
    num_attention_heads=64,
    num_kv_heads=8,
    head_dim=128,
    vocab_size=151936,
    dtype="bfloat16",
    max_position_embeddings=40960,
    rope=RopeSpec("default", 1e6, 128, (("rope_theta", 1e6),), ()),
    parameters=ParameterCount(total=32_762_123_264, embedding=1_555_824_640, active=31_206_298_624, certainty="exact"),
    weights=WeightsSpec("fp8", "fp8", 34 * GIB, "index"),
    native_context_tokens=32768,
    yarn=YarnRecommendation(4.0, 32768, 131072, "model card"),
    tool_call_parsers=("hermes",),
    reasoning_parsers=("qwen3",),
)

QWEN36_27B = ModelSpec(
    name="qwen3.6-27b",
    architecture="Qwen3_5ForConditionalGeneration",
    model_type="qwen3_5",
    layers=((GDN_27B,) * 3 + (FULL_27B,)) * 16,
    draft_layers=(FULL_27B,),
    num_layers=64,
    hidden_size=5120,
    num_attention_heads=24,
    num_kv_heads=4,
    head_dim=256,
    vocab_size=248320,
    dtype="bfloat16",
    max_position_embeddings=262144,
    rope=RopeSpec(
        rope_type="default",
        theta=1e7,
        rotary_dim=64,
        parameters=(("mrope_section", (11, 11, 10)), ("rope_theta", 1e7)),
        override_path=("text_config",),
        mrope_section=(11, 11, 10),
    ),
    parameters=ParameterCount(
        total=27_781_427_952, embedding=2_542_796_800, active=24_350_000_000, certainty="estimate"
    ),
    weights=WeightsSpec("fp8", "fp8", 29 * GIB, "index"),
    is_multimodal=True,
    ssm_state_dtype="float32",
    yarn=YarnRecommendation(4.0, 262144, 1_010_000, "model card"),
    tool_call_parsers=("qwen3_coder",),
    reasoning_parsers=("qwen3",),
    spec_methods=("mtp",),
)

KV_10_GIB = 10 * GIB

FULL_GROUP = KvGroup("full_attention", 64, 16, 8192, 46875)
DENSE_750K = KvCapacity(
    certainty="exact",
    block_size=16,
    bytes_per_block=524288,
    num_blocks=20480,
    blocks_per_request=46875,
    kv_capacity_tokens=327680,
    max_concurrency=20480 / 46875,
    needed_bytes_per_gpu=46876 * 524288,
    available_bytes_per_gpu=KV_10_GIB,
    largest_max_model_len=327664,
    starts=False,
    groups=(FULL_GROUP,),
    refusal="To serve at least one request ...",
)
DENSE_327664 = replace(
    DENSE_750K,
    blocks_per_request=20479,
    max_concurrency=20480 / 20479,
    needed_bytes_per_gpu=KV_10_GIB,
    starts=True,
    groups=(replace(FULL_GROUP, blocks_per_request=20479),),
    refusal=None,
)
DENSE_327680 = replace(
    DENSE_750K,
    blocks_per_request=20480,
    max_concurrency=1.0,
    needed_bytes_per_gpu=20481 * 524288,
    groups=(replace(FULL_GROUP, blocks_per_request=20480),),
)

_STATE_GROUP = KvGroup("recurrent", 16, 1600, 819200, 5)
HYBRID_750K = KvCapacity(
    certainty="exact",
    block_size=1600,
    bytes_per_block=13926400,
    num_blocks=771,
    blocks_per_request=484,
    kv_capacity_tokens=1194731,
    max_concurrency=771 / 484,
    needed_bytes_per_gpu=6754304000,
    available_bytes_per_gpu=KV_10_GIB,
    largest_max_model_len=1_206_400,
    starts=True,
    groups=(KvGroup("full_attention", 17, 1600, 819200, 469), _STATE_GROUP, _STATE_GROUP, _STATE_GROUP),
)

MEMORY = MemoryBudget(
    gpu_total_bytes=(24081 * MIB, 24217 * MIB),
    weights_bytes=(7500 * MIB, 8000 * MIB),
    weights_certainty="exact",
    weights_source="index",
    other_bytes=(1200 * MIB, 3000 * MIB),
    rope_table_bytes=0,
    kv_bytes=(KV_10_GIB, KV_10_GIB),
    kv_certainty="exact",
    fits=True,
)

OPTIONS = EngineOptions(
    model="MODEL",
    tensor_parallel_size=4,
    max_model_len=750_000,
    kv_cache_dtype="fp8_e4m3",
    kv_cache_memory_bytes=KV_10_GIB,
    max_num_batched_tokens=8192,
    max_num_seqs=16,
)

DENSE = Deployment(
    model=QWEN3_32B,
    machine=BOX,
    release=get_release("0.32.0"),
    options=OPTIONS,
    max_model_len=750_000,
    max_num_batched_tokens=8192,
    max_num_seqs=16,
    capacity=DENSE_750K,
    memory=MEMORY,
    rope=RopePlan(32768, 750_000, None, 0, None, reachable=False, reason="no factor reaches it"),
)
HYBRID = replace(DENSE, model=QWEN36_27B, capacity=HYBRID_750K, rope=None)


def with_options(deployment: Deployment, **changes: Any) -> Deployment:
    """The same deployment with other engine options."""
    return replace(deployment, options=replace(deployment.options, **changes))


def with_gpu(deployment: Deployment, **changes: Any) -> Deployment:
    """The same deployment on a GPU that differs in some fields."""
    assert deployment.machine.gpu is not None
    gpu = replace(deployment.machine.gpu, **changes)
    return replace(deployment, machine=replace(deployment.machine, gpu=gpu))


def with_link(deployment: Deployment, **changes: Any) -> Deployment:
    """The same deployment over another link."""
    assert deployment.machine.link is not None
    link = replace(deployment.machine.link, **changes)
    return replace(deployment, machine=replace(deployment.machine, link=link))


def with_machine(deployment: Deployment, **changes: Any) -> Deployment:
    """The same deployment on a machine that differs in some fields."""
    return replace(deployment, machine=replace(deployment.machine, **changes))


def with_model(deployment: Deployment, **changes: Any) -> Deployment:
    """The same deployment of a model that differs in some fields."""
    return replace(deployment, model=replace(deployment.model, **changes))
