"""The figures of one variant, from the results of its runs. Pure."""

from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from itertools import chain

from longreach.measure.bench.statistics import describe
from longreach.measure.bench.values import BenchResult, PhaseReport, RequestRecord
from longreach.measure.tiers.places import Place
from longreach.measure.tiers.values import UNSPECIFIED_SOURCE, RoundFigures, TierSet, VariantFigures


def variant_figures(variant: TierSet, results: Sequence[BenchResult], places: Mapping[int, Place]) -> VariantFigures:
    """All runs of one variant together; a failed request counts as failed and in no figure."""
    records = [record for result in results for record in result.counted]
    phases = [phase for result in results for phase in result.phases if phase.state != "flood"]
    ok = [record for record in records if record.ok]
    duration_s = sum(phase.ended_s - phase.began_s for phase in phases)
    prompt_tokens = sum(record.prompt_tokens or record.wanted_prompt_tokens or 0 for record in ok)
    hits = _hits_by_source(variant, phases)
    load_s, written = _total(phases, lambda phase: phase.offload_load_s), _disk_bytes(phases, "tier_write_bytes")
    loaded = _total(phases, lambda phase: phase.offload_load_bytes)
    reloaded = None if hits is None else sum(tokens for source, tokens in hits if source != "device")
    servers = [result.header.server for result in results]
    return VariantFigures(
        variant=variant,
        num_runs=len(results),
        num_ok=len(ok),
        num_failed=len(records) - len(ok),
        prompt_tokens=prompt_tokens,
        hits_by_source=hits,
        cached_tokens=_cached_tokens(ok, hits),
        ttft_s=describe(ttfts) if (ttfts := [record.ttft_s for record in ok if record.ttft_s is not None]) else None,
        rounds=_rounds(ok, places),
        prompt_tokens_per_s=_per_s(prompt_tokens, duration_s),
        output_tokens_per_s=_per_s(sum(record.output_tokens or 0 for record in ok), duration_s),
        duration_s=duration_s,
        num_preemptions=_whole(_total(phases, lambda phase: phase.num_preemptions)),
        stored_bytes=_whole(_total(phases, lambda phase: phase.offload_store_bytes)),
        loaded_bytes=_whole(loaded),
        reload_bytes_per_s=_per_s(loaded, load_s),
        reload_tokens_per_s=_per_s(reloaded, load_s),
        disk_written_bytes=written,
        disk_read_bytes=_disk_bytes(phases, "tier_read_bytes"),
        disk_written_bytes_per_s=_per_s(written, duration_s),
        block_size=next((server.block_size for server in servers if server.block_size), None),
        kv_capacity_tokens=next((server.kv_capacity_tokens for server in servers if server.kv_capacity_tokens), None),
        engine_version=next((server.version for server in servers if server.version), None),
        num_mixed_runs=sum(any(map(_is_mixed, result.phases)) for result in results),
    )


def _is_mixed(phase: PhaseReport) -> bool:
    """It counted, and not our requests alone."""
    return not phase.attributed and (phase.prompt_tokens is not None or bool(phase.hits_by_source))


def _hits_by_source(variant: TierSet, phases: Sequence[PhaseReport]) -> tuple[tuple[str, int], ...] | None:
    """As the metrics tell them; releases before 0.32 tell only what came from the GPUs and what from elsewhere."""
    counted: Counter[str] = Counter()
    for source, tokens in chain.from_iterable(phase.hits_by_source for phase in phases):
        counted[source] += tokens
    if counted:
        return tuple(sorted(counted.items()))
    local = _total(phases, lambda phase: phase.prefix_hit_tokens)
    if local is None:
        return None
    outside = _total(phases, lambda phase: phase.external_hit_tokens) or 0
    elsewhere = "host" if "disk" not in variant.tiers else UNSPECIFIED_SOURCE
    return (("device", int(local)), *(((elsewhere, int(outside)),) if outside else ()))


def _cached_tokens(ok: Sequence[RequestRecord], hits: Sequence[tuple[str, int]] | None) -> int | None:
    told = [record.cached_tokens for record in ok if record.cached_tokens is not None]
    if ok and len(told) == len(ok):
        return sum(told)
    return None if hits is None else sum(tokens for _, tokens in hits)


def _rounds(ok: Sequence[RequestRecord], places: Mapping[int, Place]) -> tuple[RoundFigures, ...]:
    waits: dict[int, list[float]] = defaultdict(list)
    for record in ok:
        if record.ttft_s is not None and record.index in places:
            waits[places[record.index].round].append(record.ttft_s)
    return tuple(RoundFigures(number, len(found), sum(found) / len(found)) for number, found in sorted(waits.items()))


def _total(phases: Iterable[PhaseReport], read: Callable[[PhaseReport], float | None]) -> float | None:
    told = [value for phase in phases if (value := read(phase)) is not None]
    return sum(told) if told else None


def _disk_bytes(phases: Sequence[PhaseReport], field: str) -> int | None:
    """Bytes of all tiers but the first, which is the CPU tier's own memory ("0:primary")."""
    told = [pair for phase in phases for pair in getattr(phase, field)]
    return sum(size for tier, size in told if not tier.startswith("0:")) if told else None


def _per_s(amount: float | None, seconds: float | None) -> float | None:
    return amount / seconds if amount and seconds else None


def _whole(value: float | None) -> int | None:
    return None if value is None else int(value)
