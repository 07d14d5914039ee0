"""Deployments on which the rules of `tiers` and `offload` speak, and near ones on which they stay silent."""

from dataclasses import replace

from tests.rules.case import Case
from tests.rules.deployments import CPU_TIER, DENSE, HYBRID, with_machine, with_options

from longreach.engine.options import OffloadOptions
from longreach.engine.release import get_release
from longreach.forecast.values import Span, TierForecast
from longreach.rules import offload, tiers
from longreach.units import GIB

_CPU = OffloadOptions(cpu_bytes=200 * GIB)
_DISK = replace(_CPU, disk_path="/var/cache/kv")
_HYBRID_CPU = replace(with_options(HYBRID, offload=_CPU), tiers=(CPU_TIER,))
_HYBRID_DISK = replace(with_options(HYBRID, offload=_DISK), tiers=(CPU_TIER,))
_DENSE_CPU = with_options(DENSE, offload=_CPU, max_model_len=131_072)
_ON_CPU = with_machine(_DENSE_CPU, gpu=None, link=None, num_gpus=0, device_type="cpu")
_OWN_SPEC_ON_CPU = with_options(_ON_CPU, offload=replace(_CPU, spec_name="Spec", spec_module_path="own.spec"))
_NO_CACHE = {"enable_prefix_caching": False}
_SLOW = TierForecast(
    name="disk",
    reload_tokens_per_s=Span(7_000, 30_000),
    reload_s=Span(25.0, 107.0),
    recompute_s=Span(9.0, 14.0),
    pays=False,
    why="32768 bytes a token come back from disk slower than they are computed",
)
_CONFLICT = (("PYTORCH_CUDA_ALLOC_CONF", "expandable_segments:True"),)

CASES = (
    Case(
        tiers.tiers_hold_other_prefixes,
        _HYBRID_CPU,
        (HYBRID, with_options(DENSE, offload=_CPU), replace(_HYBRID_CPU, capacity=None)),
    ),
    Case(tiers.disk_tier_needs_tiering_spec, _HYBRID_DISK, (HYBRID, _HYBRID_CPU)),
    Case(tiers.disk_tier_never_deletes, _HYBRID_DISK, (HYBRID, _HYBRID_CPU)),
    Case(
        tiers.cpu_tier_exceeds_ram,
        with_machine(_HYBRID_CPU, ram_bytes=128 * GIB),
        (_HYBRID_CPU, HYBRID, with_machine(_HYBRID_CPU, ram_bytes=None)),
    ),
    Case(
        tiers.cpu_tier_exceeds_shm,
        with_machine(_HYBRID_CPU, ram_bytes=256 * GIB),
        (
            _HYBRID_CPU,
            HYBRID,
            with_machine(_HYBRID_CPU, ram_bytes=None),
            with_machine(_HYBRID_CPU, ram_bytes=256 * GIB, shm_bytes=240 * GIB),
            with_machine(_HYBRID_CPU, ram_bytes=128 * GIB),
        ),
    ),
    Case(
        tiers.cpu_tier_smaller_than_request,
        replace(
            _HYBRID_CPU, tiers=(replace(CPU_TIER, capacity_tokens=310_400, capacity_bytes=10 * GIB, num_chunks=194),)
        ),
        (_HYBRID_CPU, HYBRID, replace(_HYBRID_CPU, tiers=(replace(CPU_TIER, capacity_tokens=None),))),
    ),
    Case(
        tiers.cpu_tier_adds_little,
        replace(_HYBRID_CPU, tiers=(replace(CPU_TIER, capacity_tokens=1_500_000),)),
        (_HYBRID_CPU, HYBRID, replace(_HYBRID_CPU, tiers=(replace(CPU_TIER, capacity_tokens=None),))),
    ),
    Case(
        offload.expandable_segments_conflict,
        with_options(HYBRID, offload=_CPU, env=_CONFLICT),
        (with_options(HYBRID, env=_CONFLICT), _HYBRID_CPU),
    ),
    Case(
        offload.answers_not_offloaded,
        _HYBRID_CPU,
        (HYBRID, with_options(HYBRID, offload=replace(_CPU, offload_prompt_only=True))),
    ),
    Case(
        offload.hybrid_offload_needs_prefix_caching,
        with_options(HYBRID, offload=_CPU, **_NO_CACHE),
        (with_options(HYBRID, **_NO_CACHE), with_options(_DENSE_CPU, **_NO_CACHE), _HYBRID_CPU),
    ),
    Case(
        offload.disk_threads_inside_tier,
        with_options(HYBRID, offload=replace(_DISK, num_disk_read_threads=32)),
        (_HYBRID_DISK, HYBRID),
    ),
    Case(
        tiers.tier_does_not_pay,
        replace(_HYBRID_DISK, tier_forecasts=(_SLOW,)),
        (_HYBRID_DISK, replace(_HYBRID_DISK, tier_forecasts=(replace(_SLOW, pays=True), replace(_SLOW, pays=None)))),
    ),
    Case(offload.hybrid_hits_are_coarse, HYBRID, (DENSE, with_options(HYBRID, **_NO_CACHE))),
    Case(
        offload.offload_on_cpu_platform,
        replace(_ON_CPU, release=get_release("0.31.0")),
        (_DENSE_CPU, with_machine(DENSE, device_type="cpu"), _OWN_SPEC_ON_CPU, _ON_CPU),
    ),
    Case(offload.offload_on_cpu_platform, replace(_ON_CPU, is_foreign=True), (_OWN_SPEC_ON_CPU,)),
    Case(
        offload.offload_on_cpu_needs_plugin,
        _ON_CPU,
        (
            _DENSE_CPU,
            with_machine(DENSE, device_type="cpu"),
            _OWN_SPEC_ON_CPU,
            replace(_ON_CPU, is_foreign=True),
            replace(_ON_CPU, release=get_release("0.33.0")),
        ),
    ),
    Case(
        offload.arc_no_better_than_lru,
        with_options(HYBRID, offload=replace(_CPU, eviction_policy="arc")),
        (_HYBRID_CPU, HYBRID),
    ),
    Case(
        offload.hybrid_offload_needs_hybrid_manager,
        with_options(HYBRID, offload=_CPU, disable_hybrid_kv_cache_manager=True),
        (
            with_options(_DENSE_CPU, disable_hybrid_kv_cache_manager=True),
            with_options(HYBRID, disable_hybrid_kv_cache_manager=True),
        ),
    ),
)
