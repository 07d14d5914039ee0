"""Recorded logs and metrics pages of real engines, each with what that engine did."""

from pathlib import Path

import pytest

from longreach.engine import events
from longreach.engine.failures import UNKNOWN, find_failure
from longreach.engine.logs import parse_log_line
from longreach.engine.metrics import parse_metrics

CORPUS = Path(__file__).parents[1] / "corpus"
REFUSALS = {
    "fp8-refused": ("kv_dtype_unsupported", "Worker", "--kv-cache-dtype auto"),
    "no-model": ("model_not_cached_and_hub_unreachable", None, "local folder"),
    "kv-too-small": ("kv_too_small_for_max_len", "EngineCore", "--max-model-len 16256"),
    "offload-refused": ("offload_needs_gpu", "Worker", "--no-deps longreach"),
    "port-in-use": ("port_in_use", None, "--port"),
    "too-long": ("max_len_over_derived", None, "max_position_embeddings"),
    "unknown-flag": ("flag_unknown", None, "vllm serve --help"),
}
STARTS = {
    "dense": events.KvCapacityLine("CPU", 131_072, 65_536, 2.0),
    "hybrid": events.KvCapacityLine("CPU", 29_959, 16_384, 1.83),
}


def read_lines(name: str) -> list[str]:
    return (CORPUS / "logs" / f"0.32.0-cpu-{name}.log").read_text(encoding="utf-8").splitlines()


def read_events(name: str) -> list[events.LogEvent]:
    return [event for line in read_lines(name) if (event := parse_log_line(line)) is not None]


@pytest.mark.parametrize("path", sorted((CORPUS / "logs").glob("*.log")), ids=lambda path: path.stem)
def test_every_recorded_log_ends_ready_or_with_a_known_cause(path: Path) -> None:
    lines = path.read_text(encoding="utf-8").splitlines()
    is_ready = any(isinstance(parse_log_line(line), events.Ready) for line in lines)
    failure = find_failure(lines)
    assert is_ready == (failure is None)
    assert failure is None or failure.cause != UNKNOWN


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
    milestones = [events.ArgumentsEcho, events.Architecture, events.MaxModelLen, events.WeightsStarted,
                  events.KvMemory, events.KvCapacityLine, events.EngineInitialized, events.Listening, events.Ready]  # fmt: skip
    places = [next(place for place, event in enumerate(seen) if isinstance(event, kind)) for kind in milestones]
    assert places == sorted(places)
    assert STARTS[name] in seen
    assert find_failure(read_lines(name)) is None


@pytest.mark.parametrize("name", STARTS)
def test_log_and_metrics_page_tell_the_same_capacity(name: str) -> None:
    page = parse_metrics((CORPUS / "metrics" / f"0.32.0-cpu-{name}.txt").read_text(encoding="utf-8"))
    (cache,) = page.cache
    assert cache.kv_cache_size_tokens == STARTS[name].kv_capacity_tokens
    assert cache.kv_cache_max_concurrency == pytest.approx(STARTS[name].max_concurrency, abs=0.005)  # the log rounds


def test_a_hybrid_tells_its_block_size() -> None:
    assert events.HybridBlockSize(256) in read_events("hybrid")
    assert events.StatePadding(pytest.approx(0.9542)) in read_events("hybrid")  # type: ignore[arg-type] # compares as a float


def test_the_dense_page_holds_its_requests() -> None:
    page = parse_metrics((CORPUS / "metrics" / "0.32.0-cpu-dense.txt").read_text(encoding="utf-8"))
    assert page.prompt_tokens is not None
    by_source = dict(page.prompt_tokens_by_source or ())
    assert sum(by_source.values()) == page.prompt_tokens
    assert by_source["local_cache_hit"] == page.prefix_hit_tokens == dict(page.cached_tokens_by_source or ())["device"]
    assert (page.num_drafts, page.offload_load_bytes) == (None, None)
    assert page.num_finished == page.queue_count == page.e2e_count == page.ttft_count == 10
    assert page.ttft_sum_s is not None
    assert page.e2e_sum_s is not None
    assert page.queue_sum_s is not None
    assert page.queue_sum_s < page.ttft_sum_s < page.e2e_sum_s
