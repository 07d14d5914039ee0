"""Reaching a length: factor, override, table, and ropes that cannot be stretched."""

from dataclasses import replace

import pytest

from longreach.errors import UsageError
from longreach.model.catalogue import load_catalogue_model
from longreach.model.spec import ModelSpec
from longreach.sizing.rope import plan_rope

MIB = 2**20
QWEN36 = load_catalogue_model("qwen3.6-27b")
QWEN3 = load_catalogue_model("qwen3-32b")


@pytest.mark.parametrize(
    ("model", "wanted", "factor", "reached"),
    [
        pytest.param(QWEN36, 262_144, None, 262_144, id="native"),
        pytest.param(QWEN36, 750_000, 3.0, 786_432, id="750,000 tokens"),
        pytest.param(QWEN36, 524_288, 2.0, 524_288, id="exactly reached"),
        pytest.param(QWEN36, 524_289, 2.5, 655_360, id="one token more"),
        pytest.param(QWEN36, 1_010_000, 4.0, 1_048_576, id="as far as recommended"),
        pytest.param(QWEN3, 40_960, None, 40_960, id="native although trained on less"),
        pytest.param(QWEN3, 131_072, 4.0, 131_072, id="the length to multiply is 32,768"),
    ],
)
def test_the_smallest_clean_factor_that_reaches_the_length_is_chosen(
    model: ModelSpec, wanted: int, factor: float | None, reached: int
) -> None:
    plan = plan_rope(model, wanted)
    assert (plan.factor, plan.reachable, plan.beyond_recommendation) == (factor, True, False)
    assert (plan.options.max_position_embeddings if plan.options else plan.native_tokens) == reached


def test_the_override_repeats_the_configs_own_keys_where_they_belong() -> None:
    options = plan_rope(QWEN36, 750_000).options
    assert options is not None
    assert (options.override_path, options.original_max_position_embeddings) == (("text_config",), 262_144)
    repeated = dict(options.rope_parameters)
    assert repeated["rope_theta"] == 10_000_000
    assert repeated["mrope_section"] == (11, 11, 10)
    assert not {"rope_type", "factor"} & set(repeated)


def test_mrope_tables_have_four_rows_a_position() -> None:
    assert plan_rope(QWEN36, 750_000).table_bytes_per_gpu == 4 * 786_432 * 64 * 2 == 384 * MIB
    assert plan_rope(QWEN36, 1000).table_bytes_per_gpu == 128 * MIB


def test_plain_tables_have_one_row_a_position() -> None:
    assert plan_rope(QWEN3, 131_072).table_bytes_per_gpu == 131_072 * 128 * 2
    assert plan_rope(QWEN3, 1000).table_bytes_per_gpu == 40_960 * 128 * 2


def test_models_without_rotary_embedding_have_no_table() -> None:
    assert plan_rope(replace(QWEN3, rope=None), 1000).table_bytes_per_gpu == 0


def test_beyond_the_recommendation_is_said() -> None:
    plan = plan_rope(QWEN3, 750_000)
    assert (plan.factor, plan.reachable, plan.beyond_recommendation) == (23.0, True, True)
    assert "recommends factor 4 for 131,072 and no further" in plan.reason


def test_a_length_nobody_recommends_is_said_to_be_untested() -> None:
    plan = plan_rope(replace(QWEN3, yarn=None), 50_000)
    assert plan.beyond_recommendation
    assert plan.options is not None
    assert plan.options.original_max_position_embeddings == 40_960


@pytest.mark.parametrize(
    ("name", "wanted", "words"),
    [
        ("gemma-3-27b", 200_000, "separate rope parameters"),
        ("llama-3.1-8b", 300_000, "already scaled by 'llama3'"),
        ("deepseek-v3", 300_000, "already stretches it by YaRN (factor 40)"),
        ("kimi-linear-48b-a3b", 2_000_000, "no rotary embedding"),
        ("qwen3-8b", 10**9, "beyond factor 64"),
    ],
)
def test_some_ropes_cannot_be_stretched(name: str, wanted: int, words: str) -> None:
    plan = plan_rope(load_catalogue_model(name), wanted)
    assert (plan.reachable, plan.options, plan.factor) == (False, None, None)
    assert words in plan.reason


def test_a_factor_given_by_hand_is_kept_even_within_the_native_length() -> None:
    plan = plan_rope(QWEN36, 100_000, "4")
    assert (plan.factor, plan.reachable) == (4.0, True)


def test_a_factor_given_by_hand_may_replace_the_publishers_own() -> None:
    plan = plan_rope(load_catalogue_model("gpt-oss-20b"), 200_000, "64")
    assert (plan.factor, plan.reachable, plan.beyond_recommendation) == (64.0, True, True)


def test_a_factor_that_falls_short_does_not_reach() -> None:
    plan = plan_rope(QWEN36, 750_000, "2")
    assert not plan.reachable
    assert "524,288 tokens, less than the 750,000" in plan.reason


def test_without_yarn_only_the_native_length_is_reached() -> None:
    assert plan_rope(QWEN36, 262_144, "none").reachable
    refused = plan_rope(QWEN36, 750_000, "none")
    assert not refused.reachable
    assert "YaRN is off" in refused.reason


@pytest.mark.parametrize("text", ["0.5", "-1", "nan", "inf", "many"])
def test_a_factor_that_is_no_factor_is_refused(text: str) -> None:
    with pytest.raises(UsageError, match="is not understood"):
        plan_rope(QWEN36, 750_000, text)
