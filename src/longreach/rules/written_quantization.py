"""What a foreign command says of the form of the weights: LR980, LR981, LR982, LR983, LR999. Pure."""

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


RULES: tuple[CommandRule, ...] = (
    quantization_mismatch,
    quantization_contradicts_name,
    gguf_beside_quantized_config,
    quantization_needs_newer_gpu,
    kernel_needs_float16,
)
