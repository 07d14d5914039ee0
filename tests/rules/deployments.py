"""Deployments built by hand: the how-to's box with the dense 32B and the hybrid 27B, and what vLLM says of them."""

from dataclasses import replace
from typing import Any

from longreach.engine.options import EngineOptions, SpeculativeOptions, YarnOptions
from longreach.engine.release import get_release
from longreach.errors import LongreachError
from longreach.forecast.values import PrefillWork, Span, SpeedForecast
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
from longreach.sizing.kv_cache import size_kv_cache
from longreach.sizing.values import KvCacheRequest, MemoryBudget, TierCapacity
from longreach.units import GIB, MIB


def count(deployment: Deployment) -> Deployment:
    """The same deployment with everything that follows from its options counted anew, as a plan would."""
    options, model = deployment.options, deployment.model
    asked = options.kv_cache_memory_bytes
    spec = options.speculative
    request = KvCacheRequest(
        model=model,
        release=deployment.release,
        max_model_len=options.max_model_len or model.max_position_embeddings,
        available_bytes_per_gpu=(asked or 0) - int((options.mm_ipc_gpu_memory_gb or 0) * GIB),
        tp_size=options.tensor_parallel_size,
        pp_size=options.pipeline_parallel_size,
        dcp_size=options.decode_context_parallel_size,
        kv_cache_dtype=options.kv_cache_dtype or "auto",
        max_num_batched_tokens=options.max_num_batched_tokens or 2048,
        num_speculative_tokens=spec.num_speculative_tokens if spec else 0,
        use_draft_layers=spec is not None and spec.method == "mtp",
        prefix_caching=options.enable_prefix_caching is not False,
    )
    try:
        capacity = size_kv_cache(request)
    except LongreachError:
        capacity = None
    return replace(
        deployment,
        kv_request=request if capacity else None,
        capacity=capacity,
        memory=None if deployment.memory is None else _budget(deployment.memory, asked),
        tiers=deployment.tiers if options.offload else (),
        max_model_len=request.max_model_len,
        max_num_batched_tokens=request.max_num_batched_tokens,
        max_num_seqs=options.max_num_seqs or 256,
    )


def _budget(memory: MemoryBudget, asked: int | None) -> MemoryBudget:
    if asked is None or memory.gpu_total_bytes is None or memory.weights_bytes is None or memory.other_bytes is None:
        return memory
    low, high = (
        memory.gpu_total_bytes[end] - memory.weights_bytes[1 - end] - memory.other_bytes[1 - end] for end in (0, 1)
    )
    return replace(memory, kv_bytes=(asked, asked), fits=True if asked <= low else False if asked > high else None)


def with_options(deployment: Deployment, **changes: Any) -> Deployment:
    """The same deployment with other engine options, counted anew."""
    return count(replace(deployment, options=replace(deployment.options, **changes)))


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
    """The same deployment of a model that differs in some fields, counted anew."""
    return count(replace(deployment, model=replace(deployment.model, **changes)))


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

YARN_3 = YarnOptions(3.0, 262144, ("text_config",), (("mrope_section", (11, 11, 10)), ("rope_theta", 1e7)))

OPTIONS = EngineOptions(
    model="MODEL",
    tensor_parallel_size=4,
    max_model_len=750_000,
    kv_cache_dtype="fp8_e4m3",
    kv_cache_memory_bytes=KV_10_GIB,
    max_num_batched_tokens=8192,
    max_num_seqs=16,
)

SPEED_750K = SpeedForecast(
    prompt_tokens=750_000,
    num_prefill_chunks=92,
    work=PrefillWork(
        linear_flops=36.8e15,
        attention_flops=110.6e15,
        all_reduce_bytes=1.4746e12,
        num_prefill_chunks=92,
    ),
    ttft_cold_s=Span(430, 690, lower_bound=213),
    ttft_warm_s=Span(1.2, 3.0),
    ttft_from_cpu_s=None,
    ttft_from_disk_s=None,
    decode_tokens_per_s=Span(24, 40, upper_bound=62),
    arithmetic=(
        "cold prefill of 750,000 tokens: 147 PFLOP = 36.8 PFLOP linear + 111 PFLOP attention, in 92 chunks of 8,192",
        "bound: 4 GPUs x 173 TFLOPS at best (the best bf16 matmul ever measured) -> 3 min 33 s",
    ),
)

CPU_TIER = TierCapacity("cpu", 6_228_800, 200 * GIB, "estimate", num_chunks=3893, chunk_bytes=55_148_544)

DENSE = count(
    Deployment(
        model=QWEN3_32B,
        machine=BOX,
        release=get_release("0.32.0"),
        options=OPTIONS,
        max_model_len=750_000,
        max_num_batched_tokens=8192,
        max_num_seqs=16,
        memory=MEMORY,
    )
)
HYBRID = count(
    with_options(
        replace(DENSE, model=QWEN36_27B, speed=(SPEED_750K,), rope=None),
        speculative=SpeculativeOptions("mtp", 3, use_local_argmax_reduction=True),
        yarn=YARN_3,
    )
)
