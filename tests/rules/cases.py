"""All cases, in the order of the registry."""

from tests.rules import (
    cases_capacity,
    cases_concurrency,
    cases_foreign,
    cases_gpus,
    cases_offload,
    cases_parser,
    cases_rope,
    cases_scheduler,
    cases_serving,
    cases_text,
    cases_written,
)
from tests.rules.case import Case

from longreach.rules.deployment import Deployment
from longreach.rules.written import WrittenCommand

CASES: tuple[Case[Deployment], ...] = tuple(
    sorted(
        (
            *cases_capacity.CASES,
            *cases_concurrency.CASES,
            *cases_rope.CASES,
            *cases_offload.CASES,
            *cases_scheduler.CASES,
            *cases_gpus.CASES,
            *cases_serving.CASES,
            *cases_foreign.DEPLOYMENT_CASES,
        ),
        key=lambda case: case.rule.kind.code,
    )
)

COMMAND_CASES: tuple[Case[WrittenCommand], ...] = tuple(
    sorted(
        (*cases_written.CASES, *cases_parser.CASES, *cases_text.CASES, *cases_foreign.COMMAND_CASES),
        key=lambda case: case.rule.kind.code,
    )
)
"""Of the rules over the words of a foreign command."""
