"""Three answers, one state."""

import dataclasses

import pytest

from longreach.engine.metrics import CacheConfig, EngineMetrics
from longreach.errors import ServerError, UsageError
from longreach.measure.server_state import choose_model, read_server_state
from longreach.measure.verify_report import ServerState
from longreach.wire.bodies import ServedModel

MODEL = ServedModel("m", 4096)
CACHE = CacheConfig("0", (), 16, 512, "auto", 0.9, None, 8192, 2.0)


def test_of_several_engines_the_smallest_counts() -> None:
    smaller = dataclasses.replace(CACHE, engine="1", num_gpu_blocks=500, kv_cache_size_tokens=8000)
    state = read_server_state(MODEL, "0.32.0", EngineMetrics(cache=(CACHE, smaller)))
    assert state == ServerState("0.32.0", 4096, 8000, 2.0, 16, 500, "auto")


@pytest.mark.parametrize("metrics", [None, EngineMetrics()], ids=["no_page", "no_cache_config"])
def test_without_metrics_only_length_and_version_are_known(metrics: EngineMetrics | None) -> None:
    assert read_server_state(MODEL, None, metrics) == ServerState(max_model_len=4096)


def test_the_only_model_needs_no_name_but_two_do() -> None:
    assert choose_model([MODEL], None) is MODEL
    with pytest.raises(UsageError, match="not clear"):
        choose_model([MODEL, ServedModel("n", None)], None)
    with pytest.raises(ServerError, match="serves no model"):
        choose_model([], None)


def test_absent_model_is_reported_with_what_is_served() -> None:
    assert choose_model([MODEL, ServedModel("n", 1)], "n").model_id == "n"
    with pytest.raises(ServerError, match="does not serve 'x'"):
        choose_model([MODEL], "x")
