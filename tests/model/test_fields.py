import pytest

from longreach.errors import InputFileError
from longreach.model.fields import Fields


def _fields(**values: object) -> Fields:
    return Fields("m", values)


def test_the_first_name_that_is_present_counts() -> None:
    assert _fields(n_head=None, n_heads=8).positive("n_head", "n_heads") == 8


def test_null_is_absent() -> None:
    fields = _fields(a=None)
    assert fields.optional_positive("a") is None
    assert not fields.has("a")
    fields.check()


def test_several_names_are_named_when_all_are_missing() -> None:
    fields = _fields()
    fields.positive("a", "b", "c")
    assert fields.problems == ["a: missing (nor b, c)"]


def test_a_problem_inside_a_nested_object_carries_its_path() -> None:
    inner = _fields(outer={"inner": {"x": -1}}).nested("outer")
    assert inner is not None
    innermost = inner.nested("inner")
    assert innermost is not None
    innermost.positive("x")
    with pytest.raises(InputFileError, match=r"outer\.inner\.x: found -1"):
        innermost.check()


def test_a_problem_is_reported_once() -> None:
    fields = _fields(x=0)
    fields.positive("x")
    fields.positive("x")
    with pytest.raises(InputFileError) as caught:
        fields.check()
    assert caught.value.why.count("x: found 0") == 1


@pytest.mark.parametrize("value", [0, -1.0, float("nan"), float("inf"), True, "1", []], ids=str)
def test_a_number_is_finite_and_above_zero(value: object) -> None:
    fields = _fields(x=value)
    fields.number("x")
    assert fields.problems


@pytest.mark.parametrize("value", [[1, -1], [1, True], [1.0], "12", {}, [[1]]], ids=str)
def test_a_list_of_counts_holds_counts_only(value: object) -> None:
    fields = _fields(x=value)
    assert fields.counts("x") == ()
    assert fields.problems


def test_a_long_value_is_shown_in_short() -> None:
    fields = _fields(x="y" * 1000)
    fields.positive("x")
    assert len(fields.problems[0]) < 150


def test_defaults_fill_what_is_absent_or_null() -> None:
    filled = _fields(a=1, b=None).filled({"a": 9, "b": 2, "c": 3})
    assert (filled.positive("a"), filled.positive("b"), filled.positive("c")) == (1, 2, 3)


def test_a_list_for_each_layer_may_go_on_with_the_mtp_layers() -> None:
    fields = _fields(num_nextn_predict_layers=2)
    assert fields.per_layer(3, (1, 2, 3), "x") == (1, 2, 3)
    assert fields.per_layer(3, (1, 2, 3, 4, 5), "x") == (1, 2, 3)
    assert fields.per_layer(3, (1, 2, 3, 4), "x") is None
    assert fields.problems == ["x: 4 entries, expected one for each of 3 layers"]
