"""Numbers that the parser takes and vLLM cannot use."""

import pytest

from longreach.engine.parser import parse_arguments
from longreach.engine.parsing.ranges import RANGES, find_misfit
from longreach.engine.registry import get_registry, releases_with_flag


def whats(version: str, *words: str) -> list[str]:
    uses = parse_arguments(("vllm", "serve", "m", *words), get_registry(version)).uses
    return [misfit.what for use in uses if (misfit := find_misfit(use)) is not None]


@pytest.mark.parametrize(
    ("flag", "value"),
    [
        ("--tensor-parallel-size", "0"),
        ("--pipeline-parallel-size", "99999999"),
        ("--decode-context-parallel-size", "0"),
        ("--gpu-memory-utilization", "1.5"),
        ("--gpu-memory-utilization", "nan"),
        ("--gpu-memory-utilization", "0"),
        ("--kv-offloading-size", "inf"),
        ("--kv-offloading-size", "0"),
        ("--cpu-offload-gb", "nan"),
        ("--cpu-offload-gb=-1", ""),
        ("--max-num-seqs", "9" * 20),
        ("--block-size", "9" * 20),
        ("--port", "80000"),
    ],
)
def test_a_number_that_its_flag_cannot_mean_is_told(flag: str, value: str) -> None:
    words = (flag, value) if value else (flag,)
    name, _, joined = flag.partition("=")
    assert whats("0.32.0", *words) == [f"{name} {value or joined} is out of range"]


def test_a_number_of_hundreds_of_digits_is_told_in_short() -> None:
    (what,) = whats("0.32.0", "--max-model-len", "9" * 400)
    assert len(what) < 60


@pytest.mark.parametrize(
    ("flag", "value"),
    [
        ("--gpu-memory-utilization", "1"),
        ("--cpu-offload-gb", "0"),
        ("--max-model-len", "auto"),
        ("--max-model-len=-1", ""),
        ("--max-num-seqs", "$SEQS"),
        ("--max-num-seqs", "many"),
        ("--kv-offloading-size", "0.5"),
        ("--kv-cache-memory-bytes", "80G"),
    ],
)
def test_a_number_that_may_be_right_is_left_alone(flag: str, value: str) -> None:
    assert whats("0.32.0", *((flag, value) if value else (flag,))) == []


def test_ranges_are_of_flags_that_some_release_has() -> None:
    assert [name for name in RANGES if not releases_with_flag(name)] == []
