"""Releases by name."""

import pytest

from longreach.engine.options import YarnOptions
from longreach.engine.release import DEFAULT_RELEASE, RELEASES, get_release
from longreach.errors import UsageError


@pytest.mark.parametrize("name", ["0.32.0", "0.32", "v0.32.0", "0.32.0+cpu"])
def test_a_release_answers_to_its_usual_names(name: str) -> None:
    assert get_release(name).version == "0.32.0"


def test_releases_stand_in_order_and_hold_the_default() -> None:
    assert [release.number for release in RELEASES] == sorted(release.number for release in RELEASES)
    assert get_release(DEFAULT_RELEASE) in RELEASES


def test_an_unknown_release_is_refused_with_the_known_ones() -> None:
    with pytest.raises(UsageError, match=r"unknown vLLM release '0.3.2'") as caught:
        get_release("0.3.2")
    assert "0.28.0, 0.29.0" in caught.value.why
    assert caught.value.fix


def test_a_far_miss_proposes_the_default() -> None:
    with pytest.raises(UsageError) as caught:
        get_release("latest")
    assert caught.value.fix == f"--vllm {DEFAULT_RELEASE}"


def test_yarn_options_drop_the_keys_that_yarn_sets_itself() -> None:
    options = YarnOptions(3.0, 262_144, (), (("rope_type", "default"), ("type", "linear"), ("rope_theta", 1e7)))
    assert options.rope_parameters == (("rope_theta", 1e7),)
    assert options.max_position_embeddings == 786_432
