"""What is measured and how: the target, the settings, and what of them cannot be."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from longreach.errors import UsageError
from longreach.measure.bench.values import CacheState, Load, PhaseSpec
from longreach.measure.client import Timeouts
from longreach.measure.target import Api, VerifyTarget

BenchTarget = VerifyTarget
"""What is measured is named as what is verified: address, model, tokenizer, and what a plan promises of it."""


@dataclass(frozen=True, slots=True)
class BenchSettings:
    """How to measure. A results file and an answers file are optional; figures do not depend on them."""

    load: Load = field(default_factory=Load)
    states: tuple[CacheState, ...] = ("cold",)
    api: Api = "chat"
    extra_body: Mapping[str, object] = field(default_factory=dict)  # sampling, passed through; temperature 0 if unset
    exact_output: bool = True  # vLLM only: `ignore_eos` and `min_tokens`, so that every answer has the wanted length
    cache_salt: str | None = None  # None: a fresh one, so that nothing sent before this run can be hit
    flood_tokens: int | None = None  # None: what the GPU's KV cache holds
    timeouts: Timeouts = field(default_factory=Timeouts)
    journal: Path | None = None
    resume: bool = False
    answers: Path | None = None
    num_warm_up: int = 0  # requests before the first pass, under other salts and part of no figure
    label: str = ""
    needs_server: bool = False  # nobody there is an error, not a run in which everything failed

    @property
    def body_fields(self) -> dict[str, object]:
        """The passed-through fields with the default of a comparison: greedy."""
        return {"temperature": 0, **self.extra_body}


WARM_UP = PhaseSpec("warm-up", "flood")
"""For engines that compile kernels, or fill pools, at their first requests."""

_ALLOWED = (
    ("cold",),
    ("cold", "warm"),
    ("cold", "evicted"),
    ("cold", "warm", "evicted"),
    ("as_it_comes",),
)


def plan_phases(
    states: Sequence[CacheState], *, is_hybrid: bool | None, warms_up: bool = False
) -> tuple[PhaseSpec, ...]:
    """The passes over the workload that these states take. A hybrid model may hit only from its second repeat on.

    UsageError for states that do not follow from each other.
    """
    if tuple(states) not in _ALLOWED:
        raise UsageError(
            f"cache states '{','.join(states)}' cannot be measured in this order",
            "a prompt is cold before it is warm, and is evicted after that; what comes as it is stands alone",
            "--states cold,warm,evicted, a part of it that begins with cold, or as-is",
        )
    phases = [WARM_UP] if warms_up else []
    for state in states:
        if state == "warm":
            phases += [PhaseSpec(f"warm {number}", "warm") for number in range(1, 3 if is_hybrid else 2)]
        elif state == "evicted":
            phases += [PhaseSpec("flood", "flood"), PhaseSpec("evicted", "evicted")]
        else:
            phases.append(PhaseSpec("cold" if state == "cold" else "as it comes", state))
    return tuple(phases)
