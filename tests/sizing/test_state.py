"""Recurrent state: bytes of one state, and states of one request."""

from dataclasses import replace
from typing import Any

import pytest
from tests.sizing.models import NEMOTRON_H_8B, QWEN3_NEXT_80B, QWEN35_27B

from longreach.engine.release import get_release
from longreach.errors import UsageError
from longreach.model.spec import (
    GatedDeltaNetLayer,
    KdaLayer,
    LinearAttentionLayer,
    Mamba1Layer,
    Mamba2Layer,
    RecurrentLayer,
    ShortConvLayer,
)
from longreach.sizing.state import state_bytes_per_gpu, state_mode, states_per_request
from longreach.sizing.values import KvCacheRequest

WIDE_STATE = 48 * 128 * 128
GDN = GatedDeltaNetLayer(16, 48, 128, 128, 4)
KDA = KdaLayer(32, 128, 4)
MAMBA2 = Mamba2Layer(8192, 8, 128, 128, 64, 4)
ONE_GROUP = Mamba2Layer(8192, 1, 128, 128, 64, 4)
MAMBA1 = Mamba1Layer(8192, 16, 4)


def request(**changes: Any) -> KvCacheRequest:
    release = get_release(changes.pop("release", "0.32.0"))
    return replace(KvCacheRequest(QWEN3_NEXT_80B, release, 1000, 10**9), **changes)


@pytest.mark.parametrize(
    ("layer", "changes", "expected"),
    [
        pytest.param(GDN, {}, 10240 * 3 * 2 + WIDE_STATE * 2, id="gated-delta"),
        pytest.param(
            GDN,
            {"tp_size": 4, "num_speculative_tokens": 3},
            2560 * 6 * 2 + 12 * 128 * 128 * 2,
            id="drafts widen it",
        ),
        pytest.param(GDN, {"model": QWEN35_27B}, 10240 * 3 * 2 + WIDE_STATE * 4, id="the model forces float32"),
        pytest.param(GDN, {"force_fp32_state": True}, 10240 * 3 * 2 + WIDE_STATE * 4, id="the CPU forces float32"),
        pytest.param(
            GDN,
            {"model": QWEN35_27B, "mamba_ssm_cache_dtype": "float16"},
            10240 * 3 * 2 + WIDE_STATE * 2,
            id="the user wins",
        ),
        pytest.param(
            GDN, {"mamba_cache_dtype": "float32"}, 10240 * 3 * 4 + WIDE_STATE * 4, id="auto follows the convolution"
        ),
        pytest.param(KDA, {}, 12288 * 3 * 2 + 32 * 128 * 128 * 4, id="kimi delta keeps float32"),
        pytest.param(MAMBA2, {}, (8192 + 2048) * 3 * 2 + 128 * 64 * 128 * 2, id="mamba2"),
        pytest.param(
            Mamba2Layer(8192, 1, 128, 128, 64, 4),
            {"tp_size": 4},
            (8192 + 1024) // 4 * 3 * 2 + 32 * 64 * 128 * 2,
            id="groups grow to TP",
        ),
        pytest.param(MAMBA1, {"num_speculative_tokens": 3}, 8192 * 3 * 2 + 8192 * 16 * 2, id="mamba1 knows no drafts"),
        pytest.param(ShortConvLayer(2048, 3), {"tp_size": 2}, 1024 * 2 * 2, id="short convolution"),
        pytest.param(LinearAttentionLayer(64, 96), {"tp_size": 2}, 32 * 96 * 96 * 2, id="linear attention"),
    ],
)
def test_one_state_takes_its_shape_times_its_dtype(
    layer: RecurrentLayer, changes: dict[str, Any], expected: int
) -> None:
    assert state_bytes_per_gpu(layer, request(**changes)) == expected


@pytest.mark.parametrize(
    ("layer", "changes", "expected"),
    [
        pytest.param(GDN, {}, 2, id="running and aligned"),
        pytest.param(GDN, {"num_speculative_tokens": 3}, 5, id="one a draft token"),
        pytest.param(
            GDN, {"prefix_caching": False, "num_speculative_tokens": 3}, 4, id="no aligned state without prefix caching"
        ),
        pytest.param(MAMBA2, {}, 3, id="mamba2 checkpoints its prefill"),
        pytest.param(MAMBA2, {"release": "0.28.0"}, 2, id="not in 0.28"),
        pytest.param(MAMBA2, {"prefix_caching": False}, 1, id="nor without prefix caching"),
        pytest.param(KDA, {}, 2, id="kimi-linear does not"),
        pytest.param(KdaLayer(32, 128, 4, checkpoints_prefill=True), {}, 3, id="kimi-k3 does"),
        pytest.param(
            GDN, {"release": "0.33.0", "gdn_flashinfer_prefill": True}, 3, id="gated-delta on flashinfer from 0.33"
        ),
        pytest.param(GDN, {"gdn_flashinfer_prefill": True}, 2, id="not in 0.32"),
        pytest.param(MAMBA1, {}, 2, id="mamba1"),
    ],
)
def test_a_request_holds_as_many_states_as_the_release_keeps(
    layer: RecurrentLayer, changes: dict[str, Any], expected: int
) -> None:
    assert states_per_request(layer, request(**changes)) == expected


def test_tp_that_does_not_divide_a_state_is_refused() -> None:
    with pytest.raises(UsageError, match="does not divide the recurrent layers"):
        state_bytes_per_gpu(GDN, request(tp_size=5))


def test_an_unknown_state_dtype_is_refused() -> None:
    with pytest.raises(UsageError) as raised:
        state_bytes_per_gpu(GDN, request(mamba_ssm_cache_dtype="float23"))
    assert "float32" in raised.value.fix


def test_aligned_states_beside_drafts_do_not_start_before_0_17() -> None:
    request = KvCacheRequest(QWEN35_27B, get_release("0.16.0"), 4096, 2**34, num_speculative_tokens=2)
    with pytest.raises(UsageError, match="keeps no prefixes of this hybrid model beside draft tokens"):
        state_mode(request)
    assert state_mode(replace(request, release=get_release("0.17.1"))) == "align"
    assert state_mode(replace(request, release=get_release("0.11.0"))) == "none"


@pytest.mark.parametrize(
    ("release", "asked", "drafts", "mode"),
    [
        ("0.13.0", None, 0, "all"),
        ("0.18.1", None, 0, "all"),
        ("0.20.2", None, 2, "align"),
        ("0.28.0", None, 0, "align"),
        ("0.28.0", "all", 0, "all"),
        ("0.32.0", "all", 0, "align"),
    ],
)
def test_mamba_models_keep_every_state_where_the_release_does(
    release: str, asked: str | None, drafts: int, mode: str
) -> None:
    request = KvCacheRequest(
        NEMOTRON_H_8B,
        get_release(release),
        4096,
        2**34,
        mamba_cache_mode=asked,
        num_speculative_tokens=drafts,
    )
    assert state_mode(request) == mode
