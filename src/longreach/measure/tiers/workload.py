"""The generated workload: prompts of one length, each of them several times over, in the order that asks every tier. Pure."""

from collections.abc import Sequence
from dataclasses import replace
from random import Random

from longreach.measure.tiers.values import WorkloadSizing
from longreach.measure.workload.digest import digest_workload
from longreach.measure.workload.values import Workload
from longreach.measure.workload.wishes import SyntheticSource, WorkloadWish
from longreach.units import format_count


def wish_for(sizing: WorkloadSizing, output_tokens: int, seed: str) -> WorkloadWish:
    """The prompts in rounds, every prompt once in each; `in_order` deals them out."""
    source = SyntheticSource(
        num_requests=sizing.num_prompts,
        input_tokens=sizing.prompt_tokens,
        output_tokens=output_tokens,
        rounds=sizing.sends_per_prompt,
    )
    return WorkloadWish(source, seed)


def in_order(rounds: Workload, sizing: WorkloadSizing) -> Workload:
    """The requests of a workload in rounds as they are to be sent, numbered and digested anew."""
    order = send_order(sizing, rounds.seed)
    requests = tuple(replace(rounds.requests[old], index=new) for new, old in enumerate(order))
    if requests == rounds.requests:
        return rounds
    ordered = replace(rounds, requests=requests, source=f"{rounds.source}, {describe_order(sizing)}")
    return replace(ordered, digest=digest_workload(ordered))


def describe_order(sizing: WorkloadSizing) -> str:
    """The order in words."""
    times = ("", "once", "twice", "three times")
    named = times[sizing.sends_per_group] if sizing.sends_per_group < len(times) else f"{sizing.sends_per_group} times"
    order = "in an order drawn anew each time" if sizing.is_shuffled else "in the same order"
    if sizing.num_passes == 1:
        what = f"all {sizing.num_prompts} prompts" if sizing.num_prompts > 1 else "one prompt"
        return f"{what} {named} over, {order}"
    return f"groups of {format_count(sizing.group_size, 'prompt')} {named} over, {order}, and all groups {times[sizing.num_passes]}"


def send_order(sizing: WorkloadSizing, seed: str) -> tuple[int, ...]:
    """Places in a workload in rounds (round x prompts + prompt), first sends first: a prompt's n-th send is of the n-th round."""
    rng = Random(f"order {seed}")  # noqa: S311 - an order, not a secret
    num_sent, order = [0] * sizing.num_prompts, list[int]()
    for _ in range(sizing.num_passes):
        for group in _groups(sizing):
            for _ in range(sizing.sends_per_group):
                turn = rng.sample(group, len(group)) if sizing.is_shuffled else group
                for prompt in turn:
                    order.append(num_sent[prompt] * sizing.num_prompts + prompt)
                    num_sent[prompt] += 1
    return tuple(order)


def _groups(sizing: WorkloadSizing) -> list[Sequence[int]]:
    """Prompts by group; what is left over joins the last one, since a small group would fit the GPUs."""
    num_groups = max(1, sizing.num_prompts // sizing.group_size)
    ends = [number * sizing.group_size for number in range(1, num_groups)] + [sizing.num_prompts]
    return [range(begin, end) for begin, end in zip([0, *ends[:-1]], ends, strict=True)]
