"""The forecast of one request: all spans, and the arithmetic in sentences."""

from dataclasses import replace

from longreach.forecast.decode import decode_rate, step_time
from longreach.forecast.prefill import prefill_times, ttft_cold, ttft_lower_bound, ttft_warm
from longreach.forecast.setting import Setting, Unknown, resolve
from longreach.forecast.tiers import reload_time, stored_bytes
from longreach.forecast.traffic import attended_bytes_per_gpu
from longreach.forecast.values import PeerCase, Span, SpeedForecast, SpeedRequest
from longreach.forecast.work import prefill_work
from longreach.hardware.links import with_and_without_p2p
from longreach.hardware.spec import LinkSpec
from longreach.units import format_duration, format_tokens

_PREFIXES = ((1e18, "E"), (1e15, "P"), (1e12, "T"), (1e9, "G"), (1e6, "M"), (1e3, "k"))


def forecast_speed(request: SpeedRequest) -> SpeedForecast:
    """Speed at one prompt length on an otherwise idle instance. Spans are empty, with the reason, where nothing is known."""
    warm = ttft_warm(request)
    work = prefill_work(
        request.model, request.prompt_tokens, request.tp_size, request.max_num_batched_tokens, request.pp_size
    )
    return SpeedForecast(
        prompt_tokens=request.prompt_tokens,
        num_prefill_chunks=work.num_prefill_chunks,
        work=work,
        ttft_cold_s=ttft_cold(request),
        ttft_warm_s=warm,
        ttft_from_cpu_s=_after(reload_time("cpu", request), warm) if request.cpu_tier else None,
        ttft_from_disk_s=_after(reload_time("disk", request), warm) if request.disk_tier else None,
        decode_tokens_per_s=decode_rate(request),
        arithmetic=render_arithmetic(request),
        peer_cases=_peer_cases(request),
    )


def _peer_cases(request: SpeedRequest) -> tuple[PeerCase, ...]:
    """P2P is worth up to 1.7 in prefill over PCIe, so a link that nobody named is forecast both ways."""
    machine = request.machine
    if request.tp_size == 1 or machine.gpu is None or machine.link is None or not machine.link_is_open:
        return ()
    cases = []
    for link in with_and_without_p2p(machine.link, machine.gpu):
        case = replace(request, machine=replace(machine, link=link))
        cases.append(PeerCase(link.p2p, link.name, ttft_cold(case), decode_rate(case)))
    return tuple(cases)


def render_arithmetic(request: SpeedRequest) -> tuple[str, ...]:
    """The figures behind the forecast, one sentence each."""
    setting = resolve(request)
    if isinstance(setting, Unknown):
        return (f"no forecast: {setting.reason}",)
    return tuple(
        sentence
        for sentence in (
            _work(setting),
            _bound(setting),
            _compute(setting),
            _link(setting),
            _decode(setting),
            _tiers(setting),
        )
        if sentence
    )


def _after(reload_s: Span, warm: Span) -> Span:
    """A reload, then the warm prompt; the first forward pass never overlaps its own load."""
    if reload_s.low is None or reload_s.high is None:
        return reload_s
    if warm.low is None or warm.high is None:
        return Span(None, None, certainty="unknown", reason=warm.reason)
    return Span(low=reload_s.low + warm.low, high=reload_s.high + warm.high)


def _work(setting: Setting) -> str:
    work, request = setting.work, setting.request
    linear = work.linear_flops or 0.0
    total = _scaled(linear + work.attention_flops, "FLOP")
    return (
        f"cold prefill of {format_tokens(request.prompt_tokens)} tokens: {total} = {_scaled(linear, 'FLOP')} linear"
        f" + {_scaled(work.attention_flops, 'FLOP')} attention, in {work.num_prefill_chunks:,} chunks"
        f" of {format_tokens(request.max_num_batched_tokens)}"
    )


def _bound(setting: Setting) -> str:
    bound = ttft_lower_bound(setting)
    if bound is None:
        return f"no bound: the peak rate of {setting.gpu.name} is unknown"
    limit = {"compute": _best_rate, "link": _raw_link, "weights": _weights_read}[bound.limit](setting)
    gpus = f"{bound.num_gpus} GPU{'s' if bound.num_gpus > 1 else ''}"
    return f"bound: {gpus} x {limit} -> {format_duration(bound.seconds)}"


def _best_rate(setting: Setting) -> str:
    rates = setting.rates
    linear, attention = rates.linear_best or 0.0, rates.attention_best or 0.0
    if linear == attention:
        return f"{_scaled(linear, 'FLOPS')} at best ({rates.basis})"
    return (
        f"{_scaled(linear, 'FLOPS')} at best for {rates.precision} linear layers"
        f" and {_scaled(attention, 'FLOPS')} for attention ({rates.basis})"
    )


def _raw_link(setting: Setting) -> str:
    assert setting.link is not None
    return f"{_scaled(setting.link.all_reduce_best_bytes_per_s, 'B/s')} of {setting.link.name}, its raw rate, for the all-reduces"


def _weights_read(setting: Setting) -> str:
    bandwidth = _scaled(setting.gpu.memory_bandwidth_bytes_per_s, "B/s")
    return f"{bandwidth} of memory, for {_scaled(setting.weight_bytes[0], 'B')} of weights a chunk"


def _compute(setting: Setting) -> str:
    times, rates = prefill_times(setting), setting.rates
    if times is None or rates.linear is None or rates.attention is None:
        return ""
    drafts = ", MTP layers included" if setting.request.use_draft_layers else ""
    return (
        f"expected compute: linear layers at {_between(*rates.linear, 'FLOPS')} a GPU, attention at"
        f" {_between(*rates.attention, 'FLOPS')}{drafts} -> {_durations(times[0].compute_s, times[1].compute_s)}"
    )


def _link(setting: Setting) -> str:
    times, link = prefill_times(setting), setting.link
    if times is None or link is None:
        return ""
    return (
        f"expected link: {_scaled(setting.work.all_reduce_bytes, 'B')} per GPU over {link.name} at {_link_rates(link)}"
        f" -> {_durations(times[0].link_s, times[1].link_s)}"
    )


def _link_rates(link: LinkSpec) -> str:
    return f"{_between(*link.all_reduce_bytes_per_s, 'B/s')} ({link.certainty}: {link.source})"


def _decode(setting: Setting) -> str:
    request = setting.request
    cache = attended_bytes_per_gpu(request.model, setting.kv_cache_dtype, request.tp_size, request.prompt_tokens)
    weights = setting.weight_bytes[0] / request.tp_size
    rate = 1 / step_time(setting).lower_bound_s
    drafts = request.num_speculative_tokens
    speculation = f", x{1 + drafts} if every draft token is accepted" if drafts else ""
    return (
        f"each decode step reads {_scaled(weights, 'B')} of weights and {_scaled(cache, 'B')} of cache per GPU at"
        f" {_scaled(setting.gpu.memory_bandwidth_bytes_per_s, 'B/s')} -> at most {rate:,.0f} steps/s{speculation}"
    )


def _tiers(setting: Setting) -> str:
    request = setting.request
    if not (request.cpu_tier or request.disk_tier):
        return ""
    low, high = stored_bytes(setting)
    size = _scaled(low, "B") if round(low / high, 2) == 1 else _between(low, high, "B")
    return f"this prompt's cache is {size} over all GPUs; that is what a tier reloads"


def _durations(low: float, high: float) -> str:
    return f"{format_duration(low)} to {format_duration(high)}"


def _between(low: float, high: float, unit: str) -> str:
    return f"{_scaled(low, unit)} to {_scaled(high, unit)}"


def _scaled(value: float, unit: str) -> str:
    """Three significant digits with a decimal prefix: `147 PFLOP`, `1.47 TB`, `173 TFLOPS`."""
    scale, prefix = next((pair for pair in _PREFIXES if value >= pair[0]), (1.0, ""))
    digits = f"{value / scale:.0f}" if value / scale >= 99.95 else f"{value / scale:.3g}"
    return f"{digits} {prefix}{unit}"
