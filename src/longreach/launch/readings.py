"""What a started engine says about itself: facts from its log and its metrics page. Pure."""

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from longreach.engine import events
from longreach.engine.events import LogEvent
from longreach.engine.logs import parse_log_line, split_log_line
from longreach.engine.metrics import CacheConfig

_SHOWN_LENGTH = 160
_CONFIG = re.compile(r"Initializing a V1 LLM engine \(v\S+\) with config: ")
_PARALLEL_SIZES = ("tensor_parallel_size", "pipeline_parallel_size", "data_parallel_size")


@dataclass(frozen=True, slots=True)
class Reading:
    """One fact the engine stated. `decimals` is set when the engine rounded it."""

    fact: str  # a field of ExpectedEngine
    value: int | float | str
    source: str
    decimals: int | None = None


@dataclass(frozen=True, slots=True)
class LoggedLine:
    """A line of the log and the event in it."""

    text: str
    event: LogEvent


def read_log_events(lines: Iterable[str]) -> tuple[LoggedLine, ...]:
    """The lines that say something, decoration taken off."""
    parsed = ((line, parse_log_line(line)) for line in lines)
    return tuple(LoggedLine(split_log_line(line).text, event) for line, event in parsed if event is not None)


def readings_of_log(lines: Iterable[LoggedLine]) -> tuple[Reading, ...]:
    """The facts a log tells, each once: workers and ranks repeat them."""
    found = (
        reading for line in lines for reading in (*_of_event(line.event, _cite(line.text)), *_of_config_line(line.text))
    )
    return tuple(dict.fromkeys(found))


def _cite(text: str) -> str:
    return f"its log: {text if len(text) <= _SHOWN_LENGTH else text[: _SHOWN_LENGTH - 3] + '...'}"


def _of_event(event: LogEvent, source: str) -> Iterator[Reading]:
    match event:
        case events.KvCapacityLine(_, tokens, _, concurrency):
            if tokens is not None:
                yield Reading("kv_capacity_tokens", tokens, source)
            if concurrency is not None:
                yield Reading("max_concurrency", concurrency, source, decimals=2)
        case events.MaxModelLen(max_model_len):
            yield Reading("max_model_len", max_model_len, source)
        case events.KvCacheDtype(name):
            yield Reading("kv_cache_dtype", name, source)
        case events.AttentionBackend(name, _, False):
            yield Reading("attention_backend", name, source)
        case events.EngineVersion(version):
            yield Reading("release", version, source)


def _of_config_line(text: str) -> Iterator[Reading]:
    """The engine core prints its whole configuration, defaults included. A KV cache of `auto` takes the model's dtype."""
    if not _CONFIG.search(text):
        return
    for name in _PARALLEL_SIZES:
        if match := re.search(rf"\b{name}=(\d+)", text):
            yield Reading(name, int(match[1]), f"its log: {match[0]}")
    kv_dtype, dtype = re.search(r"\bkv_cache_dtype=(\w+)", text), re.search(r"(?<![\w])dtype=torch\.(\w+)", text)
    if kv_dtype and kv_dtype[1] != "auto":
        yield Reading("kv_cache_dtype", kv_dtype[1], f"its log: {kv_dtype[0]}")
    elif kv_dtype and dtype:
        yield Reading("kv_cache_dtype", f"auto ({dtype[1]})", f"its log: kv_cache_dtype=auto, dtype={dtype[1]}")


def readings_of_cache_config(engines: Iterable[CacheConfig]) -> tuple[Reading, ...]:
    """The facts in the labels of `vllm:cache_config_info`, of every engine behind the server."""
    return tuple(dict.fromkeys(reading for engine in engines for reading in _of_cache_config(engine)))


def _of_cache_config(config: CacheConfig) -> Iterator[Reading]:
    stated: tuple[tuple[str, str, int | float | None], ...] = (
        ("kv_capacity_tokens", "kv_cache_size_tokens", config.kv_cache_size_tokens),
        ("max_concurrency", "kv_cache_max_concurrency", config.kv_cache_max_concurrency),
        ("num_blocks", "num_gpu_blocks", config.num_gpu_blocks),
        ("block_size", "block_size", config.block_size),
    )
    for fact, label, value in stated:
        if value is not None:
            yield Reading(fact, value, f"cache_config_info: {label}={value}")
    if config.cache_dtype is not None and config.cache_dtype != "auto":
        yield Reading("kv_cache_dtype", config.cache_dtype, f"cache_config_info: cache_dtype={config.cache_dtype}")
