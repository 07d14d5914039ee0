"""The tables of a run's page."""

from collections.abc import Callable
from xml.etree.ElementTree import Element

from longreach.measure.bench.selection import describe_load, words_of
from longreach.measure.bench.summary_values import (
    BenchSummary,
    Distribution,
    ForecastComparison,
    Goodput,
    Interval,
    StateSummary,
)
from longreach.measure.bench.values import BenchResult, RequestRecord
from longreach.measure.verify_report import Verdict
from longreach.report.bench_tables import NEAR_MAX, STATE_WORDS, mark_p90, mark_p99
from longreach.report.bench_text import UNCOUNTED
from longreach.report.html.elements import Content, element, table
from longreach.report.html.figures import UNKNOWN, duration, interval, percent, rate, tokens
from longreach.report.html.page import word
from longreach.report.html.plots.values import prompt_tokens
from longreach.units import format_count

_MAX_FAILED = 50
_MAX_KINDS = 20
_VERDICTS = {"pass": "pass", "fail": "FAIL", "cannot_tell": "cannot tell"}
_COMPARED = {
    "ttft_cold_s": "TTFT, cold",
    "ttft_warm_s": "TTFT, warm",
    "decode_tokens_per_s": "decode",
}
_LANDED: dict[str, tuple[Verdict, str]] = {
    "inside": ("pass", "as expected"),
    "faster": ("pass", "faster"),
    "slower": ("fail", "slower"),
    "beats_bound": ("fail", "below the bound: the bound or the measurement is wrong"),
    "no_forecast": ("cannot_tell", "no forecast"),
}


def bench_tables(summary: BenchSummary) -> list[Element]:
    """Latencies, then the same by cache state, then rates and counts."""
    states = [row for state in summary.states for row in _state_rows(state)]
    return [
        _latency_table(summary),
        *([table("By cache state", _LATENCY_HEADER, states)] if states else []),
        _rate_table(summary),
    ]


_LATENCY_HEADER = ("figure", "requests", "mean", "P50", "P90", "P99", "largest")


def _latency_table(summary: BenchSummary) -> Element:
    named = (
        ("TTFT", summary.ttft_s),
        ("time to first answer", summary.time_to_first_answer_s),
        ("ITL", summary.itl_s),
        ("chunk gap, P99 of each request", summary.chunk_gap_p99_s),
        ("E2E", summary.e2e_latency_s),
    )
    caption = "All answered requests; under each figure its 95 % interval, where there are enough requests for one. "
    caption += NEAR_MAX
    return table(caption, _LATENCY_HEADER, [_row(name, values) for name, values in named if values])


def _state_rows(state: StateSummary) -> list[tuple[Content, ...]]:
    named = (("TTFT", state.ttft_s), ("ITL", state.itl_s), ("E2E", state.e2e_latency_s))
    return [_row(f"{STATE_WORDS[state.state]}, {name}", values) for name, values in named if values]


def _row(name: str, values: Distribution) -> tuple[Content, ...]:
    return (
        name,
        f"{values.num_samples:,}",
        _figure(values.mean, values.mean_interval),
        _figure(values.p50, values.p50_interval),
        _figure(values.p90, values.p90_interval, mark_p90(values)),
        _figure(values.p99, values.p99_interval, mark_p99(values)),
        duration(values.max),
    )


def _figure(value: float, bounds: Interval | None, mark: str = "") -> Element:
    below = [] if bounds is None else [element("small", interval(bounds))]
    return element("span", f"{duration(value)}{mark}", *below)


def _goodput_text(met: Goodput | None) -> str:
    if met is None:
        return ""
    shares = "" if met.share_interval is None else _shares_text(met.share_interval)
    if met.num_unknown:
        return f"cannot be told: {UNCOUNTED} of {format_count(met.num_unknown, 'request')}"
    return f"{percent(met.share)}{shares}, {rate(met.requests_per_s, 'requests/s')}"


def _rate_table(summary: BenchSummary) -> Element:
    rows = [
        ("output", rate(summary.output_tokens_per_s, "tokens/s")),
        ("prompt", rate(summary.prompt_tokens_per_s, "tokens/s")),
        ("requests", rate(summary.requests_per_s, "requests/s")),
        ("goodput", _goodput_text(summary.goodput)),
        ("accepted draft tokens", "" if summary.acceptance_rate is None else percent(summary.acceptance_rate)),
        ("tokens a step", "" if summary.mean_acceptance_length is None else f"{summary.mean_acceptance_length:.2f}"),
        ("preemptions", "" if summary.num_preemptions is None else f"{summary.num_preemptions:,}"),
        (
            "largest use of the KV cache",
            "" if summary.kv_cache_usage_max is None else percent(summary.kv_cache_usage_max),
        ),
        ("mean time in the queue", "" if summary.queue_mean_s is None else duration(summary.queue_mean_s)),
        (
            "lateness of this client, P99",
            "" if summary.client_loop_lag_p99_s is None else duration(summary.client_loop_lag_p99_s),
        ),
    ]
    return table("Rates and counts of the whole run", ("figure", "value"), [row for row in rows if row[1]])


def _shares_text(bounds: Interval) -> str:
    return f" ({percent(bounds[0])} to {percent(bounds[1])})"


def forecast_table(summary: BenchSummary) -> Element:
    """What the plan promised beside what was measured."""
    header = ("figure", "prompt tokens", "measured (median)", "bound", "expected", "verdict")
    return table("Forecast of the plan and measurement", header, [_forecast_row(one) for one in summary.forecasts])


def _forecast_row(one: ForecastComparison) -> tuple[Content, ...]:
    def write(value: float | None) -> str:
        return rate(value, "tokens/s") if one.figure == "decode_tokens_per_s" else duration(value)

    expected = UNKNOWN if one.low is None or one.high is None else f"{write(one.low)} to {write(one.high)}"
    level, words = _LANDED[one.verdict]
    return (
        _COMPARED[one.figure],
        tokens(one.prompt_tokens),
        write(one.measured),
        write(one.bound),
        expected,
        word(level, words),
    )


def check_table(summary: BenchSummary) -> Element:
    """Every promise with its evidence."""
    rows = [
        (
            item.title,
            word(item.verdict, _VERDICTS[item.verdict]),
            element("span", item.evidence, *([element("small", f"fix: {item.fix}")] if item.fix else [])),
        )
        for item in summary.checks
    ]
    return table("Promises that were checked", ("promise", "verdict", "evidence"), rows, num_text_columns=3)


def failure_tables(result: BenchResult, summary: BenchSummary) -> list[Element]:
    """How often each error came, and the server's own words."""
    failed = [record for record in result.counted if not record.ok]
    shown = failed[:_MAX_FAILED]
    caption = (
        f"The first {len(shown)} of {format_count(len(failed), 'failed request')}"
        if len(shown) < len(failed)
        else "Each of them"
    )
    counts = [(text, f"{count:,}") for text, count in summary.errors[:_MAX_KINDS]]
    rest = summary.errors[_MAX_KINDS:]
    counts += [(f"{len(rest):,} other texts", f"{sum(count for _, count in rest):,}")] if rest else []
    header = ("request", "prompt tokens", "kind", "HTTP status", "what the server said")
    return [
        *([table("What failed how often", ("error", "requests"), counts)] if counts else []),
        table(caption, header, [_failure_row(record) for record in shown], num_text_columns=5),
    ]


def _failure_row(record: RequestRecord) -> tuple[Content, ...]:
    status = UNKNOWN if record.error_status is None else str(record.error_status)
    kind = (record.error_kind or "unknown").replace("_", " ")
    return (f"{record.phase}, {record.index}", tokens(prompt_tokens(record)), kind, status, words_of(record))


def header_table(result: BenchResult) -> Element:
    """All that must be the same for another run to be comparable."""
    header, server = result.header, result.header.server
    rows = [
        ("server", f"{header.base_url}, vLLM {server.version}" if server.version else header.base_url),
        ("model", header.model),
        ("started", header.started_at),
        ("load", describe_load(header.load)),
        ("phases", ", ".join(f"{phase.name} ({STATE_WORDS[phase.state]})" for phase in header.phases)),
        ("workload", header.workload_source),
        ("digest of the workload", header.workload_digest),
        ("seed", header.seed),
        ("tokenizer", f"{header.tokenizer}, template of {format_count(header.template_tokens, 'token')}"),
        ("measured by", f"longreach {header.longreach_version}"),
        ("temperature 0", "yes" if header.is_deterministic else "no"),
        *_server_rows(result),
    ]
    return table("The run", ("what", "value"), rows, num_text_columns=2)


def _server_rows(result: BenchResult) -> list[tuple[str, str]]:
    server = result.header.server
    named: tuple[tuple[str, object, Callable[[float], str]], ...] = (
        ("max model len", server.max_model_len, tokens),
        ("KV cache of the server, tokens", server.kv_capacity_tokens, tokens),
        ("block size, tokens", server.block_size, tokens),
    )
    rows = [(name, write(value)) for name, value, write in named if isinstance(value, int)]
    return [*rows, *([("KV cache dtype", server.kv_cache_dtype)] if server.kv_cache_dtype else [])]
