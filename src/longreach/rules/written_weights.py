"""How a foreign command loads and spreads the weights: LR137, LR138, LR984, LR985, LR986. Pure."""

import re
from collections.abc import Iterator, Mapping

from longreach.model.spec import ModelSpec
from longreach.rules.edit import remove_flag
from longreach.rules.rule import Diagnosis, rule
from longreach.rules.written import CommandRule, WrittenCommand


@rule(
    "LR984",
    "error",
    "expert_parallel_without_experts",
    "expert parallelism on a model without experts",
    outcome="refused_at_start",
)
def expert_parallel_without_experts(written: WrittenCommand) -> Iterator[Diagnosis]:
    """There is nothing to spread."""
    model = written.model
    if model is None or model.is_moe or not written.parsed.is_on("--enable-expert-parallel"):
        return
    yield Diagnosis(
        f"--enable-expert-parallel on '{model.name}', which has no experts",
        "vLLM stops: 'Number of experts in the model must be greater than 0 when expert parallelism is enabled.'",
        "leave --enable-expert-parallel out",
        edit=remove_flag("--enable-expert-parallel"),
    )


_UNSTABLE_IN_FLOAT16: Mapping[str, tuple[int, ...]] = {
    "Gemma2ForCausalLM": (0, 9, 2),
    "Gemma3ForConditionalGeneration": (0, 9, 2),
    "Gemma3ForCausalLM": (0, 11, 2),
    "Glm4ForCausalLM": (0, 9, 2),
}
"""Architecture -> the release that refuses float16 for it."""


@rule(
    "LR137",
    "error",
    "float16_not_supported",
    "the model is numerically unstable in float16",
    first="0.9.2",
    outcome="refused_at_start",
)
def float16_not_supported(written: WrittenCommand) -> Iterator[Diagnosis]:
    """A short list of model types in the config."""
    model, dtype = written.model, written.value("--dtype")
    since = _UNSTABLE_IN_FLOAT16.get(model.architecture) if model is not None else None
    if model is None or since is None or written.release.number < since or dtype not in ("half", "float16"):
        return
    yield Diagnosis(
        f"--dtype {dtype} is refused for '{model.name}'",
        f"vLLM stops: 'The model type ... does not support float16. Reason: Numerical instability. Please use bfloat16 or float32 "
        f"instead.', in {written.release.version} for {model.architecture}",
        "leave --dtype out, or set bfloat16",
        edit=remove_flag("--dtype"),
    )


_REMOTE_CODE = re.compile(r"kimi-(k2|linear|vl)|internlm2\.5|minicpm-v")


@rule(
    "LR138",
    "warning",
    "remote_code_not_trusted",
    "the checkpoint brings code that vLLM does not run unasked",
    outcome="refused_at_start",
)
def remote_code_not_trusted(written: WrittenCommand) -> Iterator[Diagnosis]:
    """Families whose tokenizer, or config, is a Python file in the repository. Whether to trust it is the reader's choice."""
    model, parsed = written.model, written.parsed
    if model is None or _REMOTE_CODE.match(model.name) is None:
        return
    if parsed.is_on("--trust-remote-code") or parsed.named("--tokenizer") or parsed.named("--tokenizer-mode"):
        return
    yield Diagnosis(
        f"'{model.name}' is read with code from its repository, and --trust-remote-code is not set",
        "its tokenizer is a Python file there: 'Please pass the argument `trust_remote_code=True` to allow custom code to be run'",
        "read that code, then add --trust-remote-code",
    )


_NO_PIPELINE: Mapping[str, tuple[tuple[int, ...], tuple[int, ...]]] = {
    "GptOssForCausalLM": ((0, 10, 1), (0, 10, 1, 99)),
    "HunYuanDenseV1ForCausalLM": ((0, 10, 0), (0, 10, 1, 99)),
    "HunYuanMoEV1ForCausalLM": ((0, 9), (0, 10, 1, 99)),
    "KimiVLForConditionalGeneration": ((0,), (0, 10, 1, 99)),
    "DeepseekV4ForCausalLM": ((0, 20), (0, 20, 99)),
    "Gemma3nForConditionalGeneration": ((0,), (1,)),
    "Gemma3nForCausalLM": ((0,), (1,)),
    "Mamba2ForCausalLM": ((0,), (1,)),
    "Zamba2ForCausalLM": ((0,), (1,)),
    "Plamo2ForCausalLM": ((0,), (0, 10, 0, 99)),
    "MiniMaxText01ForCausalLM": ((0,), (1,)),
    "MiniMaxM1ForCausalLM": ((0,), (1,)),
    "Phi4MMForCausalLM": ((0,), (1,)),
    "Phi4MultimodalForCausalLM": ((0,), (1,)),
    "WhisperForConditionalGeneration": ((0,), (1,)),
    "SmolVLMForConditionalGeneration": ((0,), (1,)),
    "Idefics3ForConditionalGeneration": ((0,), (1,)),
    "AriaForConditionalGeneration": ((0,), (1,)),
    "NemotronH_Nano_VL_V2": ((0,), (1,)),
    "PaddleOCRVLForConditionalGeneration": ((0,), (1,)),
}
"""Classes without `SupportsPP`, and in which releases."""


@rule(
    "LR985",
    "error",
    "pp_unsupported_arch",
    "the model cannot be split into pipeline stages",
    outcome="refused_at_start",
)
def pp_unsupported_arch(written: WrittenCommand) -> Iterator[Diagnosis]:
    """Its class does not know where a stage ends."""
    model, stages = written.model, written.number("--pipeline-parallel-size")
    if model is None or stages is None or stages < 2 or model.architecture not in _NO_PIPELINE:
        return
    first, last = _NO_PIPELINE[model.architecture]
    if not first <= written.release.number <= last:
        return
    yield Diagnosis(
        f"--pipeline-parallel-size {stages} is not possible for {model.architecture}",
        f"vLLM {written.release.version} stops: 'Pipeline parallelism is not supported for this model. Supported models implement "
        "the `SupportsPP` interface.'",
        "use --tensor-parallel-size instead",
        edit=remove_flag("--pipeline-parallel-size"),
    )


_RUNNER_V2: tuple[tuple[tuple[int, ...], tuple[str, ...]], ...] = (
    ((0, 22), ("Qwen3ForCausalLM",)),
    ((0, 23), ("Qwen3ForCausalLM", "LlamaForCausalLM", "MistralForCausalLM")),
    (
        (0, 24),
        (
            "Qwen3ForCausalLM",
            "LlamaForCausalLM",
            "MistralForCausalLM",
            "DeepseekV2ForCausalLM",
            "Qwen2MoeForCausalLM",
            "GraniteMoeForCausalLM",
        ),
    ),
    ((0, 25), ("DeepseekV2ForCausalLM", "Qwen2MoeForCausalLM", "GraniteMoeForCausalLM")),
)
_DENSE_ON_V2_SINCE = (0, 25)


@rule(
    "LR986",
    "warning",
    "cpu_offload_ignored_v2_runner",
    "weights are not offloaded under model runner V2",
    first="0.22.0",
    last="0.27.1",
    outcome="no_effect",
)
def cpu_offload_ignored_v2_runner(written: WrittenCommand) -> Iterator[Diagnosis]:
    """The V2 runner installs no weight offloader until 0.28."""
    size, model = written.value("--cpu-offload-gb"), written.model
    if size in (None, "0") or written.variable("VLLM_USE_V2_MODEL_RUNNER") == "0" or not _runs_on_v2(written, model):
        return
    yield Diagnosis(
        f"--cpu-offload-gb {size} does nothing under model runner V2",
        f"vLLM {written.release.version} takes that runner for {model.architecture if model is not None else 'this model'}, and "
        "it has no weight offloader before 0.28: all weights go to the GPU, without a message",
        "set VLLM_USE_V2_MODEL_RUNNER=0, or use vLLM 0.28 or later",
    )


def _runs_on_v2(written: WrittenCommand, model: ModelSpec | None) -> bool:
    number = written.release.number
    if written.variable("VLLM_USE_V2_MODEL_RUNNER") == "1":
        return True
    if model is None:
        return False
    if number >= _DENSE_ON_V2_SINCE and not (model.is_moe or model.is_hybrid or model.is_multimodal):
        return True
    listed = [names for since, names in _RUNNER_V2 if number >= since]
    return bool(listed) and model.architecture in listed[-1]


RULES: tuple[CommandRule, ...] = (
    expert_parallel_without_experts,
    float16_not_supported,
    remote_code_not_trusted,
    pp_unsupported_arch,
    cpu_offload_ignored_v2_runner,
)
