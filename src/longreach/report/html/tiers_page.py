"""A comparison of KV tiers as a page."""

from collections.abc import Iterator, Sequence
from xml.etree.ElementTree import Element

from longreach.measure.tiers.values import SOURCE_OF_TIER, TIER_WORDS, Gain, TiersReport, TierStep, VariantFigures
from longreach.measure.verify_report import Verdict
from longreach.report.html.colours import BAD, DOUBT, GOOD, SERIES, Colour
from longreach.report.html.elements import Content, table
from longreach.report.html.figures import (
    DISTRIBUTION_HEADER,
    UNKNOWN,
    distribution_cells,
    duration,
    percent,
    rate,
    size,
    tokens,
)
from longreach.report.html.page import Headline, notes, plot_section, render_page, section, tiles, word
from longreach.report.html.plots.forest import Difference, change_text, interval_text, plot_differences
from longreach.report.html.plots.hits import plot_sources, split_sources
from longreach.report.html.plots.rounds import plot_rounds
from longreach.report.html.plots.rows import Row, plot_rows
from longreach.report.html.plots.values import NoPlot, Plot
from longreach.units import format_count

_VERDICTS: dict[str, tuple[str, Verdict, Colour]] = {
    "keep": ("keep", "pass", GOOD),
    "drop": ("drop", "fail", BAD),
    "not_enough_data": ("not enough data", "cannot_tell", DOUBT),
}


def render_tiers_html(report: TiersReport) -> str:
    """The verdict on each tier, what each variant did, and what was moved for it."""
    plots = (_plot_ttft(report), plot_rounds(report.figures), _plot_hits(report.figures), _plot_gains(report))
    body = [
        tiles(_main_figures(report)),
        plot_section("Plots", plots),
        *([section("Verdicts", _step_table(report.steps))] if report.steps else []),
        *([section("Figures", *_figure_tables(report))] if report.figures else []),
        *([section("Failed runs", _failure_table(report))] if report.failures else []),
        section("What was run", _run_table(report), *notes(report.notes)),
    ]
    return render_page("Comparison of KV tiers", _headline(report), body)


def _headline(report: TiersReport) -> Headline:
    failures = [f"Run {run.repeat} of {run.variant.title} failed: {run.failure}" for run in report.failures]
    failures += [
        f"{one.num_failed:,} requests of {one.variant.title} failed" for one in report.figures if one.num_failed
    ]
    cut = ["Stopped early"] if report.interrupted else []
    steps = [f"{_step_name(step)}, {_VERDICTS[step.verdict][0]}: {step.why}" for step in report.steps]
    winner = report.winner.title if report.winner else None
    best = f"{winner} is best" if winner else "Nothing could be judged"
    lines = [*cut, best, *failures, *steps]
    open_steps = any(step.verdict == "not_enough_data" for step in report.steps)
    level: Verdict = "fail" if failures or not winner else "cannot_tell" if cut or open_steps else "pass"
    what = f"{report.model}, instance {report.instance}, vLLM {report.release} on {report.device_type}"
    workload = report.workload_source or "none was sent"
    return Headline(
        f"{report.model}: {best if winner else best.lower()}",
        f"{what}. Workload: {workload}.",
        level,
        f"{lines[0]}.",
        tuple(lines[1:]),
    )


def _step_name(step: TierStep) -> str:
    return "ARC in place of LRU" if step.is_policy else f"{TIER_WORDS[step.variant.added]} tier"


def _main_figures(report: TiersReport) -> Iterator[tuple[str, str, str]]:
    for one in report.figures:
        if one.ttft_s:
            share = "hits not told" if one.hit_share is None else f"{percent(one.hit_share)} of prompt tokens cached"
            yield f"Mean TTFT, {one.variant.title}", duration(one.ttft_s.mean), share


def _plot_ttft(report: TiersReport) -> Plot | NoPlot:
    rows = [
        Row(SERIES[place % len(SERIES)], one.variant.title, _waits(report, one), one.ttft_s)
        for place, one in enumerate(report.figures)
        if one.ttft_s
    ]
    if not rows:
        return NoPlot("TTFT by variant", "no request was answered")
    return plot_rows("ttft", "TTFT by variant", "Every request of every run.", rows, None)


def _waits(report: TiersReport, one: VariantFigures) -> list[float]:
    results = [run.result for run in report.runs if run.variant == one.variant and run.result]
    return [record.ttft_s for result in results for record in result.counted if record.ok and record.ttft_s is not None]


def _plot_hits(figures: Sequence[VariantFigures]) -> Plot | NoPlot:
    bars = {
        one.variant.title: split_sources(one.prompt_tokens, one.cached_tokens, one.hits_by_source or ())
        for one in figures
        if one.prompt_tokens
    }
    if not bars:
        return NoPlot("Prompt tokens by source", "the server counted no prompt tokens")
    return plot_sources("hits", "Prompt tokens by source", "variant", bars)


def _plot_gains(report: TiersReport) -> Plot | NoPlot:
    differences = [difference for step in report.steps for difference in _differences(step)]
    if not differences:
        return NoPlot("What each tier saves", "no two variants answered the same requests")
    opening = "Time saved against the best variant before, with 95 % intervals; a minus is time lost."
    return plot_differences("gains", "What each tier saves", opening, "time saved", report.margin, differences)


def _differences(step: TierStep) -> Iterator[Difference]:
    """The verdict is about the time to first token; the whole answer is shown beside it."""
    text, _, colour = _VERDICTS[step.verdict]
    if step.ttft_gain:
        yield Difference(f"{step.variant.title}, TTFT", step.ttft_gain.value, step.ttft_gain.interval, text, colour)
    if step.latency_gain:
        gain = step.latency_gain
        yield Difference(f"{step.variant.title}, answer", gain.value, gain.interval, "not judged by itself", SERIES[0])


def _step_table(steps: Sequence[TierStep]) -> Element:
    header = ("step", "verdict", "against", "TTFT saved", "answer saved", "requests compared", "runs", "why")
    return table(
        "Each tier against the best without it", header, [_step_row(step) for step in steps], num_text_columns=8
    )


def _step_row(step: TierStep) -> tuple[Content, ...]:
    text, level, _ = _VERDICTS[step.verdict]
    more = f", {format_count(step.more_runs, 'more run')} of each" if step.more_runs else ""
    return (
        _step_name(step),
        word(level, f"{text}{more}"),
        step.base.title,
        _gain_text(step.ttft_gain),
        _gain_text(step.latency_gain),
        f"{step.num_pairs:,}",
        f"{step.num_repeats:,}",
        step.why,
    )


def _gain_text(gain: Gain | None) -> str:
    return UNKNOWN if gain is None else f"{change_text(gain.value)} ({interval_text(gain.interval)})"


def _figure_tables(report: TiersReport) -> tuple[Element, ...]:
    """None wider than a usual window."""
    reload = "copy in memory" if report.device_type == "cpu" else "reload"
    return (_wait_table(report.figures), _hit_table(report.figures), _traffic_table(report.figures, reload))


def _wait_table(figures: Sequence[VariantFigures]) -> Element:
    rows = [(one.variant.title, *distribution_cells(one.ttft_s)) for one in figures if one.ttft_s]
    return table("TTFT of every answered request", ("variant", *DISTRIBUTION_HEADER), rows)


def _hit_table(figures: Sequence[VariantFigures]) -> Element:
    header = ("variant", "runs", "failed requests", *(f"hits, {name}" for name in TIER_WORDS.values()), "prompt")
    return table("What was hit, in prompt tokens", header, [_hit_row(one) for one in figures])


def _hit_row(one: VariantFigures) -> tuple[str, ...]:
    return (
        one.variant.title,
        f"{one.num_runs:,}",
        f"{one.num_failed:,}",
        *(tokens(one.hits_from(tier)) for tier in SOURCE_OF_TIER),
        rate(one.prompt_tokens_per_s, "tokens/s"),
    )


def _traffic_table(figures: Sequence[VariantFigures], reload: str) -> Element:
    header = ("variant", "stored", "loaded", reload, "disk written", "disk read")
    return table("What was moved for it", header, [_traffic_row(one) for one in figures])


def _traffic_row(one: VariantFigures) -> tuple[str, ...]:
    return (
        one.variant.title,
        size(one.stored_bytes),
        size(one.loaded_bytes),
        rate(one.reload_tokens_per_s, "tokens/s"),
        size(one.disk_written_bytes),
        size(one.disk_read_bytes),
    )


def _failure_table(report: TiersReport) -> Element:
    rows = [(run.variant.title, str(run.repeat), run.failure or UNKNOWN) for run in report.failures]
    return table("Runs that did not come to an end", ("variant", "run", "what happened"), rows, num_text_columns=3)


def _run_table(report: TiersReport) -> Element:
    rows = [
        ("model", report.model),
        ("instance", f"{report.instance}, vLLM {report.release}, {report.device_type}"),
        ("margin", percent(report.margin)),
        ("workload", report.workload_source or "none was sent"),
        ("digest of the workload", report.workload_digest or UNKNOWN),
        *_sizing_rows(report),
        ("results", report.results_folder or "not kept"),
    ]
    return table("The comparison", ("what", "value"), rows, num_text_columns=2)


def _sizing_rows(report: TiersReport) -> list[tuple[str, str]]:
    sizing = report.sizing
    if sizing is None:
        return []
    return [
        (
            "prompts",
            f"{sizing.num_prompts:,} of {tokens(sizing.prompt_tokens)} tokens, each {sizing.sends_per_prompt} times",
        ),
        ("KV cache of the GPUs", f"{tokens(sizing.gpu_capacity_tokens)} tokens"),
        ("CPU tier", f"{tokens(sizing.cpu_capacity_tokens)} tokens"),
    ]
