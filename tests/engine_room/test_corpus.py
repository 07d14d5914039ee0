"""Recorded logs and metrics pages of real engines, each with what that engine did."""

from pathlib import Path

import pytest

from longreach.engine import events
from longreach.engine.failures import find_failure
from longreach.engine.logs import parse_log_line
from longreach.engine.metrics import parse_metrics

CORPUS = Path(__file__).parents[1] / "corpus"
REFUSALS = {
    "kv-too-small": ("kv_too_small_for_max_len", "EngineCore", "--max-model-len 16256"),
    "offload-refused": ("offload_needs_gpu", "Worker", "spec_module_path"),
    "port-in-use": ("port_in_use", None, "--port"),
    "too-long": ("max_len_over_derived", None, "max_position_embeddings"),
    "unknown-flag": ("flag_unknown", None, "longreach lint"),
}
STARTS = {"dense": events.KvCapacityLine("CPU", 131_072, 65_536, 2.0)}


def read_lines(name: str) -> list[str]:
    return (CORPUS / "logs" / f"0.32.0-cpu-{name}.log").read_text(encoding="utf-8").splitlines()


def read_events(name: str) -> list[events.LogEvent]:
    return [event for line in read_lines(name) if (event := parse_log_line(line)) is not None]


def test_every_recorded_log_has_its_expectation() -> None:
    recorded = {path.stem.removeprefix("0.32.0-cpu-") for path in (CORPUS / "logs").glob("0.32.0-cpu-*.log")}
    assert recorded == REFUSALS.keys() | STARTS.keys()


@pytest.mark.parametrize("name", REFUSALS)
def test_a_recorded_refusal_is_found(name: str) -> None:
    cause, process, fix = REFUSALS[name]
    failure = find_failure(read_lines(name))
    assert failure is not None
    assert (failure.cause, failure.process) == (cause, process)
    assert fix in failure.fix
    assert failure.why in read_lines(name)[failure.line_number - 1]
    assert not any(isinstance(event, events.Ready) for event in read_events(name))


@pytest.mark.parametrize("name", STARTS)
def test_a_recorded_start_is_followed_to_readiness(name: str) -> None:
    seen = read_events(name)
    milestones = [events.ArgumentsEcho, events.Architecture, events.MaxModelLen, events.WeightsStarted, events.WeightsLoaded,
                  events.KvMemory, events.KvCapacityLine, events.EngineInitialized, events.Listening, events.Ready]  # fmt: skip
    places = [next(place for place, event in enumerate(seen) if isinstance(event, kind)) for kind in milestones]
    assert places == sorted(places)
    assert STARTS[name] in seen
    assert find_failure(read_lines(name)) is None


@pytest.mark.parametrize("name", STARTS)
def test_log_and_metrics_page_tell_the_same_capacity(name: str) -> None:
    page = parse_metrics((CORPUS / "metrics" / f"0.32.0-cpu-{name}.txt").read_text(encoding="utf-8"))
    (cache,) = page.cache
    assert (cache.kv_cache_size_tokens, cache.kv_cache_max_concurrency) == (
        STARTS[name].kv_capacity_tokens,
        STARTS[name].max_concurrency,
    )


def test_the_dense_page_holds_its_requests() -> None:
    page = parse_metrics((CORPUS / "metrics" / "0.32.0-cpu-dense.txt").read_text(encoding="utf-8"))
    assert page.prompt_tokens is not None
    by_source = dict(page.prompt_tokens_by_source or ())
    assert sum(by_source.values()) == page.prompt_tokens
    assert by_source["local_cache_hit"] == page.prefix_hit_tokens == dict(page.cached_tokens_by_source or ())["device"]
    assert (page.num_drafts, page.offload_load_bytes) == (None, None)
