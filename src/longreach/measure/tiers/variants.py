"""The variants of one planned instance: GPU alone, with its CPU tier, with its disk tier; each as the command it runs. Pure."""

from dataclasses import replace

from longreach.engine.command import render_command
from longreach.engine.flags import registry_of
from longreach.engine.options import EngineOptions, OffloadOptions, ServeCommand
from longreach.engine.release import Release
from longreach.errors import UsageError
from longreach.measure.tiers.values import TierSet
from longreach.plan.values import InstancePlan

_GPU = TierSet(("gpu",))
_CONNECTOR_FLAGS = ("--kv-transfer-config", "--kv-offloading-size")
_USAGE_FLAG = "--enable-prompt-tokens-details"


def tier_sets(instance: InstancePlan) -> tuple[TierSet, ...]:
    """GPU alone first, then one tier more each. The CPU tier is under LRU: another policy has to win first (`with_arc`).

    UsageError where there is no tier to judge, or the command says it in a way that cannot be taken apart.
    """
    offload = _check(instance)
    sets = [_GPU, TierSet(("gpu", "cpu"), "lru")]
    if offload.disk_path is not None:
        sets.append(TierSet(("gpu", "cpu", "disk"), "lru"))
    return tuple(sets)


def with_arc(variant: TierSet) -> TierSet:
    """The same tiers with the CPU tier under ARC."""
    assert variant.policy is not None, "a GPU alone has no policy"
    return replace(variant, policy="arc")


def variant_options(options: EngineOptions, variant: TierSet, disk_path: str | None = None) -> EngineOptions:
    """The planned options with these tiers alone; `disk_path` replaces the planned folder. Everything else is as planned."""
    return replace(options, offload=_offload(options.offload, variant, disk_path))


def variant_command(
    instance: InstancePlan, variant: TierSet, release: Release, disk_path: str | None = None
) -> ServeCommand:
    """The planned command with these tiers alone, and with cached tokens told in every answer.

    A command that was edited by hand comes in the plan's own spelling and order; it means the same.
    """
    options = variant_options(instance.options, variant, disk_path)
    if options.enable_prompt_tokens_details is None and registry_of(release).find(_USAGE_FLAG) is not None:
        options = replace(options, enable_prompt_tokens_details=True)
    return render_command(options, release)


def _offload(planned: OffloadOptions | None, variant: TierSet, disk_path: str | None) -> OffloadOptions | None:
    if variant.policy is None or planned is None:
        return None
    kept = replace(planned, eviction_policy=variant.policy)
    if "disk" in variant.tiers:
        return replace(kept, disk_path=disk_path or planned.disk_path)
    return replace(kept, disk_path=None, num_disk_read_threads=None, num_disk_write_threads=None)


def _check(instance: InstancePlan) -> OffloadOptions:
    options, offload = instance.options, instance.options.offload
    if options.enable_prefix_caching is False:
        raise UsageError(
            f"no tier of '{instance.name}' can pay",
            "its command has --no-enable-prefix-caching, and a tier serves prefixes that come back",
            "plan without --no-prefix-caching",
        )
    if offload is None:
        raise _no_tier(instance)
    if "secondary_tiers" in dict(offload.extra):
        raise UsageError(
            f"the disk tier of '{instance.name}' cannot be taken out by itself",
            "its secondary_tiers hold more than one filesystem tier, or keys that are not known here",
            "plan it with --disk-tier PATH",
        )
    return offload


def _no_tier(instance: InstancePlan) -> UsageError:
    flag = next(
        (known for word in instance.options.extra_args for known in _CONNECTOR_FLAGS if word.startswith(known)), None
    )
    if flag is None:
        why, fix = "its command has no CPU tier", "plan one: longreach plan ... --cpu-tier 64GiB [--disk-tier PATH]"
    else:
        why = f"its command has {flag} in a form that cannot be taken apart"
        fix = "plan the tiers with --cpu-tier and --disk-tier"
    return UsageError(f"'{instance.name}' has no tier to judge", why, fix)
