"""Lines of an engine's log to typed events, for releases 0.8 to 0.33. Pure.

Matched by text alone: prefix, colours, process tags, file names and line numbers change from release to release.
"""

import ast
import re
from collections.abc import Callable
from dataclasses import dataclass

from longreach.engine import events
from longreach.engine.events import LogEvent
from longreach.units import GIB

_ANSI = re.compile(r"\x1b\[[0-9;]*[A-Za-z]")
_OUTER = re.compile(  # what compose, journald and container runtimes put before a line
    r"(?:[\w.\-]+ *\| |[A-Z][a-z]{2} [ \d]\d \d\d:\d\d:\d\d \S+ [^\s\[]+\[\d+\]: )?"
    r"(?:\d{4}-\d\d-\d\d[T ]\d\d:\d\d:\d\d(?:[.,]\d+)?(?:Z|[+-]\d\d:?\d\d)? )?"
)
_PREFIX = re.compile(
    r"(?:\((?P<process>[\w.\-]+)(?: rank=\d+)?(?: [a-z]+=\d+)*? pid=(?P<pid>\d+)\)\s*)?"
    r"(?P<level>DEBUG|INFO|WARNING|ERROR|CRITICAL) \d\d-\d\d \d\d:\d\d:\d\d \[[^\]]*\] ?"
)
_BARE_PREFIX = re.compile(r"\((?P<process>[\w.\-]+)(?: [a-z]+=\d+)*? pid=(?P<pid>\d+)\)\s?")
_UVICORN = re.compile(r"(?P<level>INFO|WARNING|ERROR):\s+")
_EXCEPTION = re.compile(r"(?:[A-Za-z_]\w*\.)*[A-Z]\w*(?:Error|Exception|Interrupt|Exit)(?:: |$)")
_FRAME = re.compile(r"\s|Traceback \(most recent call last\)|$")
_USAGE_ERROR = re.compile(r"\b(?:vllm(?: serve)?|api_server\.py): error: ")


@dataclass(frozen=True, slots=True)
class LogLine:
    """One line without its decoration. `process` is "APIServer", "EngineCore", "Worker_TP0", ...; None when untagged."""

    text: str
    level: str | None = None
    process: str | None = None
    pid: int | None = None


def split_log_line(line: str) -> LogLine:
    """Take container prefix, colours, process tag, level, time and place off; of a redrawn progress line the last state stays."""
    plain = _OUTER.sub("", _ANSI.sub("", line.rstrip("\r\n")).rpartition("\r")[2], count=1)
    for prefix in (_PREFIX, _BARE_PREFIX, _UVICORN):
        match = prefix.search(plain) if prefix is _PREFIX else prefix.match(plain)
        if match:
            groups = match.groupdict()
            pid = groups.get("pid")
            return LogLine(plain[match.end() :], groups.get("level"), groups.get("process"), int(pid) if pid else None)
    return LogLine(plain)


def parse_log_line(line: str) -> LogEvent | None:
    """The event of a line; None for lines that say nothing we use. Knows warnings and errors it has no row for, too."""
    split = split_log_line(line)
    for pattern, build in _PATTERNS:
        if match := pattern.search(split.text):
            return build(match)
    for pattern, topic, meaning in _NOTICES:
        if pattern.search(split.text):
            return events.Notice(topic, meaning, split.text)
    if _FRAME.match(split.text):
        return None
    if split.level in ("ERROR", "CRITICAL") or is_exception(split.text):
        return events.LoggedError(split.text)
    return events.LoggedWarning(split.text) if split.level == "WARNING" else None


def is_exception(text: str) -> bool:
    """Whether an undecorated line is the last line of a traceback or the parser's complaint."""
    return bool(_EXCEPTION.match(text) or _USAGE_ERROR.search(text))


def _int(text: str) -> int:
    return int(text.replace(",", ""))


def _gib(text: str) -> int:
    return round(float(text) * GIB)


def _share(text: str | None) -> float | None:
    return None if text is None else float(text) / 100


def _arguments_echo(match: re.Match[str]) -> LogEvent:
    try:
        value = ast.literal_eval(match[1])
    except (ValueError, SyntaxError):
        return events.ArgumentsEcho(match[1], None)
    return events.ArgumentsEcho(match[1], tuple(value.items()))


def _capacity(match: re.Match[str]) -> LogEvent:
    tokens, concurrency = match["tokens"], match["concurrency"]
    return events.KvCapacityLine(match["device"], _int(tokens), *_concurrency(match["length"], concurrency))


def _concurrency(length: str | None, concurrency: str | None) -> tuple[int | None, float | None]:
    return (None, None) if length is None or concurrency is None else (_int(length), float(concurrency))


def _speculation(match: re.Match[str]) -> LogEvent:
    rates = tuple(float(rate) for rate in match["positions"].split(",") if rate.strip())
    return events.SpeculationStats(
        float(match["length"]), int(match["accepted"]), int(match["drafted"]), float(match["rate"]) / 100, rates
    )


def _stats(match: re.Match[str]) -> LogEvent:
    return events.EngineStats(
        engine=int(match["engine"]),
        prompt_tokens_per_s=float(match["prompt"]),
        generation_tokens_per_s=float(match["generation"]),
        num_running=int(match["running"]),
        num_waiting=int(match["waiting"]),
        num_deferred=int(match["deferred"] or 0),
        num_preemptions=int(match["preemptions"] or 0),
        kv_cache_usage=float(match["usage"]) / 100,
        prefix_hit_rate=_share(match["hits"]),
        external_prefix_hit_rate=_share(match["external"]),
        mm_hit_rate=_share(match["mm"]),
    )


def _auto_fit(match: re.Match[str]) -> LogEvent:
    if match["full"]:
        return events.MaxModelLen(int(match["full"]), is_auto_fit=True)
    return events.MaxModelLen(int(match["to"]), is_auto_fit=True, reduced_from=int(match["from"]))


_STATS = (
    r"Engine (?P<engine>\d+): Avg prompt throughput: (?P<prompt>[\d.]+) tokens/s, "
    r"Avg generation throughput: (?P<generation>[\d.]+) tokens/s, Running: (?P<running>\d+) reqs, "
    r"Waiting: (?P<waiting>\d+) reqs(?:, Deferred: (?P<deferred>\d+) reqs)?(?:, KV fetch: [^,]*, [^,]*, [^,]*)?"
    r"(?:, Preemptions: (?P<preemptions>\d+))?, [\w +]+ KV cache usage: (?P<usage>[\d.]+)%"
    r"(?:, Prefix cache hit rate: (?P<hits>[\d.]+)%)?(?:, Corrupted: \d+ reqs)?"
    r"(?:, External prefix cache hit rate: (?P<external>[\d.]+)%)?(?:, MM cache hit rate: (?P<mm>[\d.]+)%)?"
)
_SPECULATION = (
    r"SpecDecoding metrics: Mean acceptance length: (?P<length>[\d.]+), .*Accepted: (?P<accepted>\d+) tokens, "
    r"Drafted: (?P<drafted>\d+) tokens, Per-position acceptance rate: (?P<positions>[\d., ]*), "
    r"Avg Draft acceptance rate: (?P<rate>[\d.]+)%"
)
_CAPACITY = (
    r"(?P<device>\w+(?: \+ host)?) KV cache size: (?P<tokens>[\d,]+) tokens"
    r"(?:, Maximum concurrency for (?P<length>[\d,]+) tokens per request: (?P<concurrency>[\d.]+)x)?"
)
_Builder = Callable[[re.Match[str]], LogEvent]
_ROWS: tuple[tuple[str, _Builder], ...] = (
    (_STATS, _stats),
    (_SPECULATION, _speculation),
    (_CAPACITY, _capacity),
    (
        r"Maximum concurrency for ([\d,]+) tokens per request: ([\d.]+)x",
        lambda match: events.KvCapacityLine(None, None, _int(match[1]), float(match[2])),
    ),
    (r"non-default args: (\{.*\})", _arguments_echo),
    (r"Initializing a V1 LLM engine \(v([\w.+]+)\)", lambda match: events.EngineVersion(match[1])),
    (r"vLLM (?:API )?server version (\S+?),?(?: |$)", lambda match: events.EngineVersion(match[1])),
    (r"█ .* version (\S+)", lambda match: events.EngineVersion(match[1])),
    (r"Resolved architecture: (\w+)", lambda match: events.Architecture(match[1])),
    (r"Using max model len (\d+)", lambda match: events.MaxModelLen(int(match[1]))),
    (
        r"Auto-fit max_model_len: (?:full model context length (?P<full>\d+)|reduced from (?P<from>\d+) to (?P<to>\d+))",
        _auto_fit,
    ),
    (r"Starting to load model ", lambda _: events.WeightsStarted()),
    (
        r"Loading \S+ checkpoint shards:\s+\d+% Completed \| (\d+)/(\d+)",
        lambda match: events.WeightsProgress(int(match[1]), int(match[2])),
    ),
    (r"Loading weights took ([\d.]+) seconds", lambda match: events.WeightsLoaded(float(match[1]))),
    (
        r"Model loading took ([\d.]+) GiB(?: memory)? and ([\d.]+) seconds",
        lambda match: events.WeightsMemory(_gib(match[1]), float(match[2])),
    ),
    (r"Available KV cache memory: (-?[\d.]+) GiB", lambda match: events.KvMemory(_gib(match[1]), is_explicit=False)),
    (r"reserved ([\d.]+) GiB memory for KV Cache as", lambda match: events.KvMemory(_gib(match[1]), is_explicit=True)),
    (r"Explicitly set \(([\d.]+)/[\d.]+\) GiB for KV", lambda match: events.KvMemory(_gib(match[1]), is_explicit=True)),
    (r"Estimated CUDA graph memory: ([\d.]+) GiB", lambda match: events.GraphMemory(_gib(match[1]))),
    (
        r"CUDA graph pool memory: ([\d.]+) GiB \(actual\), ([\d.]+) GiB \(estimated\)",
        lambda match: events.GraphMemory(_gib(match[2]), _gib(match[1])),
    ),
    (
        r"Capturing CUDA graphs(?: \(([^)]*)\))?:\s+\d+%\|[^|]*\| (\d+)/(\d+)",
        lambda match: events.GraphProgress(match[1] or "", int(match[2]), int(match[3])),
    ),
    (
        r"Graph capturing finished in ([\d.]+) secs, took (-?[\d.]+) GiB",
        lambda match: events.GraphsCaptured(float(match[1]), _gib(match[2])),
    ),
    (r"Starting torch\.compile", lambda _: events.CompileStarted()),
    (r"torch\.compile t(?:akes|ook) ([\d.]+) s in total", lambda match: events.Compiled(float(match[1]))),
    (r"Initial profiling/warmup run took ([\d.]+) s", lambda match: events.Profiled(float(match[1]))),
    (
        r"init engine \(profile, create kv cache, warmup model\) took ([\d.]+) s(?:econds)?(?: \(compilation: ([\d.]+) s)?",
        lambda match: events.EngineInitialized(float(match[1]), None if match[2] is None else float(match[2])),
    ),
    (
        r"Using (\w+) attention backend out of potential backends: [\[(]([^\])]*)[\])]",
        lambda match: events.AttentionBackend(match[1], tuple(re.findall(r"\w+", match[2]))),
    ),
    (r"Using (\w+) MLA prefill backend", lambda match: events.AttentionBackend(match[1], is_mla_prefill=True)),
    (
        r"Using (.+?) backend on V1 engine",
        lambda match: events.AttentionBackend(match[1].upper().replace(" ", "_")),
    ),
    (r"Using (\w+) KV cache layout", lambda match: events.KvCacheLayout(match[1])),
    (r"Using (\S+) data type to store kv cache", lambda match: events.KvCacheDtype(match[1])),
    (
        r"Chunked prefill is enabled with max_num_batched_tokens=(\d+)",
        lambda match: events.ChunkedPrefill(int(match[1])),
    ),
    (r"Setting attention block size to (\d+) tokens", lambda match: events.HybridBlockSize(int(match[1]))),
    (r"Padding mamba page size by ([\d.]+)%", lambda match: events.StatePadding(float(match[1]) / 100)),
    (
        r"Add (\d+) padding layers, may waste at most ([\d.]+)% KV cache memory",
        lambda match: events.PaddingLayers(int(match[1]), float(match[2]) / 100),
    ),
    (r"Creating v1 connector with name: (\w+)", lambda match: events.OffloadConnector(match[1])),
    (r"Creating offloading spec with name: (\S+)", lambda match: events.OffloadSpec(match[1])),
    (r"Created secondary tier #(\d+) \((\S+)\)", lambda match: events.SecondaryTier(int(match[1]), match[2])),
    (
        r"Created TieringOffloadingManager with primary tier \((\w+), (\d+) chunks\) and (\d+) secondary tier",
        lambda match: events.PrimaryTier(match[1], int(match[2]), int(match[3])),
    ),
    (
        r"Created mmap file (.+) \(([\d.]+) GB\)",
        lambda match: events.OffloadFile(match[1], round(float(match[2]) * 10**9)),
    ),
    (
        r"Binding worker subprocess \(local_rank=(\d+)[^)]*\) to (?:CPUs (\S+) and )?NUMA node (\d+)",
        lambda match: events.NumaBinding(int(match[1]), int(match[3]), match[2]),
    ),
    (r"KV Transfer metrics: (.*)", lambda match: events.KvTransferStats(match[1])),
    (r"Starting vLLM (?:API )?server(?: \d+)? on (\S+)", lambda match: events.Listening(match[1])),
    (r"Application startup complete", lambda _: events.Ready()),
    (r"\[shutdown\] API server: shutdown triggered", lambda _: events.ShutdownStarted()),
)
_PATTERNS = tuple((re.compile(pattern), build) for pattern, build in _ROWS)

_NOTICE_ROWS: tuple[tuple[str, str, str], ...] = (
    (r"cudaHostRegister failed", "offload_memory_unpinned", "the CPU tier is not pinned: transfers work, slower"),
    (
        r"O_DIRECT is not supported at",
        "disk_tier_uses_page_cache",
        "the disk tier reads and writes through the page cache",
    ),
    (
        r"Turning off hybrid kv cache manager",
        "hybrid_manager_off",
        "sliding and recurrent layers are counted as full attention",
    ),
    (
        r"Using uncalibrated q_scale",
        "fp8_scales_uncalibrated",
        "the checkpoint has no scales for fp8 attention: check accuracy",
    ),
    (r"but prefill queries are not quantized", "fp8_prefill_queries_plain", "prefill runs its queries in 16 bit"),
    (r"Found duplicate keys", "duplicate_flags", "a flag is given twice; the last one holds"),
    (
        r"does not officially support disabling chunked prefill",
        "chunked_prefill_off",
        "the engine may crash or answer wrongly",
    ),
    (
        r"Async scheduling not supported with|Async scheduling (?:will be|is) disabled",
        "async_scheduling_off",
        "steps do not overlap",
    ),
    (
        r"User lacks permission to set NUMA memory policy",
        "numa_policy_refused",
        "the container needs --cap-add SYS_NICE",
    ),
    (r"NUMA binding requires spawn", "numa_needs_spawn", "workers are not bound"),
    (r"Custom allreduce is disabled", "custom_all_reduce_off", "all-reduce goes through NCCL"),
    (r"No available shared memory broadcast block found", "workers_stalled", "a worker hangs or does something long"),
    (r"method `\w+` is deprecated and replaced with mtp", "mtp_name_deprecated", "write the method as mtp"),
    (r"Loading out-of-tree offloading spec", "out_of_tree_offload_spec", "the offload spec is not vLLM's own"),
    (r"Cudagraph is disabled under eager mode|Enforce eager set", "graphs_off", "decode steps pay launch overhead"),
)
_NOTICES = tuple((re.compile(pattern), topic, meaning) for pattern, topic, meaning in _NOTICE_ROWS)
