"""Which of the possible splits is taken: the largest TP, unless another one serves what it does not or is clearly faster. Pure."""

from collections.abc import Sequence
from dataclasses import replace

from longreach.plan.count import Case, Decision
from longreach.plan.request_time import USUAL_OUTPUT_TOKENS, RequestTime, speed_request, time_wanted
from longreach.plan.values import Choice
from longreach.units import format_duration, format_tokens

_CLEARLY_FASTER = 1.25  # ranges are wide: less than this is no reason to leave the usual split

Timed = tuple[Decision, RequestTime | None]


def choose_split(case: Case, shapes: Sequence[Decision]) -> tuple[Decision, tuple[Choice, ...]]:
    """`shapes` are counted, the largest TP first. The reason names what the nearest other split would have cost."""
    if len(shapes) == 1:
        return shapes[0], _choices(case, shapes[0], _even(case))
    timed = [(shape, _time(case, shape)) for shape in shapes]
    usual = best = timed[0]
    for rival in timed[1:]:
        if _wins(rival, best, is_usual=best is usual):
            best = rival
    return best[0], _choices(case, best[0], _reason(case, best, [rival for rival in timed if rival is not best]))


def _time(case: Case, shape: Decision) -> RequestTime | None:
    longest = speed_request(case.model, case.machine, case.goal, shape.settled, shape.fit)
    request = replace(longest, prompt_tokens=shape.settled.mean_input_tokens)
    return time_wanted(request, case.goal, shape.settled.split.dp_size)


def _wins(rival: Timed, best: Timed, *, is_usual: bool) -> bool:
    if not (rival[0].fit.serves and best[0].fit.serves) or rival[0].grade[:2] != best[0].grade[:2]:
        return rival[0].is_better_than(best[0])
    if rival[1] is None or best[1] is None:
        return False
    return rival[1].total_s * (_CLEARLY_FASTER if is_usual else 1.0) < best[1].total_s


def _even(case: Case) -> str:
    return f"the most of {case.num_gpus} GPUs over which heads, vocabulary and state split evenly"


def _reason(case: Case, best: Timed, rivals: Sequence[Timed]) -> str:
    serving = [rival for rival in rivals if rival[0].fit.serves and rival[1] is not None]
    if best[0].fit.serves and best[1] is not None and serving:
        rival = min(serving, key=lambda timed: timed[1].total_s if timed[1] else 0)
        doubt = ", but may run out of memory" if best[0].fit.is_sure and not rival[0].fit.is_sure else ""
        return f"{_what(case, best)} takes about {_figures(best)}; {rival[0].settled.split}: {_figures(rival)}{doubt}"
    longest = max(rivals, key=lambda timed: timed[0].fit.largest_max_model_len)[0]
    reach = f"{longest.settled.split}: at most {format_tokens(longest.fit.largest_max_model_len)} tokens"
    if best[0].fit.serves:
        return f"no other split serves the goal; {reach}"
    return f"nothing serves the goal, and this reaches furthest, {format_tokens(best[0].fit.largest_max_model_len)} tokens; {reach}"


def _what(case: Case, best: Timed) -> str:
    settled, answer = best[0].settled, case.goal.mean_output_tokens or USUAL_OUTPUT_TOKENS
    request = f"{format_tokens(settled.mean_input_tokens)} tokens in and {format_tokens(answer)} out"
    wanted = case.goal.concurrency or 1
    return f"{wanted} x {request} at once" if wanted > 1 else request


def _figures(timed: Timed) -> str:
    time = timed[1]
    assert time is not None
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
