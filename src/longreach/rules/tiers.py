"""What the CPU and disk tier hold, need and cost: LR301 to LR307, LR312. Pure."""

from collections.abc import Iterator
from dataclasses import replace

from longreach.rules.deployment import Deployment
from longreach.rules.remedy import set_option
from longreach.rules.rule import Diagnosis, Rule, rule
from longreach.units import GIB, ceil_div, format_bytes, format_duration

_WORTHWHILE_RATIO = 2  # host tokens per GPU token below which a tier gains next to nothing


@rule("LR301", "advice", "tiers_hold_other_prefixes", "a tier holds prefixes for reuse and never extends a request")
def tiers_hold_other_prefixes(deployment: Deployment) -> Iterator[Diagnosis]:
    """Said once for every deployment that has a tier and fits without it."""
    offload, capacity = deployment.options.offload, deployment.capacity
    if offload is None or capacity is None or not capacity.starts or deployment.is_foreign:
        return
    tier = deployment.tier("cpu")
    held = f" (up to {tier.capacity_tokens} tokens)" if tier is not None and tier.capacity_tokens else ""
    yield Diagnosis(
        f"the {format_bytes(offload.cpu_bytes)} CPU tier{held} is for prefixes that come back",
        f"a running request keeps all its blocks on the GPUs, so the longest stays {capacity.largest_max_model_len} tokens; "
        "the tier also holds a copy of what the GPUs hold, so the two do not add up",
        "none needed: it shortens the first token of repeated prefixes after they left the GPUs, and nothing else; "
        "longreach tiers PLAN measures by how much",
    )


@rule("LR302", "advice", "disk_tier_needs_tiering_spec", "a disk tier needs the tiering spec")
def disk_tier_needs_tiering_spec(deployment: Deployment) -> Iterator[Diagnosis]:
    """The default spec ignores `secondary_tiers` without a word."""
    offload = deployment.options.offload
    if offload is None or offload.disk_path is None or deployment.is_foreign:
        return
    yield Diagnosis(
        f"the disk tier at '{offload.disk_path}' exists only under spec TieringOffloadingSpec",
        "the default CPUOffloadingSpec ignores secondary_tiers silently; the tier's type is 'fs' from 0.23 on",
        "none needed in the planned command; a hand-written kv_connector_extra_config needs "
        '"spec_name": "TieringOffloadingSpec"',
    )


@rule("LR303", "warning", "disk_tier_never_deletes", "the disk tier grows until the disk is full")
def disk_tier_never_deletes(deployment: Deployment) -> Iterator[Diagnosis]:
    """The file system tier has no size limit, no eviction and no deletion, and every new prompt is written through."""
    offload, tier = deployment.options.offload, deployment.tier("cpu")
    if offload is None or offload.disk_path is None:
        return
    written = ""
    if tier is not None and tier.capacity_tokens and tier.capacity_bytes:
        per_token = tier.capacity_bytes / tier.capacity_tokens
        written = (
            f"; every new prompt token writes at least {per_token:.0f} bytes, a prompt of {deployment.max_model_len} "
            f"tokens {format_bytes(per_token * deployment.max_model_len)}"
        )
    yield Diagnosis(
        f"nothing in vLLM {deployment.release.version} ever deletes from the disk tier at '{offload.disk_path}'",
        f"the fs tier has no size limit and no eviction{written}",
        f"delete old files yourself, oldest first: find {offload.disk_path} -type f -mmin +1440 -delete (a missing "
        "file is a miss, not a fault); and mind the drive's write rating",
    )


@rule(
    "LR304",
    "error",
    "cpu_tier_exceeds_ram",
    "the CPU tier is larger than the machine's memory",
    outcome="refused_at_start",
)
def cpu_tier_exceeds_ram(deployment: Deployment) -> Iterator[Diagnosis]:
    """The tier is pinned and pre-faulted: it must be there in full."""
    offload, ram = deployment.options.offload, deployment.machine.ram_bytes
    if offload is None or ram is None:
        return
    total, engines = deployment.cpu_tier_bytes_of_all, deployment.options.data_parallel_size
    if total <= ram:
        return
    own = offload.cpu_bytes * engines
    most = max(ram * 4 // 5 - (total - own), 0) // engines // GIB * GIB
    yield Diagnosis(
        f"CPU tiers of {format_bytes(total)} exceed the {format_bytes(ram)} of memory",
        f"{_who_takes(deployment, own)}, pinned and touched at start",
        f"set the CPU tier to at most {format_bytes(most)} per engine, which leaves a fifth to the system"
        if most
        else "do without the tier here, or make those of the other instances smaller",
        set_option("offload", replace(offload, cpu_bytes=most)) if most else None,
    )


def _who_takes(deployment: Deployment, own_bytes: int) -> str:
    engines, others = deployment.options.data_parallel_size, deployment.cpu_tier_bytes_of_all - own_bytes
    each = format_bytes(own_bytes // engines)
    own = f"{engines} engines take {each} each" if engines > 1 else f"the engine takes {each}"
    return f"{own} and the other instances {format_bytes(others)}" if others else own


@rule("LR305", "warning", "cpu_tier_exceeds_shm", "the CPU tier does not fit /dev/shm")
def cpu_tier_exceeds_shm(deployment: Deployment) -> Iterator[Diagnosis]:
    """The tier is a file in /dev/shm, which Linux sizes at half the memory and containers at 64 MiB."""
    offload, machine = deployment.options.offload, deployment.machine
    if offload is None:
        return
    shm = machine.shm_bytes
    if shm is None and machine.ram_bytes is not None:
        shm = machine.ram_bytes // 2
    total = deployment.cpu_tier_bytes_of_all
    if shm is None or total <= shm or (machine.ram_bytes is not None and total > machine.ram_bytes):
        return
    known = "" if machine.shm_bytes is not None else ", assumed at Linux's default of half the memory"
    yield Diagnosis(
        f"the CPU tier of {format_bytes(total)} does not fit /dev/shm",
        f"{format_bytes(shm)} are in /dev/shm{known}; the tier is a file there, checked at start",
        f"mount -o remount,size={ceil_div(total * 11, 10 * GIB)}G /dev/shm (in a container: --ipc=host, or --shm-size)",
    )


@rule("LR306", "warning", "cpu_tier_smaller_than_request", "the CPU tier cannot hold one prompt of max-model-len")
def cpu_tier_smaller_than_request(deployment: Deployment) -> Iterator[Diagnosis]:
    """The longest prompts, which cost most to recompute, never come back whole."""
    tier = deployment.tier("cpu")
    if tier is None or tier.capacity_tokens is None or tier.capacity_tokens >= deployment.max_model_len:
        return
    yield Diagnosis(
        f"the CPU tier holds {tier.capacity_tokens} tokens, less than one prompt of {deployment.max_model_len}",
        f"{format_bytes(tier.capacity_bytes or 0)} in {tier.num_chunks} chunks of {tier.chunk_bytes} bytes; a longer prefix "
        "pushes its own head out, and a hit must start at the head",
        "enlarge the tier, or do without it",
    )


@rule("LR307", "warning", "cpu_tier_adds_little", "the CPU tier is hardly larger than the GPU cache")
def cpu_tier_adds_little(deployment: Deployment) -> Iterator[Diagnosis]:
    """The tier holds a copy of what the GPUs hold: its gain is the difference."""
    tier, capacity = deployment.tier("cpu"), deployment.capacity
    if tier is None or capacity is None or tier.capacity_tokens is None:
        return
    gpu = capacity.kv_capacity_tokens
    if tier.capacity_tokens >= _WORTHWHILE_RATIO * gpu or tier.capacity_tokens < deployment.max_model_len:
        return
    yield Diagnosis(
        f"a CPU tier of {tier.capacity_tokens} tokens adds little to {gpu} on the GPUs",
        "every stored prefix is also copied while it is still on the GPUs, so the hit rate is that of the larger of the "
        f"two, not of their sum; under {_WORTHWHILE_RATIO} x the gain was a few points in replays of real traffic",
        f"make it at least {_WORTHWHILE_RATIO * gpu} tokens, or leave it out; longreach tiers PLAN measures what it is worth",
        set_option("offload", None)
        if deployment.options.offload and not deployment.options.offload.disk_path
        else None,
    )


@rule("LR312", "warning", "tier_does_not_pay", "reloading from a tier is slower than computing again")
def tier_does_not_pay(deployment: Deployment) -> Iterator[Diagnosis]:
    """Said for each tier whose reload takes longer than prefill."""
    for forecast in deployment.tier_forecasts:
        if forecast.pays is not False:
            continue
        yield Diagnosis(
            f"the {forecast.name} tier does not pay{_seconds(forecast.reload_s.low, forecast.recompute_s.high)}",
            forecast.why,
            f"leave the {forecast.name} tier out, or put it on something faster",
        )


def _seconds(reload_s: float | None, recompute_s: float | None) -> str:
    if reload_s is None or recompute_s is None:
        return ""
    return f": reloading takes at least {format_duration(reload_s)}, computing again at most {format_duration(recompute_s)}"


RULES: tuple[Rule, ...] = (
    tiers_hold_other_prefixes,
    disk_tier_needs_tiering_spec,
    disk_tier_never_deletes,
    cpu_tier_exceeds_ram,
    cpu_tier_exceeds_shm,
    cpu_tier_smaller_than_request,
    cpu_tier_adds_little,
    tier_does_not_pay,
)
