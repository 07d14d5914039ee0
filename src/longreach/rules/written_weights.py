"""How a foreign command loads and spreads the weights: LR137, LR138, LR980 to LR986, LR999. Pure."""

import re
from collections.abc import Iterator, Mapping

from longreach.model.spec import ModelSpec
from longreach.rules.edit import remove_flag
from longreach.rules.rule import Diagnosis, rule
from longreach.rules.written import CommandRule, WrittenCommand

_FLAG = "--quantization"

_ALSO_TAKES: Mapping[str, frozenset[str]] = {
    "compressed-tensors": frozenset(),
    "bitsandbytes": frozenset(),
    "fbgemm_fp8": frozenset(),
    "fp8": frozenset(("deepseek_v4_fp8",)),
    "modelopt": frozenset(("modelopt_fp4", "modelopt_mxfp8", "modelopt_mixed", "petit_nvfp4", "nvfp4")),
    "mxfp4": frozenset(("gpt_oss_mxfp4", "quark")),
    "awq": frozenset(("awq_marlin", "auto_awq", "moe_wna16", "ipex", "cpu_awq")),
    "gptq": frozenset(
        ("gptq_marlin", "auto_gptq", "moe_wna16", "marlin", "gptq_bitblas", "gptq_marlin_24", "ipex", "cpu_gptq")
    ),
}
"""Names of `--quantization` that a checkpoint of this method accepts beside its own; a method that is no key is not judged."""

_TAKES_OVER = (
    "humming",
    "inc",
    "auto_round",
    "auto-round",
)  # names that replace, or are replaced by, whatever the checkpoint says

_NAMED = re.compile(r"gptq|awq|nvfp4|mxfp4|fp8|w4a16|w8a8|w4a8|int4|int8|4bit|8bit|quantized", re.IGNORECASE)
_COMPRESSED_TENSORS_PUBLISHERS = ("redhatai/", "neuralmagic/", "nm-testing/")
_COMPRESSED_TENSORS_FORMS = re.compile(r"nvfp4|w4a16|w8a8|fp8|quantized", re.IGNORECASE)

_PUBLISHED_METHODS = (
    (re.compile(r"qwen/.*-fp8"), "fp8"),
    (re.compile(r"qwen/.*-awq"), "awq"),
    (re.compile(r"qwen/.*-gptq-int[48]"), "gptq"),
)


@rule(
    "LR980",
    "error",
    "quantization_mismatch",
    "--quantization names another method than the checkpoint",
    outcome="refused_at_start",
)
def quantization_mismatch(written: WrittenCommand) -> Iterator[Diagnosis]:
    """A few methods take a checkpoint of another over; all others are refused."""
    asked, own = written.value(_FLAG), _own_method(written.model) or _published_method(written)
    if asked is None or own is None or own not in _ALSO_TAKES:
        return
    if asked == own or asked in _ALSO_TAKES[own] or asked in _TAKES_OVER or asked == "gguf":
        return
    yield Diagnosis(
        f"{_FLAG} {asked} does not match the checkpoint's own {own}",
        f"vLLM stops: 'Quantization method specified in the model config ({own}) does not match the quantization method specified "
        f"in the `quantization` argument ({asked})'",
        f"leave {_FLAG} out: vLLM reads the method from the checkpoint",
        edit=remove_flag(_FLAG),
    )


def _published_method(written: WrittenCommand) -> str | None:
    """What a publisher's naming tells for sure."""
    name = (written.parsed.model or "").lower()
    return next((method for form, method in _PUBLISHED_METHODS if form.fullmatch(name)), None)


def _own_method(model: ModelSpec | None) -> str | None:
    method = model.weights.quant_method if model is not None else None
    return None if method is None else method.lower().replace("compressed_tensors", "compressed-tensors")


@rule(
    "LR981",
    "warning",
    "quantization_contradicts_name",
    "--quantization can only contradict a checkpoint that says its method",
    outcome="refused_at_start",
)
def quantization_contradicts_name(written: WrittenCommand) -> Iterator[Diagnosis]:
    """The name tells that the checkpoint is quantized, its config is not known, and the flag names one kernel or another tool."""
    asked, name = written.value(_FLAG), written.parsed.model or written.value("--model") or ""
    own = _own_method(written.model) or _published_method(written)
    if asked is None or own is not None or not _NAMED.search(name.rpartition("/")[2]):
        return
    published = name.lower().startswith(_COMPRESSED_TENSORS_PUBLISHERS) or any(
        f"/{publisher}" in name.lower() for publisher in _COMPRESSED_TENSORS_PUBLISHERS
    )
    if published and asked != "compressed-tensors" and _COMPRESSED_TENSORS_FORMS.search(name):
        why = "this publisher's checkpoints are compressed-tensors, and vLLM refuses another name"
    elif (form := _contradicted_form(name.rpartition("/")[2], asked)) is not None:
        why = f"the name says {form}, and {asked} reads no such checkpoint"
    elif asked.endswith("marlin"):
        why = f"{asked} is one kernel: where the checkpoint or the card does not suit it, vLLM refuses instead of taking another"
    else:
        return
    yield Diagnosis(
        f"{_FLAG} {asked} beside '{name}', which says its method itself",
        f"{why}: 'Quantization method specified in the model config (...) does not match ... ({asked})'",
        f"leave {_FLAG} out: vLLM reads the method from the checkpoint and picks the best kernel",
        edit=remove_flag(_FLAG),
    )


_COMMON = frozenset(("compressed-tensors", "quark", "torchao", "gguf", *_TAKES_OVER))
_BY_NAME: Mapping[str, frozenset[str]] = {
    "nvfp4": frozenset(("modelopt", "modelopt_fp4", "modelopt_mixed", "petit_nvfp4", "nvfp4", "fp_quant")),
    "mxfp4": frozenset(("mxfp4", "gpt_oss_mxfp4", "modelopt")),
    "awq": frozenset(("awq", *_ALSO_TAKES["awq"])),
    "gptq": frozenset(("gptq", *_ALSO_TAKES["gptq"])),
    "fp8": frozenset(("fp8", "fbgemm_fp8", "modelopt", "ptpc_fp8", "deepseek_v4_fp8")),
}
"""What a checkpoint may be read by whose name ends in, or holds, one of these forms."""


def _contradicted_form(name: str, asked: str) -> str | None:
    """The one form that a name says, where the flag's method reads none of that form."""
    said = [form for form in _BY_NAME if re.search(rf"(?:^|[-_.]){form}(?:$|[-_.])", name, re.IGNORECASE)]
    if len(said) != 1 or asked in _BY_NAME[said[0]] or asked in _COMMON:
        return None
    return said[0].upper()


@rule(
    "LR982",
    "warning",
    "gguf_beside_quantized_config",
    "a GGUF file is read with the config of a quantized model",
    outcome="refused_at_start",
    last="0.23.0",
)
def gguf_beside_quantized_config(written: WrittenCommand) -> Iterator[Diagnosis]:
    """Without a config of its own, the original's is taken, quantization_config included."""
    name = written.parsed.model or written.value("--model") or ""
    if not name.lower().endswith(".gguf") or written.parsed.named("--hf-config-path"):
        return
    if (
        re.search(r"deepseek[-_.]?(r1|v3)|kimi[-_.]?k2", name, re.IGNORECASE) is None
        and _own_method(written.model) != "fp8"
    ):
        return
    yield Diagnosis(
        f"'{name.rpartition('/')[2]}' is read with the config of its original, which says fp8",
        "vLLM then stops: 'Quantization method specified in the model config (fp8) does not match the quantization method "
        "specified in the `quantization` argument (gguf)'",
        "give --hf-config-path a folder whose config.json has no quantization_config",
    )


_NEEDS: Mapping[str, tuple[tuple[tuple[int, ...], int], ...]] = {
    "fp8": (((0,), 80), ((0, 14), 75)),
    "fbgemm_fp8": (((0,), 80),),
    "experts_int8": (((0,), 80),),
    "awq": (((0,), 75),),
    "awq_marlin": (((0,), 80), ((0, 14), 75)),
    "gptq_marlin": (((0,), 80), ((0, 14), 75)),
    "bitsandbytes": (((0,), 70),),
    "mxfp4": (((0,), 80),),
    "modelopt_fp4": (((0,), 80), ((0, 14), 75)),
    "nvfp4": (((0,), 80), ((0, 14), 75)),
    "torchao": (((0,), 75),),
}
"""Least compute capability of a method, from which release on."""


@rule(
    "LR983",
    "error",
    "quantization_needs_newer_gpu",
    "the quantization needs a newer GPU",
    outcome="refused_at_start",
)
def quantization_needs_newer_gpu(written: WrittenCommand) -> Iterator[Diagnosis]:
    """Each method states the least compute capability of its kernels."""
    gpu = written.machine.gpu if written.machine is not None else None
    method = written.value(_FLAG) or _own_method(written.model) or _form(written.model)
    if gpu is None or gpu.vendor != "NVIDIA" or method is None or method not in _NEEDS:
        return
    needed = [least for since, least in _NEEDS[method] if written.release.number >= since][-1]
    capability = int(gpu.compute_capability.replace(".", ""))
    if capability >= needed:
        return
    yield Diagnosis(
        f"{method} weights are not supported on {gpu.name}",
        f"vLLM {written.release.version} stops: 'The quantization method {method} is not supported for the current GPU. Minimum "
        f"capability: {needed}. Current capability: {capability}'",
        "take a checkpoint in another form (GPTQ runs from 6.0 on), or a newer card",
    )


def _form(model: ModelSpec | None) -> str | None:
    """The published form, where the method itself is not known: only those whose every method needs as much."""
    form = model.weights.quantization if model is not None else None
    return form if form in ("fp8", "nvfp4", "mxfp4") else None


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


@rule(
    "LR999",
    "error",
    "kernel_needs_float16",
    "the quantization kernel computes in float16 only",
    last="0.23.0",
    outcome="refused_at_start",
)
def kernel_needs_float16(written: WrittenCommand) -> Iterator[Diagnosis]:
    """Asked for by name, the plain AWQ and GPTQ kernels are taken instead of Marlin's."""
    asked, dtype = written.value(_FLAG), written.value("--dtype")
    if dtype != "bfloat16" or asked not in ("awq", "gptq") or (asked == "gptq" and written.release.number >= (0, 22)):
        return
    if "round" in (written.parsed.model or "").lower():  # AutoRound's own reader takes its checkpoints under any name
        return
    yield Diagnosis(
        f"--dtype bfloat16 does not go with {_FLAG} {asked}",
        f"vLLM stops: 'torch.bfloat16 is not supported for quantization method {asked}. Supported dtypes: [torch.float16]'; by "
        "name the plain kernel is forced, Marlin's computes in both",
        f"leave {_FLAG} out, or set --dtype float16",
        edit=remove_flag(_FLAG),
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
    quantization_mismatch,
    quantization_contradicts_name,
    gguf_beside_quantized_config,
    quantization_needs_newer_gpu,
    expert_parallel_without_experts,
    kernel_needs_float16,
    float16_not_supported,
    remote_code_not_trusted,
    pp_unsupported_arch,
    cpu_offload_ignored_v2_runner,
)
