"""Releases by name."""

import pytest

from longreach.engine.options import YarnOptions
from longreach.engine.release import DEFAULT_RELEASE, NEWEST_RELEASE, RELEASES, get_release
from longreach.errors import UsageError


@pytest.mark.parametrize(
    ("name", "found"),
    [
        *((name, "0.32.0") for name in ("0.32.0", "0.32", "v0.32.0", "0.32.0+cpu", " 0.32.1 ", "0.32.1rc1.dev3+gabc")),
        ("0.20.1rc1.dev16+g7a1eb8ac2", "0.20.2"),
        ("0.8.5", "0.8.5.post1"),
        ("0.8.5.post1", "0.8.5.post1"),
        ("0.10.1", "0.10.1.1"),
        ("0.10", "0.10.2"),
        ("0.11.1", "0.11.2"),
        ("0.13.0+faa43dbf.nv26.01", "0.13.0"),
        ("0.9.0", "0.9.2"),
    ],
)
def test_a_release_answers_to_its_patches_and_builds(name: str, found: str) -> None:
    assert get_release(name).version == found


def test_releases_stand_in_order_and_hold_the_default() -> None:
    assert [release.number for release in RELEASES] == sorted(release.number for release in RELEASES)
    assert get_release(DEFAULT_RELEASE) in RELEASES
    assert get_release(NEWEST_RELEASE) is RELEASES[-1]


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
