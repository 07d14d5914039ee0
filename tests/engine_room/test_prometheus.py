"""The text format, as engines write it and as it arrives cut."""

import pytest

from longreach.engine.prometheus import Sample, parse_samples


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        ("up 1", [Sample("up", {}, 1.0)]),
        ('vllm:x_total{engine="0",model_name="a b"} 2.5e3', [Sample("vllm:x_total", {"engine": "0", "model_name": "a b"}, 2500.0)]),
        (r'x{p="C:\\n \"q\" \n"} 1', [Sample("x", {"p": 'C:\\n "q" \n'}, 1.0)]),
        ('x{a="}{,"} NaN', None),
        ('x{le="+Inf"} +Inf 1700000000000', [Sample("x", {"le": "+Inf"}, float("inf"))]),
        ('x_bucket{le="1"} 5 # {trace_id="a"} 0.5', [Sample("x_bucket", {"le": "1"}, 5.0)]),
        ("# HELP x y", []),
        ("x{a=", []),
        ("x one", []),
        ("", []),
    ],
)  # fmt: skip
def test_a_line_is_a_sample_or_nothing(line: str, expected: list[Sample] | None) -> None:
    samples = list(parse_samples(line))
    if expected is None:
        assert samples[0].labels == {"a": "}{,"}
        assert samples[0].value != samples[0].value
    else:
        assert samples == expected
