"""Choose how one instance serves its goal: count the ways that are open, take the first that serves it, and say what the
others would have cost. What changes no answer goes before what may: split, chunks and DCP before a narrower KV dtype. Pure.
"""

from collections.abc import Iterator
from dataclasses import replace

from longreach.engine.registry import get_registry
from longreach.engine.release import Release
from longreach.plan.choose_split import choose_split
from longreach.plan.count import BEST_GRADE, Case, Decision, count, count_if_possible
from longreach.plan.drafts import choose_drafts
from longreach.plan.settle import Trial, check_gpus, default_chunk_tokens
from longreach.plan.split import context_sizes, possible_splits
from longreach.plan.values import Choice

_SMALL_CHUNK = 2048


def decide(case: Case) -> Decision:
    """The way that is taken, with the reason of every choice. Raises UsageError where none can be."""
    splits = possible_splits(case.model, case.machine, case.release, case.goal, case.num_gpus)
    check_gpus(splits[0], case.num_gpus, case.machine)
    first = _without_loss(case, count(case, Trial(splits[0], case.goal.speculation)))
    tried = (count_if_possible(case, Trial(split, case.goal.speculation)) for split in splits[1:])
    rivals = [found for found in tried if found is not None]
    if not first.serves_surely:
        rivals = [_without_loss(case, rival) for rival in rivals]
    best, split_choices = choose_split(case, first, rivals)
    best, draft_choices = choose_drafts(case, best)
    reasons = (*split_choices, *_dcp_choice(case, best), *draft_choices, *_yarn_choice(case, best))
    return replace(best, choices=reasons)


def _without_loss(case: Case, first: Decision) -> Decision:
    """The same split with smaller chunks or DCP, where the goal needs it: neither changes an answer."""
    best = first
    is_open = first.grade != BEST_GRADE and first.fit.memory.fits is not False  # neither makes weights smaller
    for trial in _lossless(case, first.trial) if is_open else ():
        found = count_if_possible(case, trial)
        if found is not None and found.is_better_than(best):
            best = found
        if best.grade == BEST_GRADE:
            break
    return best


def _lossless(case: Case, trial: Trial) -> Iterator[Trial]:
    split = trial.split
    default = default_chunk_tokens(case.machine, split.tp_size * split.pp_size)
    if case.goal.max_num_batched_tokens is None and default > _SMALL_CHUNK and case.machine.device_type != "cpu":
        yield replace(trial, chunk_tokens=_SMALL_CHUNK)
    for size in _context_sizes(case, trial):
        yield replace(trial, split=replace(split, dcp_size=size))


def _context_sizes(case: Case, trial: Trial) -> tuple[int, ...]:
    if not _has_context_parallel(case.release):
        return ()
    return context_sizes(case.model, case.machine, case.release, case.goal, trial.split)


def _has_context_parallel(release: Release) -> bool:
    return get_registry(release.version).find("--decode-context-parallel-size") is not None


def _dcp_choice(case: Case, best: Decision) -> Iterator[Choice]:
    split = best.settled.split
    sizes = _context_sizes(case, replace(best.trial, split=replace(split, dcp_size=1)))
    if not sizes:
        return
    most, copies = sizes[-1], "the whole latent" if case.model.num_kv_heads >= split.tp_size else "copies of KV heads"
    if split.dcp_size > 1:
        why = (
            f"with {copies} on each of {split.tp_size} GPUs the goal does not fit; it adds traffic to each decode step"
        )
    elif best.fit.serves:
        why = f"the goal fits with {copies} on each of {split.tp_size} GPUs; {most} would hold {most} times the tokens, slower"
    else:
        return
    yield Choice("--dcp", str(split.dcp_size), why)


def _yarn_choice(case: Case, best: Decision) -> Iterator[Choice]:
    if case.goal.yarn == "auto" and best.rope.factor is not None:
        yield Choice("--yarn", f"{best.rope.factor:g}", f"the smallest clean factor: {best.rope.reason}")
