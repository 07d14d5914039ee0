"""Which catalogue model a path or a derived checkpoint's name means: `/models/Qwen3-32B-AWQ/` is qwen3-32b in four bits. Pure."""

import re
from functools import cache

from longreach.model.catalogue import CatalogueMatch, catalogue_names, checkpoint_names, find_catalogue_model
from longreach.model.spec import QuantizationName

# Endings that tell how the weights are stored, longest first where one ends another.
_STORED: tuple[tuple[str, QuantizationName | None], ...] = (
    (r"(gptq|awq|auto-?round|bnb|unsloth-bnb)?-?(int4|4bit|w4a16)(-(gptq|awq|auto-?round|mixed))?", "w4a16"),
    (r"gptq|awq|auto-?round", "w4a16"),
    (r"(quantized\.)?(w8a8|int8)(-int8)?", "w8a8-int8"),
    (r"w8a8-fp8|fp8(-block|-dynamic|-kv)?", "fp8"),
    (r"w4a8(-int8)?", "w4a8-int8"),
    (r"nvfp4(-\d+g)?", "nvfp4"),
    (r"mxfp4", "mxfp4"),
    (r"(w8a8-)?mxfp8", "other"),
    (
        r"(ud-)?i?q[1-8](-[0-9k]|-xx?s|-[sml]|-nl|-xl|-gguf)*|gguf",
        "other",
    ),  # GGUF: about as many bits as the figure says
)
# Endings that change neither shape nor size of the weights.
_SAME = re.compile(
    r"[-.](instruct|it|chat|base|pt|think|thinking|reasoning|hf|bf16|fp16|f16|dynamic|qat|preview|text|v\d\.\d|\d{4}|\d{6}|\d{8})$"
)
_JOINED, _SPLIT = re.compile(r"^([a-z]+)(\d)"), re.compile(r"^([a-z]+)-(\d)")  # llama3-8b, qwen-2.5-7b
_PREFIXES = ("meta-", "mistralai-", "nvidia-", "google-", "qwen-")
_FOLDERS = frozenset(("model", "models", "full", "main", "snapshots", "latest", "weights", "hf"))
_CACHED = re.compile(r"models--[\w.-]+?--(.+)")


def recognise_model(reference: str) -> CatalogueMatch | None:
    """The catalogue model that a name or path means; None when no part of it names one.

    Right about the shape (layers, heads, lengths); the quantization is read from the name's ending, None where it tells nothing.
    """
    exact = find_catalogue_model(reference)
    if exact is not None:
        return exact
    parts = [part for part in re.split(r"[/\\]", reference.strip().lower()) if part and part not in _FOLDERS]
    return next((match for part in reversed(parts) if (match := _recognise_part(part)) is not None), None)


def _recognise_part(part: str) -> CatalogueMatch | None:
    cached = _CACHED.fullmatch(part)
    name, _, tag = (cached[1] if cached else part).partition(":")  # vLLM: REPOSITORY:Q4_K_M picks a GGUF file
    name = f"{name.removesuffix('.gguf')}-{tag}".replace("_", "-").removesuffix("-")
    stored: QuantizationName | None = None
    while name:
        match = _known(name)
        if match is not None:
            return CatalogueMatch(match.name, stored or match.quantization)
        shorter, form = _without_ending(name)
        if shorter == name:
            shorter = next((name.removeprefix(prefix) for prefix in _PREFIXES if name.startswith(prefix)), "")
        name, stored = shorter, stored or form
    return None


def _known(name: str) -> CatalogueMatch | None:
    for spelling in (name, _JOINED.sub(r"\1-\2", name), _SPLIT.sub(r"\1\2", name)):
        if spelling in _names():
            return CatalogueMatch(spelling, None)
        repository = _repositories().get(spelling)
        if repository is not None:
            return find_catalogue_model(repository)
    return None


def _without_ending(name: str) -> tuple[str, QuantizationName | None]:
    for pattern, form in _STORED:
        shorter = re.sub(rf"[-.](?:{pattern})$", "", name)
        if shorter != name:
            return shorter, form
    return _SAME.sub("", name), None


@cache
def _names() -> frozenset[str]:
    return frozenset(catalogue_names())


@cache
def _repositories() -> dict[str, str]:
    """Published checkpoints by the last part of their name."""
    return {repository.rpartition("/")[2].replace("_", "-"): repository for repository in checkpoint_names()}
