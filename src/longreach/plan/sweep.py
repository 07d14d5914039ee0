"""A table of plans: what each combination of settings holds and how fast it is, and which of them nothing beats. Pure."""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from math import inf

from longreach.engine.release import RELEASES
from longreach.errors import LongreachError
from longreach.forecast.values import Span
from longreach.hardware.spec import Machine
from longreach.model.catalogue import find_catalogue_model, with_quantization
from longreach.model.spec import IndexerLayer, ModelSpec, QuantizationName
from longreach.plan.changes import typed_name
from longreach.plan.goal import Goal
from longreach.plan.request_time import middle
from longreach.plan.values import Plan, Verdict

_LENGTHS = tuple(2**power for power in range(15, 21))
_CHUNKS = ("2048", "4096", "8192", "16384")
_GPU_COUNTS = (1, 2, 4, 8)
_FORMS: tuple[QuantizationName, ...] = ("fp8", "w4a16", "nvfp4", "mxfp4")


@dataclass(frozen=True, slots=True)
class SweepRow:
    """One combination, planned. Speed is of one prompt of `max_model_len` tokens; `concurrency` is at the mean prompt, over all
    data-parallel engines.
    """

    settings: dict[str, str]  # as an option takes them
    verdict: Verdict | str  # "impossible": no such combination
    reason: str  # why it does not fit, or what is not sure
    max_model_len: int | None = None
    kv_capacity_tokens: int | None = None
    concurrency: float | None = None
    ttft_cold_s: Span | None = None
    decode_tokens_per_s: Span | None = None
    num_gpus: int | None = None  # of the machine
    argv: tuple[str, ...] = ()
    pareto: bool = False


def row_of(settings: dict[str, str], plan: Plan) -> SweepRow:
    """The figures of a plan of one instance."""
    instance = plan.instances[0]
    cache, figures, speed = instance.kv_cache, instance.concurrency_at_mean_input, instance.speed[0]
    at_once = None if figures is None or figures.gpu is None else figures.gpu * instance.options.data_parallel_size
    starts = cache is not None and cache.serves
    return SweepRow(
        settings=settings,
        verdict=plan.verdict,
        reason=_reason(plan),
        max_model_len=instance.max_model_len,
        kv_capacity_tokens=cache.kv_capacity_tokens if cache is not None and starts else None,
        concurrency=at_once if starts else None,
        ttft_cold_s=speed.ttft_cold_s,
        decode_tokens_per_s=speed.decode_tokens_per_s,
        num_gpus=plan.machine.num_gpus,
        argv=instance.argv,
    )


def impossible_row(settings: dict[str, str], error: LongreachError) -> SweepRow:
    """A combination that cannot be planned, with the reason."""
    return SweepRow(settings, "impossible", error.what)


def _reason(plan: Plan) -> str:
    grave = [finding for finding in plan.findings if finding.severity == "error"]
    unsure = [finding for finding in plan.findings if finding.cause in ("memory_cannot_tell", "concurrency_not_met")]
    return next((finding.what for finding in (*grave, *unsure)), "")


def with_front(rows: Sequence[SweepRow]) -> tuple[SweepRow, ...]:
    """The rows with those marked that fit and that no other row beats: as long, as many at once, as fast, on as few GPUs."""
    scores = [_scores(row) for row in rows]
    fitting = [score for score in scores if score is not None]
    return tuple(
        replace(row, pareto=score is not None and not any(_beats(other, score) for other in fitting))
        for row, score in zip(rows, scores, strict=True)
    )


def _scores(row: SweepRow) -> tuple[float, ...] | None:
    """More is better; None where it does not fit."""
    if row.verdict != "fits":
        return None
    ttft = middle(row.ttft_cold_s) if row.ttft_cold_s else None
    decode = middle(row.decode_tokens_per_s) if row.decode_tokens_per_s else None
    return (
        row.max_model_len or 0,
        row.concurrency or 0,
        -(inf if ttft is None else ttft),
        decode or 0,
        -(row.num_gpus or 0),
    )


def _beats(score: tuple[float, ...], other: tuple[float, ...]) -> bool:
    return score != other and all(mine >= theirs for mine, theirs in zip(score, other, strict=True))


def default_values(name: str, model: ModelSpec, machine: Machine, goal: Goal) -> tuple[str, ...]:
    """What a sweep over `name` goes through when no values are given; empty where no list makes sense by itself."""
    values = _DEFAULT_VALUES.get(name)
    return () if values is None else tuple(values(model, machine, goal))


def _sizes(_model: ModelSpec, machine: Machine, _goal: Goal) -> Iterator[str]:
    size = 1
    while size <= max(machine.num_gpus, 1):
        yield str(size)
        size *= 2


def _kv_cache_dtypes(_model: ModelSpec, machine: Machine, _goal: Goal) -> Iterator[str]:
    yield "auto"
    if machine.gpu is not None and machine.gpu.fp8_support in ("native", "emulated"):
        yield "fp8_e4m3"
    if machine.gpu is not None and machine.gpu.fp4_flops is not None:
        yield "nvfp4"


def _lengths(model: ModelSpec, _machine: Machine, goal: Goal) -> Iterator[str]:
    """Powers of two up to what was asked, else to what the publisher of the model names."""
    native = model.native_context_tokens or model.max_position_embeddings
    target = model.yarn.target_tokens if model.yarn is not None else None
    longest = goal.max_model_len or max(native, target or 0)
    yield from (str(length) for length in _LENGTHS if length < longest)
    yield str(longest)


def _drafts(model: ModelSpec, _machine: Machine, _goal: Goal) -> Iterator[str]:
    yield "none"
    layers = sum(not isinstance(layer, IndexerLayer) for layer in model.draft_layers)
    if layers and model.mtp_supported:
        yield from dict.fromkeys((f"mtp:{layers}", f"mtp:{3 * layers}"))


def _weights(model: ModelSpec, _machine: Machine, _goal: Goal) -> Iterator[str]:
    """The model's own form, then the published ones."""
    own = model.weights.quantization
    yield "bf16" if own == "none" else own
    if model.hf_id is not None and find_catalogue_model(model.name) is not None:
        for form in _FORMS:
            if form != own and with_quantization(model, model.name, form).weights.checkpoint is not None:
                yield form


def _gpus(_model: ModelSpec, machine: Machine, _goal: Goal) -> Iterator[str]:
    if machine.gpu is not None:
        yield from (f"{count}x{typed_name(machine.gpu)}" for count in _GPU_COUNTS)


_Values = Callable[[ModelSpec, Machine, Goal], Iterable[str]]
_DEFAULT_VALUES: Mapping[str, _Values] = {
    "tp": _sizes,
    "pp": _sizes,
    "dp": _sizes,
    "dcp": _sizes,
    "kv-cache-dtype": _kv_cache_dtypes,
    "max-model-len": _lengths,
    "max-num-batched-tokens": lambda _model, _machine, _goal: _CHUNKS,
    "spec": _drafts,
    "weights": _weights,
    "vllm": lambda _model, _machine, _goal: (release.version for release in RELEASES),
    "gpus": _gpus,
}
