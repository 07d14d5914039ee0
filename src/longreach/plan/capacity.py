"""How much KV cache an instance gets and what it holds. Neither more bytes than surely fit nor a narrower dtype is taken
unless the goal needs it.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

from longreach.engine.defaults import device_defaults
from longreach.engine.release import Release
from longreach.errors import UnknownModelError, UsageError
from longreach.hardware.spec import Machine
from longreach.model.spec import ModelSpec
from longreach.plan.extra import Extra
from longreach.plan.goal import Goal
from longreach.plan.settle import Settled
from longreach.plan.values import Choice
from longreach.sizing.kernels import kernel_block_sizes, prefills_on_flashinfer
from longreach.sizing.kv_cache import concurrency_at, size_kv_cache
from longreach.sizing.memory import MemoryRequest, budget_memory
from longreach.sizing.values import KvCacheRequest, KvCapacity, MemoryBudget, RopePlan
from longreach.units import GIB, MIB, format_bytes, format_room, round_up

_STEP_BYTES = 256 * MIB  # chosen KV sizes are whole steps: people read and compare them


@dataclass(frozen=True, slots=True)
class Fit:
    """The KV side of one instance. `capacity` is None when the KV memory is not known.

    `serves`: length and concurrency are met; `is_sure`: by bytes that are there whatever activations take; `is_narrow`: only
    with a narrower KV dtype than the model's own.
    """

    request: KvCacheRequest | None
    capacity: KvCapacity | None
    memory: MemoryBudget
    kv_cache_dtype: str
    kv_cache_memory_bytes: int | None  # to render; None when --gpu-memory-utilization decides
    choices: tuple[Choice, ...]
    serves: bool = False
    is_sure: bool = False
    is_narrow: bool = False

    @property
    def largest_max_model_len(self) -> int:
        """The longest request that starts, as far as the KV cache goes; 0: none."""
        return 0 if self.capacity is None else self.capacity.largest_max_model_len


@dataclass(frozen=True, slots=True)
class Setting:
    """What stays the same while KV bytes and dtype are tried."""

    model: ModelSpec
    machine: Machine
    release: Release
    goal: Goal
    settled: Settled
    rope: RopePlan
    extra: Extra

    @property
    def uses_mtp(self) -> bool:
        """The draft layers join the pool."""
        speculative = self.settled.speculative
        return speculative is not None and speculative.method == "mtp"

    @property
    def ipc_bytes(self) -> int:
        """Multimodal transfer memory, which vLLM takes out of the KV cache."""
        return int((self.goal.mm_ipc_gpu_memory_gb or 0) * GIB)


@dataclass(frozen=True, slots=True)
class _Try:
    """One way to lay out the cache, and why it would be taken."""

    kv_cache_dtype: str
    rendered_bytes: int | None
    request: KvCacheRequest
    capacity: KvCapacity
    why: str = ""
    is_sure: bool = True  # the bytes are there, whatever activations take


def fit_kv_cache(setting: Setting) -> Fit:
    """Count the KV cache of the first way that serves the goal, else of the one that comes nearest."""
    goal = setting.goal
    memory = _budget(setting, goal.kv_cache_memory_bytes)
    if memory.kv_bytes is None:
        return Fit(None, None, memory, goal.kv_cache_dtype or "auto", None, ())
    ways: list[_Try] = []
    for way in _ways(setting, memory, memory.kv_bytes):
        ways.append(way)
        if _serves(way, setting):
            taken, serves = way, True
            break
    else:
        taken, serves = _nearest(ways), False
    if goal.kv_cache_memory_bytes is None and taken.rendered_bytes is not None:
        memory = _budget(setting, taken.rendered_bytes)
    return Fit(
        request=taken.request,
        capacity=_labelled(taken, goal, memory),
        memory=memory,
        kv_cache_dtype=taken.kv_cache_dtype,
        kv_cache_memory_bytes=taken.rendered_bytes,
        choices=_choices(setting, taken, ways[0]),
        serves=serves and memory.fits is not False,
        is_sure=taken.is_sure and (memory.fits is True or memory.gpu_total_bytes is None),
        is_narrow=taken.kv_cache_dtype != ways[0].kv_cache_dtype,
    )


def _budget(setting: Setting, kv_cache_memory_bytes: int | None) -> MemoryBudget:
    settled = setting.settled
    return budget_memory(
        MemoryRequest(
            model=setting.model,
            machine=setting.machine,
            tp_size=settled.split.tp_size,
            pp_size=settled.split.pp_size,
            max_num_batched_tokens=settled.max_num_batched_tokens,
            max_num_seqs=settled.max_num_seqs,
            rope_table_bytes=setting.rope.table_bytes_per_gpu,
            gpu_memory_utilization=_share(setting),
            kv_cache_memory_bytes=kv_cache_memory_bytes,
            mm_ipc_gpu_memory_bytes=setting.ipc_bytes,
            use_draft_layers=setting.uses_mtp,
            release=setting.release,
            enforce_eager=setting.extra.enforce_eager,
            text_only=setting.extra.text_only,
        )
    )


def _share(setting: Setting) -> float:
    return setting.goal.gpu_memory_utilization or setting.release.default_gpu_memory_utilization


def _ways(setting: Setting, memory: MemoryBudget, kv_bytes: tuple[int, int]) -> Iterator[_Try]:
    """Sure bytes at each dtype first; then, where bytes may be chosen, as many as one request needs and the card may have."""
    goal, dtypes = setting.goal, _kv_cache_dtypes(setting.goal, setting.machine)
    low, high = kv_bytes
    if goal.kv_cache_memory_bytes is not None or goal.gpu_memory_utilization is not None:
        yield from _tries(setting, dtypes, max(low, 0), goal.kv_cache_memory_bytes)
        for way in _tries(setting, dtypes, max(high, 0)) if high > low else ():
            yield replace(way, is_sure=False)
        return
    sure = max((low + setting.ipc_bytes) // _STEP_BYTES * _STEP_BYTES, 0)
    why = f"what is surely left of the card beside weights and activations ({memory.kv_certainty}), in whole steps"
    needed: dict[str, int] = {}
    # vLLM takes no flag of zero bytes: where nothing is surely left, none is written.
    for way in _tries(setting, dtypes, max(sure - setting.ipc_bytes, 0), sure or None, why):
        needed[way.kv_cache_dtype] = way.capacity.needed_bytes_per_gpu
        yield way
    for dtype, needed_bytes in needed.items():
        rendered = round_up(needed_bytes + setting.ipc_bytes, _STEP_BYTES)
        if rendered - setting.ipc_bytes <= high:
            risk = "" if _budget(setting, rendered).fits else "; the start may run out of memory"
            left = format_room(low, high)
            why = f"what one request needs; {left} would be left at vLLM's own share of the card, {_share(setting):g}{risk}"
            yield replace(_try(setting, dtype, rendered - setting.ipc_bytes, rendered, why), is_sure=False)


def _tries(
    setting: Setting, dtypes: Sequence[str], available_bytes: int, rendered_bytes: int | None = None, why: str = ""
) -> Iterator[_Try]:
    """One for each dtype; a narrower one that is not modelled for these layers is no way."""
    for dtype in dtypes:
        try:
            yield _try(setting, dtype, available_bytes, rendered_bytes, why)
        except UnknownModelError:
            if dtype == dtypes[0]:
                raise


def _try(setting: Setting, dtype: str, available_bytes: int, rendered_bytes: int | None, why: str = "") -> _Try:
    request = _request(setting, dtype, available_bytes)
    return _Try(dtype, rendered_bytes, request, size_kv_cache(request), why)


def _request(setting: Setting, dtype: str, available_bytes: int) -> KvCacheRequest:
    model, machine, goal, settled = setting.model, setting.machine, setting.goal, setting.settled
    speculative = settled.speculative
    device = device_defaults(machine.device_type)
    assert device is not None, machine.device_type
    is_cpu = machine.device_type == "cpu"
    block_size, kernel_block_size = kernel_block_sizes(model, machine, device, dtype)
    _check_block_size(goal.block_size, kernel_block_size)
    return KvCacheRequest(
        model=model,
        release=setting.release,
        max_model_len=settled.max_model_len,
        available_bytes_per_gpu=available_bytes,
        tp_size=settled.split.tp_size,
        pp_size=settled.split.pp_size,
        dcp_size=settled.split.dcp_size,
        kv_cache_dtype=dtype,
        max_num_batched_tokens=settled.max_num_batched_tokens,
        num_speculative_tokens=speculative.num_speculative_tokens if speculative else 0,
        use_draft_layers=setting.uses_mtp,
        prefix_caching=goal.prefix_caching,
        async_scheduling=device.async_scheduling
        and setting.extra.async_scheduling
        and (speculative is None or speculative.method != "ngram"),
        hybrid_kv_cache_manager=setting.extra.hybrid_kv_cache_manager,
        has_kv_connector=goal.cpu_tier_bytes is not None or setting.extra.has_kv_connector,
        block_size=goal.block_size,
        default_block_size=block_size,
        min_kernel_block_size=kernel_block_size,
        force_fp32_state=is_cpu,
        gdn_flashinfer_prefill=prefills_on_flashinfer(model, machine.gpu),
        **setting.extra.cache_fields,
    )


def _check_block_size(block_size: int | None, kernel_block_size: int) -> None:
    if block_size is not None and block_size % kernel_block_size:
        raise UsageError(
            f"no attention kernel takes blocks of {block_size} tokens here",
            f"blocks must be multiples of {kernel_block_size} tokens",
            f"--block-size {round_up(block_size, kernel_block_size)}",
        )


def _kv_cache_dtypes(goal: Goal, machine: Machine) -> tuple[str, ...]:
    if goal.kv_cache_dtype is not None:
        return (goal.kv_cache_dtype,)
    has_fp8 = machine.gpu is not None and machine.gpu.fp8_support in ("native", "emulated")
    return ("auto", "fp8_e4m3") if has_fp8 else ("auto",)


def _serves(way: _Try, setting: Setting) -> bool:
    goal = setting.goal
    if not way.capacity.serves or goal.concurrency is None:
        return way.capacity.serves
    tokens = min(setting.settled.mean_input_tokens + (goal.mean_output_tokens or 0), way.request.max_model_len)
    return concurrency_at(way.request, tokens) * setting.settled.split.dp_size >= goal.concurrency


def _nearest(ways: Sequence[_Try]) -> _Try:
    """Nothing serves: one that starts before one that does not, bytes that are surely there before others, then the longest.
    A narrower dtype that gains nothing is not taken.
    """
    sure = [way for way in ways if way.is_sure]
    starting = [way for way in sure if way.capacity.serves] or [way for way in ways if way.capacity.serves]
    return max(starting or ways, key=lambda way: (way.capacity.largest_max_model_len, way.capacity.max_concurrency))


def _labelled(taken: _Try, goal: Goal, memory: MemoryBudget) -> KvCapacity:
    """Under a utilization share the bytes are a range, so the count can be no more than an estimate."""
    if goal.gpu_memory_utilization is None or memory.kv_bytes is None:
        return taken.capacity
    end = (
        "low end"
        if taken.is_sure
        else "high end" + (": at the low end it would not do" if taken.capacity.starts else "")
    )
    why = f"under --gpu-memory-utilization {format_room(*memory.kv_bytes)} is left to KV; counted at the {end}"
    return replace(taken.capacity, certainty="estimate", estimate_reason=why)


def _choices(setting: Setting, taken: _Try, first: _Try) -> tuple[Choice, ...]:
    goal, choices = setting.goal, []
    if taken.why and taken.rendered_bytes is not None:
        choices.append(Choice("--kv-cache-memory-bytes", format_bytes(taken.rendered_bytes), taken.why))
    if goal.kv_cache_dtype is None and taken.kv_cache_dtype != first.kv_cache_dtype:
        needed = format_bytes(first.capacity.needed_bytes_per_gpu)
        there = format_bytes(available) if (available := first.capacity.available_bytes_per_gpu) > 0 else "nothing"
        why = f"at the model's own dtype one request needs {needed} per GPU, and {there} is surely there"
        if first.capacity.starts and goal.concurrency is not None:
            why = f"at the model's own dtype fewer than the {goal.concurrency} wanted requests fit at once"
        why += "; stored with scale 1.0, maybe by another attention backend: compare answers (LR121, LR124)"
        choices.append(Choice("--kv-cache-dtype", taken.kv_cache_dtype, why))
    return tuple(choices)
