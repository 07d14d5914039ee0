"""Findings that other rooms make, as they make them; the examples of their pages."""

from longreach.rules import observed
from longreach.rules.finding import Finding

EXAMPLES: tuple[Finding, ...] = (
    observed.MODEL_NOT_UNDERSTOOD.finding(
        "the layer type 'retention' is not understood",
        "layer_types names 'retention' 12 times; how vLLM caches such a layer is not known here",
        "there is none yet: measure with vLLM itself, or report the model",
    ),
    observed.CAPACITY_DIFFERS.finding(
        "the engine's KV cache holds 1188533 tokens, planned were 1194731",
        "planned: 771 blocks of 13926400 bytes; the engine says 767 blocks (cache_config_info: num_gpu_blocks)",
        "compare --kv-cache-memory-bytes and the release in the plan with the engine's; plan again with what it runs",
    ),
    observed.LENGTH_DIFFERS.finding(
        "the engine serves max-model-len 655360, planned was 750000",
        "its log: Using max model len 655360",
        "start it with --max-model-len 750000, or plan again with --max-model-len 655360",
    ),
    observed.DTYPE_DIFFERS.finding(
        "the engine stores KV as bfloat16, planned was fp8_e4m3",
        "cache_config_info says cache_dtype=auto: a token takes 2 bytes a value, planned was 1",
        "start it with --kv-cache-dtype fp8_e4m3",
    ),
    observed.BACKEND_DIFFERS.finding(
        "the engine uses attention backend TRITON_ATTN, expected was FLASHINFER",
        "its log: Using TRITON_ATTN attention backend out of potential backends: ['TRITON_ATTN']",
        "install FlashInfer in the engine's environment, or accept Triton's speed",
    ),
    observed.PARALLEL_SIZES_DIFFER.finding(
        "the engine runs tensor-parallel-size 2, planned was 4",
        "its log: tensor_parallel_size=2",
        "start it with --tensor-parallel-size 4, or plan again with --tp 2",
    ),
    observed.BLOCK_SIZE_DIFFERS.finding(
        "the engine's block size is 1568 tokens, planned was 1600",
        "its log: Setting attention block size to 1568 tokens; state pages of 3 draft tokens need 1600",
        "check --speculative-config and --mamba-ssm-cache-dtype against the plan, then plan again",
    ),
    observed.RELEASE_DIFFERS.finding(
        "the engine's vLLM release is 0.33.0, planned was 0.32.0",
        "0.33.0 (its log: Initializing a V1 LLM engine (v0.33.0) with config: ...)",
        "plan again with --vllm 0.33.0, or name an environment that holds 0.32.0: --engine FOLDER",
    ),
)
