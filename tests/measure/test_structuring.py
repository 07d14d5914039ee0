"""What was edited by hand or came from elsewhere is refused by its field."""

from dataclasses import dataclass
from typing import Any, Literal

import pytest

from longreach.measure.structuring import structure


@dataclass(frozen=True, slots=True)
class Inner:
    kind: Literal["a", "b"]


@dataclass(frozen=True, slots=True)
class Shape:
    ok: bool
    count: int
    took_s: float | None
    name: str
    inner: Inner
    pairs: tuple[tuple[str, int], ...] = ()


GOOD = {"ok": True, "count": 1, "took_s": 2, "name": "x", "inner": {"kind": "a"}, "pairs": [["device", 5]], "later": 1}


def test_right_values_are_taken_and_unknown_keys_passed_over() -> None:
    assert structure(GOOD, Shape) == Shape(
        ok=True, count=1, took_s=2, name="x", inner=Inner("a"), pairs=(("device", 5),)
    )


@pytest.mark.parametrize(
    ("field", "value", "said"),
    [
        ("ok", "false", "expected true or false, not 'false' @ ok"),
        ("ok", 1, "expected true or false, not 1 @ ok"),
        ("count", 1.5, "expected a whole number, not 1.5 @ count"),
        ("count", True, "expected a whole number, not True @ count"),
        ("count", -1, "expected a number from 0 to 10^15, not -1 @ count"),
        ("took_s", "0.5", "expected a number, not '0.5' @ took_s"),
        ("took_s", float("nan"), "expected a number from 0 to 10^15, not nan @ took_s"),
        ("took_s", 1e300, "expected a number from 0 to 10^15, not 1e+300 @ took_s"),
        ("name", 5, "expected a text, not 5 @ name"),
        ("inner", {"kind": "c"}, "expected one of a, b, not 'c' @ inner.kind"),
        ("inner", {}, "'kind' is missing @ inner.kind"),
        ("inner", "a", "expected an object @ inner"),
        ("pairs", "ab", "expected a list, not 'ab' @ pairs"),
        ("pairs", [["device"]], "expected a list of 2, not ['device'] @ pairs"),
        ("pairs", {"device": 5}, "expected a list, not {'device': 5} @ pairs"),
    ],
)
def test_what_is_odd_is_named(field: str, value: Any, said: str) -> None:
    with pytest.raises(ValueError) as caught:  # noqa: PT011 - the words are looked at below
        structure({**GOOD, field: value}, Shape)
    assert str(caught.value).startswith(said)
