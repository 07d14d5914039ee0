"""How large a workload must be before tiers can show what they are worth. Pure.

A tier holds a copy of what the tiers before it hold, so it is asked for a prefix only when that has left them: the prompts must
be more than the GPUs hold, and within the CPU tier; a disk tier is asked for what has left the CPU tier, too. One workload
serves all variants:

    without a disk tier   all prompts three times over: every repeat comes after everything else
    with one              groups that fit the CPU tier and not the GPUs, twice over each; all groups together exceed the CPU tier,
                          and all of it comes twice: of four sends one is cold, two ask the CPU tier, one the disk
"""

from collections.abc import Iterator
from dataclasses import dataclass

from longreach.errors import UsageError
from longreach.measure.bench.statistics import MIN_SAMPLES
from longreach.measure.tiers.values import WorkloadSizing
from longreach.plan.values import InstancePlan, PlannedTier
from longreach.units import ceil_div, format_count, format_tokens, round_up

_OVERFLOW = 1.5  # distinct tokens per token of the GPU cache: no block survives until it is asked for again
_BEYOND_CPU = 1.25  # distinct tokens per token of the CPU tier, where the disk is to be asked
_FILL = {"exact": 0.8}  # of the CPU tier
_FILL_OF_A_BOUND = 0.6  # where its capacity is told as "at most"
_WORTHWHILE_RATIO = 2
_FEWEST_PROMPTS = MIN_SAMPLES  # an interval is over prompts
_PROMPTS_IN_GPU = 5  # of the default length: the fewest prompts then overflow it, too
_SENDS = 3
_PASSES = 2


@dataclass(frozen=True, slots=True)
class SizingWish:
    """What a workload is sized for. None: choose."""

    prompt_tokens: int | None = None
    num_prompts: int | None = None
    sends: int = _SENDS  # of each prompt; 1: nothing ever comes back
    is_shuffled: bool = False
    output_tokens: int = 16


def size_workload(instance: InstancePlan, wish: SizingWish) -> WorkloadSizing:
    """Prompts that overflow the GPU cache and ask each planned tier. UsageError where no size can be known."""
    gpu = _capacity(instance, "gpu")
    if gpu is None:
        raise UsageError(
            f"no workload can be sized for '{instance.name}'",
            "the plan does not say how many tokens the GPUs hold",
            "give the prompts yourself: --prompts N --input-tokens N, or --trace FILE",
        )
    has_disk = instance.options.offload is not None and instance.options.offload.disk_path is not None
    cpu = next((tier for tier in instance.tiers if tier.name == "cpu"), None)
    room = _Room(gpu, cpu, instance.options.data_parallel_size or 1, has_disk=has_disk and wish.sends > 1)
    return _sized(wish, _prompt_tokens(instance, wish, gpu), room)


@dataclass(frozen=True, slots=True)
class _Room:
    """What one replica holds, and how many there are."""

    gpu: int  # tokens
    cpu: PlannedTier | None
    num_replicas: int
    has_disk: bool  # and is to be asked

    @property
    def held(self) -> int | None:
        """Tokens that the CPU tier holds."""
        return None if self.cpu is None else self.cpu.capacity_tokens


def _sized(wish: SizingWish, tokens: int, room: _Room) -> WorkloadSizing:
    gpu, held = room.gpu * room.num_replicas, None if room.held is None else room.held * room.num_replicas
    group = max(ceil_div(round(_OVERFLOW * gpu), tokens), _FEWEST_PROMPTS)
    num_prompts, sends, passes = wish.num_prompts or group, wish.sends, 1
    if room.has_disk and held is not None:
        beyond = round_up(max(ceil_div(round(_BEYOND_CPU * held), tokens), group + 1), group)
        num_prompts, sends, passes = wish.num_prompts or beyond, ceil_div(wish.sends, _PASSES), _PASSES
    notes = (
        *_notes_on_room(group * tokens // room.num_replicas, room),
        *_notes_on_prompts(num_prompts, tokens, gpu, held if passes > 1 else None),
    )
    group = min(group, num_prompts) if passes > 1 else num_prompts
    return WorkloadSizing(tokens, num_prompts, group, sends, passes, room.gpu, room.held, wish.is_shuffled, notes)


def _notes_on_prompts(num_prompts: int, tokens: int, gpu: int, held: int | None) -> Iterator[str]:
    """Whether so many ask the CPU tier and, where `held` is told, the disk tier."""
    distinct, prompts = num_prompts * tokens, format_count(num_prompts, "prompt")
    overflows, exceeds = distinct >= _OVERFLOW * gpu, held is not None and distinct > held
    if overflows and exceeds:
        yield "every prompt comes again both when it has left the GPUs and when it has left the CPU tier"
    if not overflows:
        yield (
            f"{prompts} of {format_tokens(tokens)} tokens: the GPUs, which hold {format_tokens(gpu)}, may not overflow, and then "
            "no tier is asked"
        )
    if held is not None and not exceeds:
        yield f"{prompts} fit the CPU tier of {format_tokens(held)} tokens: the disk is hardly asked"


def _notes_on_room(distinct: int, room: _Room) -> Iterator[str]:
    yield from _notes(distinct, room.gpu, room.cpu)
    if room.num_replicas > 1:
        yield (
            f"the {room.num_replicas} replicas hold so much each, and the engine chooses which one gets a prompt: one that comes "
            "again may come to another, and then counts as cold"
        )


def _notes(distinct: int, gpu: int, cpu: PlannedTier | None) -> tuple[str, ...]:
    if cpu is None or cpu.capacity_tokens is None:
        return ("the plan does not say how much the CPU tier holds: whether the prompts fit it shows in its hits",)
    held = cpu.capacity_tokens
    if held < _WORTHWHILE_RATIO * gpu:
        copies = "it keeps a copy of what they hold and can add little (LR307)"
        return (
            f"the CPU tier holds {format_tokens(held)} tokens, under twice the {format_tokens(gpu)} of the GPUs: {copies}",
        )
    if distinct > _FILL.get(cpu.certainty, _FILL_OF_A_BOUND) * held:
        return (
            f"{format_tokens(distinct)} tokens nearly fill the CPU tier of {format_tokens(held)}: shorter prompts fit better",
        )
    return ()


def _prompt_tokens(instance: InstancePlan, wish: SizingWish, gpu: int) -> int:
    """The wished length, or the plan's mean prompt, shortened so that it takes several to fill the GPUs."""
    longest = instance.max_model_len - wish.output_tokens
    if longest < 1:
        raise UsageError(
            f"answers of {format_tokens(wish.output_tokens)} tokens do not fit '{instance.name}'",
            f"its longest request is {format_tokens(instance.max_model_len)} tokens, prompt and answer",
            "--output-tokens 16",
        )
    if wish.prompt_tokens is None:
        mean = min((speed.prompt_tokens for speed in instance.speed), default=longest)
        return max(min(mean, longest, gpu // _PROMPTS_IN_GPU), 1)
    if wish.prompt_tokens > longest:
        raise UsageError(
            f"prompts of {format_tokens(wish.prompt_tokens)} tokens do not fit '{instance.name}'",
            f"its longest request is {format_tokens(instance.max_model_len)} tokens, {wish.output_tokens} of them the answer",
            f"--input-tokens {longest}",
        )
    return wish.prompt_tokens


def _capacity(instance: InstancePlan, name: str) -> int | None:
    if instance.kv_cache is not None and name == "gpu":
        return instance.kv_cache.kv_capacity_tokens
    return next((tier.capacity_tokens for tier in instance.tiers if tier.name == name), None)
