"""Count one way to serve a goal: settle it, stretch the rope, lay out the KV cache. Pure."""

from dataclasses import dataclass, replace

from longreach.engine.options import EngineOptions
from longreach.engine.release import Release
from longreach.errors import UnknownModelError, UsageError
from longreach.hardware.spec import Machine
from longreach.model.spec import ModelSpec
from longreach.plan.capacity import Fit, Setting, fit_kv_cache
from longreach.plan.extra import Extra
from longreach.plan.goal import Goal
from longreach.plan.settle import Settled, Trial, settle
from longreach.plan.values import Choice
from longreach.rules.deployment import Deployment
from longreach.rules.scheduler import batched_tokens_below_block
from longreach.sizing.rope import plan_rope
from longreach.sizing.values import RopePlan

BEST_GRADE = (False, False, False)


@dataclass(frozen=True, slots=True)
class Case:
    """What does not change while ways are tried."""

    model: ModelSpec
    machine: Machine
    release: Release
    goal: Goal
    num_gpus: int  # the instance's share of the machine
    extra: Extra


@dataclass(frozen=True, slots=True)
class Decision:
    """One way, counted."""

    trial: Trial
    settled: Settled
    rope: RopePlan
    fit: Fit
    choices: tuple[Choice, ...] = ()

    @property
    def grade(self) -> tuple[bool, bool, bool]:
        """Less is better: serves the goal, surely, at the model's own KV dtype."""
        return not self.fit.serves, not self.fit.is_sure, self.fit.is_narrow

    @property
    def serves_surely(self) -> bool:
        """By bytes that are there, whatever activations take."""
        return self.fit.serves and self.fit.is_sure

    def is_better_than(self, other: "Decision") -> bool:
        """It serves with less doubt or loss; or neither serves, and it reaches further."""
        if self.fit.serves or other.fit.serves:
            return self.grade < other.grade
        return self.fit.largest_max_model_len > other.fit.largest_max_model_len


def count(case: Case, trial: Trial) -> Decision:
    """Raises UsageError where this way cannot be."""
    decision = _counted(case, trial)
    chunk_tokens = _chunk_of_a_block(case, decision)
    return decision if chunk_tokens is None else _counted(case, replace(trial, chunk_tokens=chunk_tokens))


def _chunk_of_a_block(case: Case, decision: Decision) -> int | None:
    """The power of two that holds one block of recurrent state, where the release needs that and the chunk does not."""
    settled, fit = decision.settled, decision.fit
    if case.goal.max_num_batched_tokens is not None or fit.capacity is None:
        return None
    probe = Deployment(
        case.model,
        case.machine,
        case.release,
        EngineOptions(case.model.name, max_num_batched_tokens=settled.max_num_batched_tokens),
        settled.max_model_len,
        settled.max_num_batched_tokens,
        settled.max_num_seqs,
        capacity=fit.capacity,
        kv_request=fit.request,
    )
    is_below = any(batched_tokens_below_block.check(probe))
    return 1 << (fit.capacity.block_size - 1).bit_length() if is_below else None


def _counted(case: Case, trial: Trial) -> Decision:
    settled = settle(case.model, case.machine, case.goal, trial)
    rope = plan_rope(case.model, settled.max_model_len, case.goal.yarn)
    fit = fit_kv_cache(Setting(case.model, case.machine, case.release, case.goal, settled, rope, case.extra))
    return Decision(trial, settled, rope, fit)


def count_if_possible(case: Case, trial: Trial) -> Decision | None:
    """None where it cannot be, or is not understood: a stage without cache, a window that DCP does not split."""
    try:
        return count(case, trial)
    except (UsageError, UnknownModelError):
        return None
