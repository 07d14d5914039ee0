"""The nearest goals that fit, where the asked one does not: one change at a time, each counted as if it had been asked. Pure."""

from collections.abc import Iterable
from dataclasses import replace
from typing import Any

from longreach.errors import UnknownModelError, UsageError
from longreach.plan.changes import NO_CHANGE, Change, larger_changes, setting_changes, together
from longreach.plan.count import Case, Decision
from longreach.plan.decide import decide
from longreach.plan.tiers import concurrency_at_mean_input
from longreach.plan.values import Alternative
from longreach.units import format_bytes

_MOST_OFFERED = 8
_SHORTEST_OFFERED, _LEAST_SHARE = 1024, 64  # tokens, and one part in so many of the goal: less is no way to serve it


def find_alternatives(case: Case, taken: Decision, *, is_alone: bool) -> tuple[Alternative, ...]:
    """The asked goal by another setting first, then what comes nearest to it. Empty where it is served, and where the memory
    is not known. `is_alone`: no other instance shares the machine, so that this one may grow.
    """
    if is_served(taken) or taken.fit.capacity is None:
        return ()
    fixed = _with_split(case, taken)
    settings = list(setting_changes(fixed, taken))
    as_it_is = _counted(NO_CHANGE, case, fixed)
    found = [item for change in settings if (item := _counted(change, case, fixed)) is not None]
    if not any(item.serves for item in found) and (all_settings := together(settings)) is not None:
        found += filter(None, [_counted(all_settings, case, fixed)])
    if is_alone:
        found += _larger(case, taken)
    useful = [item for item in found if _gains(item, as_it_is, wants_more=case.goal.concurrency is not None)]
    nearest = [*(item for item in useful if item.serves), *sorted(_partial(useful, as_it_is), key=_shortfall)]
    return tuple(nearest[:_MOST_OFFERED])


def is_served(decision: Decision) -> bool:
    """The length fits and is within reach of the model's rope, and as many requests run at once as are wanted."""
    return decision.fit.serves and decision.rope.reachable


def _with_split(case: Case, taken: Decision) -> Case:
    """The split that was taken: it is not chosen anew for every change."""
    split = taken.settled.split
    goal = replace(case.goal, tp_size=split.tp_size, pp_size=split.pp_size, dp_size=split.dp_size)
    return replace(case, goal=goal)


def _larger(case: Case, taken: Decision) -> list[Alternative]:
    """Of more GPUs the fewest that serve, else the most."""
    found, more = [], []
    for change in larger_changes(case, taken) if taken.rope.reachable else ():
        item = _counted(change, case, case)
        if item is None:
            continue
        if "--gpus" not in change.options:
            found.append(item)
            continue
        more.append(item)
        if item.serves:
            break
    return found + more[-1:]


def _counted(change: Change, asked: Case, base: Case) -> Alternative | None:
    """The change as asked, else with the longest request, or as many, as then fit; None when nothing does."""
    case = change.applied(base)
    less: dict[str, Any] = {}
    try:
        decision = decide(case)
        while (lower := _less(decision, case)).keys() - less.keys():
            less |= lower
            case = replace(case, goal=replace(case.goal, **lower))
            decision = decide(case)
    except (UsageError, UnknownModelError):  # this change cannot be
        return None
    lowered = [word for name, value in less.items() for word in (f"--{name.replace('_', '-')}", str(value))]
    options = [*change.options, *lowered]
    is_useful = _starts(decision) and decision.settled.max_model_len >= _shortest(asked)
    return _described(change, options, decision, asked, serves=not less) if is_useful else None


def _shortest(asked: Case) -> int:
    wanted = asked.goal.max_model_len or asked.model.max_position_embeddings
    return min(wanted, max(_SHORTEST_OFFERED, wanted // _LEAST_SHARE))


def _less(decision: Decision, case: Case) -> dict[str, Any]:
    """Fields of Goal to lower: the length where it does not start, else the requests at once; empty where all is served."""
    if not _starts(decision):
        return {"max_model_len": max(_longest(decision), 1)}
    if decision.fit.serves:
        return {}
    return {"concurrency": max(int(_at_once(decision, case) or 0), 1)}


def _at_once(decision: Decision, case: Case) -> float | None:
    figures = concurrency_at_mean_input(decision.fit, case.goal, decision.settled, ())
    return None if figures is None or figures.gpu is None else figures.gpu * decision.settled.split.dp_size


def _starts(decision: Decision) -> bool:
    capacity = decision.fit.capacity
    return (
        capacity is not None and capacity.serves and decision.rope.reachable and decision.fit.memory.fits is not False
    )


def _longest(decision: Decision) -> int:
    asked, rope = decision.settled.max_model_len, decision.rope
    return min(decision.fit.largest_max_model_len, asked if rope.reachable else rope.native_tokens)


def _described(change: Change, options: list[str], decision: Decision, asked: Case, *, serves: bool) -> Alternative:
    goal, fit, split = asked.goal, decision.fit, decision.settled.split
    words = change.words or ("a shorter request" if "--max-model-len" in options else "fewer requests at once")
    if "kv_cache_memory_bytes" in change.goal and fit.kv_cache_memory_bytes is not None:
        options += ["--kv-cache-memory-bytes", str(fit.kv_cache_memory_bytes)]
        size = f"{format_bytes(fit.kv_cache_memory_bytes)} of KV cache on each GPU"
        words = words.replace("more KV cache", size) if "more KV cache" in words else f"{words}, {size}"
    if change.goal.get("tp_size", 0) is None and goal.tp_size is not None:
        sizes = (("--tp", split.tp_size), ("--pp", split.pp_size), ("--dp", split.dp_size), ("--dcp", split.dcp_size))
        options += [word for name, size in sizes if size > 1 or name == "--tp" for word in (name, str(size))]
    elif "dcp_size" in change.goal and goal.dcp_size is not None:
        options += ["--dcp", str(split.dcp_size)]
    return Alternative(
        change=words,
        options=_for_vllm_last(options),
        max_model_len=decision.settled.max_model_len,
        concurrency=_at_once(decision, asked),
        serves=serves,
        note="" if fit.is_sure else "the start may run out of memory",
    )


def _for_vllm_last(options: list[str]) -> tuple[str, ...]:
    """What stands after -- goes behind every option of plan."""
    at = options.index("--") if "--" in options else len(options)
    return (*options[:at], *options[at + 2 :], *options[at : at + 2])


def _gains(item: Alternative, as_it_is: Alternative | None, *, wants_more: bool) -> bool:
    if as_it_is is None or item.serves or item.max_model_len > as_it_is.max_model_len:
        return True
    return (
        wants_more
        and item.max_model_len == as_it_is.max_model_len
        and (item.concurrency or 0) > (as_it_is.concurrency or 0)
    )


def _partial(useful: Iterable[Alternative], as_it_is: Alternative | None) -> list[Alternative]:
    """What does not serve the goal as asked, and the shorter or fewer requests that the plan as it is would take."""
    rest = [item for item in useful if not item.serves]
    return rest if as_it_is is None else [*rest, as_it_is]


def _shortfall(item: Alternative) -> tuple[int, float]:
    return -item.max_model_len, -(item.concurrency or 0)
