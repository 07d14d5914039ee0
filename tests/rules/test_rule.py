from collections.abc import Iterator

import pytest
from tests.rules.deployments import DENSE

from longreach.engine.release import get_release
from longreach.rules.deployment import Deployment
from longreach.rules.rule import Diagnosis, rule


def say_something(_: Deployment) -> Iterator[Diagnosis]:
    yield Diagnosis("something", "because of 1", "do 2")


@pytest.mark.parametrize(
    ("first", "last", "applies"),
    [
        (None, None, True),
        ("0.32.0", "0.32.0", True),
        ("0.29.0", None, True),
        (None, "0.33.0", True),
        ("0.33.0", None, False),
        (None, "0.31.0", False),
    ],
)
def test_rule_speaks_only_for_releases_it_is_true_of(first: str | None, last: str | None, applies: bool) -> None:
    checked = rule("LR999", "advice", "some_cause", "title", first=first, last=last)(say_something)
    assert checked.applies_to(get_release("0.32.0")) is applies
    assert len(list(checked.check(DENSE))) == applies
