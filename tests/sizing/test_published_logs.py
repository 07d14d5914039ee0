"""Start-up logs that others published come out of the count, by the rules of the release that wrote them."""

from collections.abc import Mapping
from typing import Any

import pytest
from tests.accuracy.capacity import judge
from tests.sizing.cases import load_cases


@pytest.mark.parametrize("case", load_cases("published_logs"))
def test_a_published_log_is_reproduced_or_listed_with_the_reason(case: Mapping[str, Any]) -> None:
    outcome = judge(case)
    assert outcome.is_expected, (case["printed"], case["unexplained"], outcome.reproduced_by)
