"""Kinds of findings that other rooms make: `launch` holds a running engine against its plan, `plan` meets a model nobody knows."""

from longreach.rules.finding import FindingKind

MODEL_NOT_UNDERSTOOD = FindingKind(
    "LR119", "error", "model_not_understood", "the model's KV cache is not understood, so nothing is said about it"
)
CAPACITY_DIFFERS = FindingKind(
    "LR601", "warning", "capacity_differs", "the engine's KV cache capacity differs from the plan"
)
LENGTH_DIFFERS = FindingKind("LR602", "error", "length_differs", "the engine's max-model-len differs from the plan")
DTYPE_DIFFERS = FindingKind("LR603", "error", "dtype_differs", "the engine stores another data type than planned")
BACKEND_DIFFERS = FindingKind("LR604", "warning", "backend_differs", "the engine chose another attention backend")
PARALLEL_SIZES_DIFFER = FindingKind(
    "LR605", "error", "parallel_sizes_differ", "the engine's parallel sizes differ from the plan"
)
BLOCK_SIZE_DIFFERS = FindingKind(
    "LR606", "warning", "block_size_differs", "the engine's block size differs from the plan"
)
RELEASE_DIFFERS = FindingKind(
    "LR607", "warning", "release_differs", "the engine is another vLLM release than the plan's"
)

KINDS: tuple[FindingKind, ...] = (
    MODEL_NOT_UNDERSTOOD,
    CAPACITY_DIFFERS,
    LENGTH_DIFFERS,
    DTYPE_DIFFERS,
    BACKEND_DIFFERS,
    PARALLEL_SIZES_DIFFER,
    BLOCK_SIZE_DIFFERS,
    RELEASE_DIFFERS,
)
