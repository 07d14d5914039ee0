"""A plan on one screen: the verdict first, then capacity, concurrency, speed, the command and the findings."""

import shlex
from itertools import islice

from longreach.forecast.values import Span, SpeedForecast
from longreach.plan.values import Alternative, InstancePlan, Plan, PlannedTier
from longreach.report.findings_text import render_findings
from longreach.report.plan_mix_text import render_variants
from longreach.report.style import Paint, table
from longreach.rules.finding import Finding
from longreach.units import format_bytes, format_duration, format_tokens

_VERDICT = {"fits": ("FITS", "green"), "does_not_fit": ("DOES NOT FIT", "red"), "unknown": ("UNKNOWN", "yellow")}


def render_plan(plan: Plan, paint: Paint, *, verbose: bool = False) -> str:
    """One screen; `verbose` adds the figures behind the forecast and every piece of advice in full."""
    lines = [*_headline(plan, paint), ""]
    lines += [*render_variants(plan.variants, paint), ""] if plan.variants else []
    for instance in plan.instances:
        lines += [*_instance(instance, plan, paint, verbose=verbose), ""]
    if plan.choices:
        lines += [paint("Chosen, because it was not given", "bold"), *_choices(plan), ""]
    if plan.alternatives:
        lines += [paint("Nearest goals that fit", "bold"), *_alternatives(plan), ""]
    lines += render_findings(plan.findings, paint, brief_advice=not verbose)
    return "\n".join(lines)


def _headline(plan: Plan, paint: Paint) -> list[str]:
    word, colour = _VERDICT[plan.verdict]
    machine = f"{plan.machine.num_gpus} x {plan.machine.gpu}" if plan.machine.gpu else plan.machine.device_type.upper()
    lengths = " and ".join(dict.fromkeys(format_tokens(instance.max_model_len) for instance in plan.instances))
    return [
        f"{paint(word, 'bold', colour)}  {plan.model.name} on {machine}, {lengths} tokens, vLLM {plan.release}",
        *(f"  {_reason(instance)}" for instance in plan.instances if instance.kv_cache),
        *(f"  {_told(finding)}" for finding in _first_other_error(plan)),
    ]


def _first_other_error(plan: Plan) -> tuple[Finding, ...]:
    """The first error that the lines about room do not tell: a release, a wish, a machine, KV bytes that are not there; else
    that the command names other weights than the verdict is about.
    """
    refused = any(
        instance.kv_cache and not (instance.loads and instance.kv_cache.serves) for instance in plan.instances
    )
    told = ("weights_exceed_gpu", "kv_too_small_for_max_len") if refused else ()
    grave = (f for f in plan.findings if f.severity == "error" or f.cause == "checkpoint_form_differs")
    return tuple(islice((finding for finding in grave if finding.cause not in told), 1))


def _told(finding: Finding) -> str:
    where = f"{finding.instance}: " if finding.instance else ""
    return f"{where}{finding.what} ({finding.code})"


def _reason(instance: InstancePlan) -> str:
    cache = instance.kv_cache
    assert cache is not None
    needed, available = format_bytes(cache.needed_bytes_per_gpu), format_bytes(cache.available_bytes_per_gpu)
    available = available if cache.available_bytes_per_gpu > 0 else "none"
    where = " on each GPU" if len(instance.gpu_indices) > 1 else ""
    if instance.memory and not instance.loads:
        return f"{instance.name}: weights and the engine's own use leave nothing of the GPU to the KV cache"
    if not cache.starts:
        longest = (
            f"the longest that starts is {format_tokens(cache.largest_max_model_len)} tokens"
            if cache.largest_max_model_len
            else "no length starts"
        )
        return f"{instance.name}: vLLM refuses to start: it needs {needed} of KV cache{where} and has {available}; {longest}"
    if not cache.serves:
        blocks = f"takes {cache.blocks_per_request} blocks of {cache.num_blocks}"
        return f"{instance.name}: vLLM starts, and no request of that length ever runs: it {blocks}"
    hedge = "; whether the card has that much left cannot be told (LR102)" if _is_doubtful(instance) else ""
    return f"{instance.name}: needs {needed} of KV cache{where} to start, has {available}{hedge}"


def _is_doubtful(instance: InstancePlan) -> bool:
    """The KV bytes lie between what is surely and what is perhaps left of the card."""
    memory = instance.memory
    return memory is not None and memory.fits is None and memory.gpu_total_bytes is not None


def _instance(instance: InstancePlan, plan: Plan, paint: Paint, *, verbose: bool) -> list[str]:
    gpus = (
        f"GPU {', '.join(map(str, instance.gpu_indices))}" if instance.gpu_indices else plan.machine.device_type.upper()
    )
    title = f"Instance {instance.name}: {_sizes(instance)} on {gpus}, port {instance.port}"
    lines = [paint(title, "bold"), *_capacity(instance)]
    lines += ["", *_speed(instance, paint, verbose=verbose)] if instance.speed and instance.loads else []
    return [*lines, "", paint("  Command", "bold"), *(f"    {line}" for line in instance.shell.splitlines())]


def _sizes(instance: InstancePlan) -> str:
    """`TP 4`, `TP 2 x PP 2`, `TP 2, 2 data-parallel engines: the figures are of each`."""
    options = instance.options
    pipeline = f" x PP {options.pipeline_parallel_size}" if options.pipeline_parallel_size > 1 else ""
    engines = options.data_parallel_size
    each = f", {engines} data-parallel engines (the figures are of each)" if engines > 1 else ""
    return f"TP {options.tensor_parallel_size}{pipeline}{each}"


def _capacity(instance: InstancePlan) -> list[str]:
    lines = []
    per_gpu = " per GPU" if instance.gpu_indices else ""
    if instance.memory and instance.memory.weights_bytes:
        weights = _bytes_range(instance.memory.weights_bytes)
        lines.append(
            f"  weights     {weights}{per_gpu} ({instance.memory.weights_certainty}: {instance.memory.weights_source})"
        )
    if (cache := instance.kv_cache) and cache.num_blocks:
        lines.append(
            f"  KV cache    {cache.num_blocks:,} blocks of {cache.block_size:,} tokens, "
            f"{format_bytes(cache.bytes_per_block)} each{per_gpu} ({cache.certainty})"
        )
    rows = [
        _tier_row(tier, has_gpus=bool(instance.gpu_indices)) for tier in instance.tiers if tier.capacity_tokens != 0
    ]
    lines += table([("tier", "tokens", "bytes", "certainty", ""), *rows], frozenset({1, 2})) if rows else []
    if cache and cache.starts:
        lines.append(
            f"  at once     {cache.max_concurrency:.2f} requests of {format_tokens(instance.max_model_len)} tokens"
        )
    figures = instance.concurrency_at_mean_input
    if (
        cache
        and cache.starts
        and figures
        and figures.gpu is not None
        and figures.prompt_tokens < instance.max_model_len
    ):
        tiers = f"; prefixes kept with the CPU tier: {figures.gpu_and_cpu:.1f}" if figures.gpu_and_cpu else ""
        lines.append(
            f"              {figures.gpu:.1f} requests of {format_tokens(figures.prompt_tokens)} tokens{tiers}"
        )
    return lines


def _tier_row(tier: PlannedTier, *, has_gpus: bool) -> tuple[str, str, str, str, str]:
    tokens = "unknown" if tier.capacity_tokens is None else format_tokens(tier.capacity_tokens)
    tokens = f"<= {tokens}" if tier.certainty == "bound" else tokens
    size = "unbounded" if tier.capacity_bytes is None else format_bytes(tier.capacity_bytes)
    name = (
        tier.name if has_gpus or tier.name != "gpu" else "memory"
    )  # what vLLM calls the GPU's cache holds it all here
    return (name, tokens, size, tier.certainty, tier.note)


def _speed(instance: InstancePlan, paint: Paint, *, verbose: bool) -> list[str]:
    lines = []
    for forecast in instance.speed:
        lines.append(paint(f"  A prompt of {format_tokens(forecast.prompt_tokens)} tokens", "bold"))
        lines += table([row for row in _speed_rows(forecast) if row[1]], indent="    ")
        lines += [f"      {sentence}" for sentence in forecast.arithmetic] if verbose else []
    for tier in instance.tier_forecasts:
        verdict = {True: "pays", False: "does not pay", None: "cannot tell whether it pays"}[tier.pays]
        measure = "; longreach tiers PLAN measures it" if tier.pays is None else ""
        lines.append(f"  {tier.name} tier   {verdict}: {tier.why}{measure}")
    return lines


def _speed_rows(forecast: SpeedForecast) -> list[tuple[str, str]]:
    return [
        ("first token, cold", _time_span(forecast.ttft_cold_s, guess=True)),
        *((f"  {'with' if case.p2p else 'without'} P2P", _guess(case.ttft_cold_s)) for case in forecast.peer_cases),
        ("first token, warm", _time_span(forecast.ttft_warm_s)),
        ("  prefix on CPU", _time_span(forecast.ttft_from_cpu_s)),
        ("  prefix on disk", _time_span(forecast.ttft_from_disk_s)),
        ("decode", _rate_span(forecast.decode_tokens_per_s)),
        ("prefill chunks", str(forecast.num_prefill_chunks)),
    ]


def _time_span(span: Span | None, *, guess: bool = False) -> str:
    """Bound and range; `guess` where the middle of the range is the best guess, which holds for cold prompts."""
    if span is None:
        return ""
    parts = [f"never under {format_duration(span.lower_bound)} (bound)"] if span.lower_bound is not None else []
    parts += [text for text in (_guess(span) if guess else _range(span),) if text]
    return "; ".join(parts) or f"unknown: {span.reason}"


def _guess(span: Span) -> str:
    return "" if span.middle is None else f"about {format_duration(span.middle)}, {_range(span)}"


def _range(span: Span) -> str:
    if span.low is None or span.high is None:
        return ""
    return f"{format_duration(span.low)} to {format_duration(span.high)} ({span.certainty})"


def _rate_span(span: Span) -> str:
    parts = [f"never over {span.upper_bound:,.1f} tokens/s (bound)"] if span.upper_bound is not None else []
    if span.low is not None and span.high is not None:
        parts.append(f"about {span.middle:,.1f}, {span.low:,.1f} to {span.high:,.1f} tokens/s ({span.certainty})")
    return "; ".join(parts) or f"unknown: {span.reason}"


def _bytes_range(ends: tuple[int, int]) -> str:
    low, high = ends
    return format_bytes(low) if low == high else f"{format_bytes(low)} to {format_bytes(high)}"


def _alternatives(plan: Plan) -> list[str]:
    return table([_alternative_row(alternative) for alternative in plan.alternatives])


def _alternative_row(item: Alternative) -> tuple[str, str, str, str]:
    where = f"{item.instance}: " if item.instance else ""
    at_once = "" if item.concurrency is None else f"{item.concurrency:.1f} at once"
    note = f"  ({item.note})" if item.note else ""
    return (
        f"{where}{item.change}",
        f"{format_tokens(item.max_model_len)} tokens",
        at_once,
        shlex.join(item.options) + note,
    )


def _choices(plan: Plan) -> list[str]:
    return table([(choice.option, choice.value, choice.why) for choice in plan.choices])
