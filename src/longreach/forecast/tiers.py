"""Does a tier pay? Reloading a prefix from host memory or disk against computing it again.

    reload    cached bytes / min(GPUs x host link, host memory path), and for the disk its read rate before that
    pays      when the slowest reload beats the fastest recompute; "cannot tell" where the ranges overlap
A tier serves a prompt whose prefix left the GPU cache; it never extends what one running request may hold.
"""

from longreach.forecast.prefill import ttft_cold
from longreach.forecast.setting import Setting, Unknown, resolve
from longreach.forecast.traffic import cache_bytes_per_gpu, state_bytes_per_gpu
from longreach.forecast.values import Span, SpeedRequest, TierForecast
from longreach.units import format_duration, format_tokens

_LINK_SHARE = (0.5, 1.0)  # of the pinned copy rate: block-sized pieces, stores running the other way
_HOST_PATH_BYTES_PER_S = (36e9, 114e9)  # two DDR4 channels in practice; eight GPUs at once into one Threadripper PRO
_HOST_SHARE = (0.7, 1.0)  # of a host memory rate that is known
_DISK_BYTES_PER_S = (2.9e9, 7.0e9)  # one NVMe gen 4 drive: through a file system, and at its nominal rate


def forecast_tiers(request: SpeedRequest) -> tuple[TierForecast, ...]:
    """One forecast per tier of the request, for a prompt whose whole prefix rests there."""
    names = [name for name, wanted in (("cpu", request.cpu_tier), ("disk", request.disk_tier)) if wanted]
    return tuple(_forecast(name, request) for name in names)


def reload_time(name: str, request: SpeedRequest) -> Span:
    """Seconds to bring the prompt's whole cache back to the GPUs from the `cpu` or the `disk` tier."""
    setting = resolve(request)
    if isinstance(setting, Unknown):
        return setting.span()
    if request.machine.link is None:
        return Unknown(f"the host link of {setting.gpu.name} is unknown").span()
    fast, slow = _from_cpu_s(setting, request.machine.link.host_bytes_per_s)
    if name == "disk":
        least, most = request.disk_read_bytes_per_s or _DISK_BYTES_PER_S
        low, high = stored_bytes(setting)
        # A disk hit is promoted to host memory first; at best that overlaps with the copy to the GPU.
        fast, slow = max(fast, low / most), slow + high / least
    return Span(low=fast, high=slow)


def stored_bytes(setting: Setting) -> tuple[float, float]:
    """The prompt's cache over all GPUs, copies of replicated heads and latents included, with one recurrent state."""
    request = setting.request
    cache = cache_bytes_per_gpu(request.model, setting.kv_cache_dtype, request.tp_size, request.prompt_tokens)
    low, high = state_bytes_per_gpu(request.model, request.tp_size)
    return (cache + low) * request.tp_size, (cache + high) * request.tp_size


def _from_cpu_s(setting: Setting, host_link_bytes_per_s: float) -> tuple[float, float]:
    low, high = stored_bytes(setting)
    least, most = _host_path(setting.request.machine.host_memory_bytes_per_s)
    links = setting.num_gpus * host_link_bytes_per_s
    return low / min(links * _LINK_SHARE[1], most), high / min(links * _LINK_SHARE[0], least)


def _host_path(known_bytes_per_s: float | None) -> tuple[float, float]:
    if known_bytes_per_s is None:
        return _HOST_PATH_BYTES_PER_S
    return known_bytes_per_s * _HOST_SHARE[0], known_bytes_per_s * _HOST_SHARE[1]


def _forecast(name: str, request: SpeedRequest) -> TierForecast:
    reload_s, recompute_s = reload_time(name, request), ttft_cold(request)
    return TierForecast(
        name=name,
        reload_tokens_per_s=_rate(reload_s, request.prompt_tokens),
        reload_s=reload_s,
        recompute_s=recompute_s,
        pays=_pays(reload_s, recompute_s),
        why=_why(name, request, reload_s, recompute_s),
    )


def _rate(reload_s: Span, tokens: int) -> Span:
    if reload_s.low is None or reload_s.high is None:
        return reload_s
    return Span(low=tokens / reload_s.high, high=tokens / reload_s.low)


def _pays(reload_s: Span, recompute_s: Span) -> bool | None:
    if reload_s.low is None or reload_s.high is None or recompute_s.low is None or recompute_s.high is None:
        return None
    if reload_s.high < recompute_s.low:
        return True
    return False if reload_s.low > recompute_s.high else None


def _why(name: str, request: SpeedRequest, reload_s: Span, recompute_s: Span) -> str:
    place = "host memory" if name == "cpu" else "disk"
    tokens = format_tokens(request.prompt_tokens)
    if reload_s.low is None or reload_s.high is None:
        return f"reload of {tokens} tokens from {place} is unknown: {reload_s.reason}"
    back = (
        f"{tokens} tokens come back from {place} in {format_duration(reload_s.low)} to {format_duration(reload_s.high)}"
    )
    if recompute_s.low is None or recompute_s.high is None:
        return f"{back}; computing them again is unknown: {recompute_s.reason}"
    again = f"{format_duration(recompute_s.low)} to {format_duration(recompute_s.high)}"
    return f"{back}; computing them again takes {again}"
