"""Which of the possible splits is taken: the largest TP, unless another one serves what it does not or is clearly faster. Pure."""

from collections.abc import Sequence
from dataclasses import replace
from math import inf

from longreach.plan.count import Case, Decision
from longreach.plan.request_time import USUAL_OUTPUT_TOKENS, RequestTime, speed_request, time_wanted
from longreach.plan.values import Choice
from longreach.units import format_duration, format_tokens

_CLEARLY_FASTER = 1.25  # ranges are wide: less than this is no reason to leave the usual split


def choose_split(case: Case, usual: Decision, rivals: Sequence[Decision]) -> tuple[Decision, tuple[Choice, ...]]:
    """`usual` has the largest TP. The reason names what it, or else the nearest other split, would have cost."""
    if not rivals:
        why = f"the most of {case.num_gpus} GPUs over which heads, vocabulary and state split evenly"
        return usual, _choices(case, usual, why)
    best = usual
    for rival in rivals:
        if not (rival.fit.serves and best.fit.serves) or rival.grade[:2] != best.grade[:2]:
            best = rival if rival.is_better_than(best) else best
        elif _seconds(case, rival) * (_CLEARLY_FASTER if best is usual else 1.0) < _seconds(case, best) < inf:
            best = rival
    if best is not usual and usual.fit.serves:
        return best, _choices(case, best, _reason(case, best, [usual]))
    return best, _choices(case, best, _reason(case, best, [other for other in (usual, *rivals) if other is not best]))


def _request_time(case: Case, shape: Decision) -> RequestTime | None:
    longest = speed_request(case.model, case.machine, case.goal, shape.settled, shape.fit)
    request = replace(longest, prompt_tokens=shape.settled.mean_input_tokens)
    return time_wanted(request, case.goal, shape.settled.split.dp_size)


def _seconds(case: Case, shape: Decision) -> float:
    """Infinite where no rate is known."""
    time = _request_time(case, shape)
    return inf if time is None else time.total_s


def _reason(case: Case, best: Decision, rivals: Sequence[Decision]) -> str:
    serving = [rival for rival in rivals if rival.fit.serves]
    if best.fit.serves and serving:
        rival = min(serving, key=lambda shape: _seconds(case, shape))
        figures = _figures(case, best), _figures(case, rival)
        doubt = ", but may run out of memory" if best.fit.is_sure and not rival.fit.is_sure else ""
        return f"{_what(case, best)} takes about {figures[0]}; {rival.settled.split}: {figures[1]}{doubt}"
    longest = max(rivals, key=lambda rival: rival.fit.largest_max_model_len)
    reach = f"{longest.settled.split}: at most {format_tokens(longest.fit.largest_max_model_len)} tokens"
    if best.fit.serves:
        return f"no other split serves the goal; {reach}"
    own_reach = format_tokens(best.fit.largest_max_model_len)
    return f"nothing serves the goal, and this reaches furthest, {own_reach} tokens; {reach}"


def _what(case: Case, best: Decision) -> str:
    settled, answer = best.settled, case.goal.mean_output_tokens or USUAL_OUTPUT_TOKENS
    request = f"{format_tokens(settled.mean_input_tokens)} tokens in and {format_tokens(answer)} out"
    wanted = case.goal.concurrency or 1
    return f"{wanted} x {request} at once" if wanted > 1 else request


def _figures(case: Case, shape: Decision) -> str:
    time = _request_time(case, shape)
    if time is None:
        return "an unknown time"
    return f"{format_duration(time.total_s)} ({format_duration(time.ttft_s)} a prompt, {time.decode_tokens_per_s:.0f} tokens/s)"


def _choices(case: Case, best: Decision, why: str) -> tuple[Choice, ...]:
    split, goal = best.settled.split, case.goal
    if case.num_gpus < 2 or goal.tp_size is not None:
        return ()
    choices = [Choice("--tp", str(split.tp_size), why)]
    if split.pp_size > 1 and goal.pp_size is None:
        choices.append(
            Choice("--pp", str(split.pp_size), "stages pass activations on, without all-reduces between them")
        )
    if split.dp_size > 1 and goal.dp_size is None:
        why = f"replicas, each with all weights, share the {goal.concurrency} wanted requests"
        choices.append(Choice("--dp", str(split.dp_size), why))
    return tuple(choices)
