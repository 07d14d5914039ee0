"""All cases, in the order of the registry."""

from tests.rules import (
    cases_capacity,
    cases_concurrency,
    cases_gpus,
    cases_offload,
    cases_rope,
    cases_scheduler,
    cases_serving,
)
from tests.rules.case import Case

CASES: tuple[Case, ...] = tuple(
    sorted(
        (
            *cases_capacity.CASES,
            *cases_concurrency.CASES,
            *cases_rope.CASES,
            *cases_offload.CASES,
            *cases_scheduler.CASES,
            *cases_gpus.CASES,
            *cases_serving.CASES,
        ),
        key=lambda case: case.rule.kind.code,
    )
)
