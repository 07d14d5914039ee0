"""What a `--speculative-config` says by itself: LR420 to LR424. Pure."""

from collections.abc import Iterator, Mapping

from longreach.engine.flag_values import write_value
from longreach.engine.parsing.parsed import is_open
from longreach.engine.registry import REGISTRY_VERSIONS, releases_with_name
from longreach.rules.edit import Edit, set_flag
from longreach.rules.rule import Diagnosis, rule
from longreach.rules.written import CommandRule, WrittenCommand, span_text
from longreach.units import nearest_name

_NAME_MARKERS = (("eagle-", "eagle"), ("eagle3", "eagle3"), ("dflash", "dflash"), ("dspark", "dspark"))
"""What vLLM looks for in the draft's path, in its order, and the method that it then takes."""

_NAMED_METHODS = frozenset(method for _, method in _NAME_MARKERS)  # given so, the path is not looked at
_WITHOUT_DRAFT_MODEL = frozenset(("ngram", "ngram_gpu", "suffix", "custom_class", "extract_hidden_states"))
_WITHOUT_PIPELINE = ("mtp", "medusa", "dflash", "dspark", "mlp_speculator")
"""Methods whose draft classes have no pipeline split (0.8.5 to 0.29.0); EAGLE's and plain drafts mostly do."""


def _method(spec: Mapping[str, object]) -> str | None:
    method = spec.get("method")
    return method if isinstance(method, str) and not is_open(method) else None


def _is_mtp(method: str | None) -> bool:
    return method is not None and (method == "mtp" or method.endswith("_mtp"))


def _with(spec: Mapping[str, object], **changes: object) -> Edit:
    merged = {**spec, **changes}
    return set_flag(
        "--speculative-config", write_value({key: item for key, item in merged.items() if item is not None})
    )


@rule("LR420", "warning", "spec_depth_missing", "the number of draft tokens is not given")
def spec_depth_missing(written: WrittenCommand) -> Iterator[Diagnosis]:
    """The depth then comes from the draft's own config, where that tells it."""
    spec = written.speculative
    if spec is None or "num_speculative_tokens" in spec or written.parsed.value("--spec-tokens") is not None:
        return
    method = _method(spec)
    if not _is_mtp(method) and spec.get("model") is None:
        return
    yield Diagnosis(
        f"num_speculative_tokens is not given for {method or 'the draft model'!r}",
        "vLLM takes it from the draft's config (n_predict); where that does not say, or says it in a nested text config, it "
        "refuses to start",
        '"num_speculative_tokens": 1, or what the model card recommends',
        edit=_with(spec, num_speculative_tokens=1),
    )


@rule(
    "LR421",
    "error",
    "pp_with_spec",
    "this kind of draft does not go with pipeline parallelism",
    outcome="refused_at_start",
    last="0.29.0",
)
def pp_with_spec(written: WrittenCommand) -> Iterator[Diagnosis]:
    """Up to 0.29 the draft inherits the pipeline size, and its class must be able to split; from 0.30 its size is 1."""
    spec, stages = written.speculative, written.options.pipeline_parallel_size
    if spec is None or stages < 2:
        return
    method = _method(spec)
    if not _is_mtp(method) and method not in _WITHOUT_PIPELINE:
        return
    yield Diagnosis(
        f"--pipeline-parallel-size {stages} stands beside speculation by {method}",
        f"up to 0.29.0 the draft takes the same {stages} stages, and {method} drafts have no pipeline split: "
        "'Pipeline parallelism is not supported for this model'",
        f"--tensor-parallel-size {stages * written.options.tensor_parallel_size} without pipeline stages, vLLM 0.30.0 or "
        "later, or no --speculative-config",
    )


@rule(
    "LR422",
    "error",
    "path_name_switches_method",
    "the model's path makes vLLM take another draft method",
    outcome="refused_at_start",
)
def path_name_switches_method(written: WrittenCommand) -> Iterator[Diagnosis]:
    """Methods are told by words in the draft's path, the target's own for MTP, whatever method is given."""
    spec = written.speculative
    method = None if spec is None else _method(spec)
    if spec is None or method is None or method in _NAMED_METHODS | _WITHOUT_DRAFT_MODEL:
        return
    path = spec.get("model") or (written.parsed.model if _is_mtp(method) else None)
    if not isinstance(path, str) or is_open(path):
        return
    found = next(((mark, taken) for mark, taken in _NAME_MARKERS if mark in path.lower()), None)
    if found is None or found[1] not in written.registry.names("spec_method"):
        return
    yield Diagnosis(
        f"the path {path!r} makes vLLM draft by {found[1]}, not {method}",
        f"vLLM looks for {found[0]!r} in the draft's path before it looks at the method",
        f"rename or link the folder so that its path does not contain {found[0]!r}",
    )


@rule(
    "LR423",
    "error",
    "spec_tp_misspelled",
    "the draft's tensor parallel size has a name of its own",
    outcome="refused_at_start",
    first="0.16.0",
)
def spec_tp_misspelled(written: WrittenCommand) -> Iterator[Diagnosis]:
    """`tensor_parallel_size` is a key that is there only to be refused."""
    spec = written.speculative
    if spec is None or spec.get("tensor_parallel_size") is None:
        return
    size = spec["tensor_parallel_size"]
    yield Diagnosis(
        f"tensor_parallel_size {size} stands in --speculative-config",
        "vLLM refuses the key: the draft's own size is draft_tensor_parallel_size",
        f'"draft_tensor_parallel_size": {size}',
        edit=_with(spec, tensor_parallel_size=None, draft_tensor_parallel_size=size),
    )


@rule("LR424", "advice", "spec_method_renamed", "the draft method has a newer name", first="0.11.0")
def spec_method_renamed(written: WrittenCommand) -> Iterator[Diagnosis]:
    """Model-specific MTP names still work, with a warning in the log."""
    spec = written.speculative
    method = None if spec is None else _method(spec)
    if spec is None or method == "mtp" or not _is_mtp(method) or "mtp" not in written.registry.names("spec_method"):
        return
    yield Diagnosis(
        f"method {method!r} is the older name of 'mtp'",
        f"vLLM {written.release.version} takes both and warns of the older one",
        '"method": "mtp"',
        edit=_with(spec, method="mtp"),
    )


@rule(
    "LR968",
    "error",
    "unknown_spec_method",
    "the release has no draft method of this name",
    outcome="refused_at_start",
    first="0.9.2",
)
def unknown_spec_method(written: WrittenCommand) -> Iterator[Diagnosis]:
    """A method is one of a list; new ones come with most releases."""
    spec = written.speculative
    method = None if spec is None else _method(spec)
    known = written.registry.names("spec_method")
    if spec is None or method is None or not known or method in known:
        return
    releases = releases_with_name("spec_method", method)
    near = nearest_name(method, sorted(known)) if not releases else None
    has = f"it exists {span_text(releases, REGISTRY_VERSIONS[-1])}; " if releases else ""
    yield Diagnosis(
        f"draft method {method!r} is not known to vLLM {written.release.version}",
        f"{has}this release has {len(known)} methods, among them {', '.join(sorted(known)[:6])}",
        f'"method": "{near}"' if near else f"vLLM {releases[0]} or later" if releases else "name one of those methods",
        edit=_with(spec, method=near) if near else None,
    )


@rule(
    "LR969",
    "error",
    "spec_method_missing",
    "the draft has neither a method nor a model",
    outcome="refused_at_start",
    first="0.11.0",
)
def spec_method_missing(written: WrittenCommand) -> Iterator[Diagnosis]:
    """Before 0.11 models with MTP layers took them by themselves."""
    spec = written.speculative
    flags = any(written.parsed.value(flag) is not None for flag in ("--spec-method", "--spec-model"))
    if not spec or flags or spec.get("method") is not None or spec.get("model") is not None:
        return
    yield Diagnosis(
        "--speculative-config names neither a method nor a model",
        f"vLLM {written.release.version} refuses: num_speculative_tokens was provided without a speculative model",
        '"method": "mtp" for a model with MTP layers, "ngram", or a "model" that drafts',
    )


_OLD_FLAGS = ("--speculative-model", "--num-speculative-tokens")


@rule(
    "LR429",
    "error",
    "pp_with_old_spec_flags",
    "releases that had these flags refuse speculation with pipeline stages",
    outcome="refused_at_start",
)
def pp_with_old_spec_flags(written: WrittenCommand) -> Iterator[Diagnosis]:
    """Releases before 0.8.5 had the flags, and one engine without pipeline stages for drafts."""
    stages = written.options.pipeline_parallel_size
    old = next((use for use in written.parsed.uses if use.entry is None and use.spelling in _OLD_FLAGS), None)
    if stages < 2 or old is None:
        return
    yield Diagnosis(
        f"{old.spelling} stands beside --pipeline-parallel-size {stages}",
        "releases before 0.8.5, which had the flag, stop with 'Speculative decoding is not supported with pipeline parallelism'",
        f"--tensor-parallel-size {stages * written.options.tensor_parallel_size} without pipeline stages, and --speculative-config",
    )


RULES: tuple[CommandRule, ...] = (
    unknown_spec_method,
    spec_method_missing,
    pp_with_old_spec_flags,
    spec_depth_missing,
    pp_with_spec,
    path_name_switches_method,
    spec_tp_misspelled,
    spec_method_renamed,
)
