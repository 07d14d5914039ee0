"""Deployments on which the rope rules speak, and near ones on which they stay silent."""

from dataclasses import replace

from tests.rules.case import Case
from tests.rules.deployments import DENSE, HYBRID, QWEN3_32B, YARN_3, with_model, with_options

from longreach.engine.options import YarnOptions
from longreach.engine.release import get_release
from longreach.rules import rope
from longreach.sizing.values import RopePlan
from longreach.units import MIB

_PLANNED = RopePlan(262_144, 750_000, 3.0, 384 * MIB, YARN_3, reachable=True, reason="YaRN factor 3")
_OUT_OF_REACH = RopePlan(
    32_768, 750_000, None, 0, None, reachable=False, reason="a factor of 22.9 is needed, 4 is published"
)
_UNSCALED = replace(with_options(HYBRID, yarn=None), rope=_PLANNED)
_NATIVE = with_options(HYBRID, yarn=None, max_model_len=262_144)
_TEXT_YARN = YarnOptions(4.0, 32_768, (), (("rope_theta", 1e6),))
_TEXT = with_options(DENSE, yarn=_TEXT_YARN, max_model_len=131_072)
assert QWEN3_32B.rope is not None
_OTHER_BASE = replace(QWEN3_32B.rope, theta=5e6)
_DROPPED = with_options(
    _TEXT, yarn=replace(_TEXT_YARN, rope_parameters=())
)  # its class fills in 1e6, the model's own base

CASES = (
    Case(rope.max_len_over_derived, _UNSCALED, (HYBRID, _NATIVE, replace(DENSE, rope=_OUT_OF_REACH))),
    Case(
        rope.rope_cannot_stretch,
        replace(DENSE, rope=_OUT_OF_REACH),
        (DENSE, replace(HYBRID, rope=_PLANNED)),
    ),
    Case(
        rope.yarn_costs_short_prompts,
        HYBRID,
        (_NATIVE, replace(HYBRID, mean_input_tokens=500_000)),
    ),
    Case(
        rope.yarn_needs_max_position_embeddings,
        HYBRID,
        (_NATIVE, replace(HYBRID, release=get_release("0.29.0"))),
    ),
    Case(
        rope.yarn_factor_too_small,
        with_options(HYBRID, yarn=replace(YARN_3, factor=2.0)),
        (HYBRID, _NATIVE),
    ),
    Case(
        rope.yarn_override_nested,
        HYBRID,
        (_NATIVE, _TEXT, with_options(HYBRID, yarn=replace(YARN_3, override_path=()))),
    ),
    Case(
        rope.yarn_override_misplaced,
        with_options(HYBRID, yarn=replace(YARN_3, override_path=())),
        (HYBRID, _NATIVE, _TEXT),
    ),
    Case(
        rope.rope_theta_lost,
        with_model(_DROPPED, rope=_OTHER_BASE),
        (
            _TEXT,
            _DROPPED,
            DENSE,
            with_options(HYBRID, yarn=replace(YARN_3, rope_parameters=())),
            with_model(_TEXT, rope=None),
        ),
    ),
    Case(
        rope.rope_table_bytes,
        replace(HYBRID, rope=_PLANNED),
        (HYBRID, replace(HYBRID, rope=replace(_PLANNED, table_bytes_per_gpu=16 * MIB))),
    ),
    Case(
        rope.beyond_published_length,
        with_options(HYBRID, yarn=replace(YARN_3, factor=5.0), max_model_len=1_200_000),
        (HYBRID, with_model(HYBRID, yarn=None)),
    ),
    Case(
        rope.yarn_factor_larger_than_needed,
        with_options(HYBRID, yarn=replace(YARN_3, factor=4.0)),
        (HYBRID, _NATIVE, with_options(HYBRID, yarn=YARN_3, max_model_len=262_144)),
    ),
    Case(
        rope.yarn_not_needed,
        with_options(HYBRID, max_model_len=262_144),
        (HYBRID, _NATIVE),
    ),
    Case(
        rope.yarn_unpublished,
        with_model(HYBRID, yarn=None),
        (HYBRID, with_model(_NATIVE, yarn=None)),
    ),
    Case(
        rope.length_check_silenced,
        with_options(HYBRID, env=(("VLLM_ALLOW_LONG_MAX_MODEL_LEN", "1"), ("HF_HUB_OFFLINE", "1"))),
        (HYBRID, with_options(HYBRID, env=(("VLLM_ALLOW_LONG_MAX_MODEL_LEN", "0"),))),
    ),
)
