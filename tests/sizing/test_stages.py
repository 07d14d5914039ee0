"""Pipeline stages: which layers sit where."""

from dataclasses import replace

import pytest
from tests.sizing.models import DEEPSEEK_V3, DEEPSEEK_V32, NEMOTRON_H_8B, QWEN3_32B, WHISPER, attention, spec

from longreach.errors import UsageError
from longreach.sizing.stages import locate_layers, split_stages


@pytest.mark.parametrize(
    ("num_layers", "pp_size", "expected"),
    [(64, 1, [64]), (64, 4, [16] * 4), (61, 2, [31, 30]), (62, 4, [15, 16, 16, 15]), (63, 4, [16, 16, 16, 15])],
)
def test_layers_left_over_go_to_the_stages_before_the_last(num_layers: int, pp_size: int, expected: list[int]) -> None:
    model = spec("any", [attention(8, 128)] * num_layers)
    stages = split_stages(model, locate_layers(model), pp_size)
    assert [len(stage) for stage in stages] == expected


def test_an_indexer_sits_with_its_attention() -> None:
    places = locate_layers(DEEPSEEK_V32)
    assert places.is_exact
    assert places.indices[:4] == (0, 0, 1, 1)


def test_parallel_layers_share_a_decoder_layer() -> None:
    assert locate_layers(WHISPER).indices[:4] == (0, 0, 1, 1)


def test_drafts_come_last() -> None:
    places = locate_layers(DEEPSEEK_V3, DEEPSEEK_V3.draft_layers)
    assert places.indices[-2:] == (60, 61)
    assert split_stages(DEEPSEEK_V3, places, 2)[1][-1] == 61


def test_unrecorded_layers_are_spread_and_said_to_be() -> None:
    places = locate_layers(NEMOTRON_H_8B)
    assert not places.is_exact
    assert places.indices == tuple(sorted(places.indices))
    assert places.indices[-1] < NEMOTRON_H_8B.num_layers


def test_recorded_layers_are_taken_as_they_are() -> None:
    recorded = replace(NEMOTRON_H_8B, layer_indices=tuple(range(24, 52)))
    places = locate_layers(recorded)
    assert places.is_exact
    assert places.indices[0] == 24
    with pytest.raises(UsageError, match="leaves a stage without KV cache"):
        split_stages(recorded, places, 4)


def test_a_single_stage_holds_everything() -> None:
    places = locate_layers(QWEN3_32B)
    assert split_stages(QWEN3_32B, places, 1) == (tuple(range(64)),)
