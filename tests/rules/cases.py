"""All cases, in the order of their codes."""

from tests.rules import cases_capacity
from tests.rules.case import Case

CASES: tuple[Case, ...] = (*cases_capacity.CASES,)
