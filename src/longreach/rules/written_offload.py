"""What a `--kv-transfer-config` asks of the offloading connector, and what comes of it: LR940 to LR949. Pure."""

from collections.abc import Iterator, Mapping

from longreach.engine.parsing.similar import nearest
from longreach.engine.registry import REGISTRY_VERSIONS, releases_with_name
from longreach.rules.edit import remove_flag
from longreach.rules.rule import Diagnosis, rule
from longreach.rules.written import CommandRule, WrittenCommand, span_text
from longreach.rules.written_names import replace_key
from longreach.units import GIB, did_you_mean, nearest_name

_CONNECTOR = "OffloadingConnector"
_TIERING_SPEC = "TieringOffloadingSpec"
_DEFAULT_SPEC = "CPUOffloadingSpec"
_TIER_THREADS = ("n_read_threads", "n_write_threads")


def _spec_name(extra: Mapping[str, object]) -> str:
    return str(extra.get("spec_name") or _DEFAULT_SPEC)


def _has_own_spec(extra: Mapping[str, object]) -> bool:
    return extra.get("spec_module_path") is not None


def _tiers(extra: Mapping[str, object]) -> tuple[Mapping[str, object], ...]:
    tiers = extra.get("secondary_tiers")
    return tuple(tier for tier in tiers if isinstance(tier, Mapping)) if isinstance(tiers, list | tuple) else ()


def _offload(written: WrittenCommand) -> Mapping[str, object] | None:
    """The extra config of an in-tree OffloadingConnector; None when the command has none, or brings a spec of its own."""
    if written.connector != _CONNECTOR or _has_own_spec(written.connector_extra):
        return None
    return written.connector_extra


def _with_extra(written: WrittenCommand, changes: Mapping[str, object]) -> Mapping[str, object]:
    merged = {**written.connector_extra, **changes}
    return {"kv_connector_extra_config": {key: value for key, value in merged.items() if value is not None}}


@rule(
    "LR940",
    "error",
    "unknown_offload_spec",
    "the release has no offload spec of this name",
    outcome="refused_at_start",
    first="0.11.0",
)
def unknown_offload_spec(written: WrittenCommand) -> Iterator[Diagnosis]:
    """A spec outside vLLM needs spec_module_path beside its name."""
    extra = _offload(written)
    known = written.registry.names("offload_spec")
    if extra is None or not known or _spec_name(extra) in known:
        return
    name = _spec_name(extra)
    releases = releases_with_name("offload_spec", name)
    has = f"it exists {span_text(releases, REGISTRY_VERSIONS[-1])}; " if releases else ""
    yield Diagnosis(
        f"offload spec {name!r} is not known to vLLM {written.release.version}",
        f"{has}this release has {', '.join(sorted(known))}, and others only through spec_module_path",
        f"vLLM {releases[0]} or later"
        if releases
        else did_you_mean(name, sorted(known)) or 'give "spec_module_path" too',
        edit=replace_key(written, _with_extra(written, {"spec_name": nearest_name(name, sorted(known))})),
    )


@rule(
    "LR941",
    "error",
    "secondary_tiers_without_spec",
    "the disk tier is ignored without the tiering spec",
    outcome="no_effect",
    first="0.22.0",
)
def secondary_tiers_without_spec(written: WrittenCommand) -> Iterator[Diagnosis]:
    """CPUOffloadingSpec, the default, reads no secondary_tiers and says nothing."""
    extra = _offload(written)
    if extra is None or "secondary_tiers" not in extra or _spec_name(extra) != _DEFAULT_SPEC:
        return
    yield Diagnosis(
        f"secondary_tiers is given and the spec is {_DEFAULT_SPEC}: there will be no second tier",
        f"without spec_name vLLM takes {_DEFAULT_SPEC}, which never reads secondary_tiers; nothing is logged",
        f'add "spec_name": "{_TIERING_SPEC}" beside secondary_tiers',
        edit=replace_key(written, _with_extra(written, {"spec_name": _TIERING_SPEC})),
    )


@rule(
    "LR942",
    "warning",
    "offload_key_ignored",
    "a key of the offload config is never read",
    outcome="no_effect",
    first="0.11.0",
)
def offload_key_ignored(written: WrittenCommand) -> Iterator[Diagnosis]:
    """Unknown keys of kv_connector_extra_config are never reported by vLLM."""
    extra = _offload(written)
    if extra is None:
        return
    spec = _spec_name(extra)
    read = written.registry.offload_keys.get(spec, frozenset()) | written.registry.offload_keys.get(
        _CONNECTOR, frozenset()
    )
    if not read:
        return
    for key in sorted(set(extra) - read - {"secondary_tiers"}):
        belongs = f'it belongs inside an entry of secondary_tiers: {{"type": "fs", "{key}": {extra[key]}}}'
        near = " or ".join(map(repr, nearest(key, sorted(read))))
        yield Diagnosis(
            f"{key!r} in kv_connector_extra_config is never read",
            f"{spec} of vLLM {written.release.version} reads {', '.join(sorted(read))}; other keys are ignored without a word",
            belongs if key in _TIER_THREADS else f"did you mean {near}?" if near else f"take {key} out",
            edit=replace_key(written, _moved(written, key)),
        )


def _moved(written: WrittenCommand, key: str) -> Mapping[str, object]:
    """The extra config without the key; threads of a disk tier go where they count."""
    extra = written.connector_extra
    if key not in _TIER_THREADS or not _tiers(extra):
        return _with_extra(written, {key: None})
    tiers = [{**tier, key: extra[key]} if tier.get("type") == "fs" else dict(tier) for tier in _tiers(extra)]
    return _with_extra(written, {key: None, "secondary_tiers": tiers})


@rule(
    "LR943",
    "error",
    "offload_size_missing",
    "the offloading connector is not told how much memory to take",
    outcome="refused_at_start",
    first="0.11.0",
)
def offload_size_missing(written: WrittenCommand) -> Iterator[Diagnosis]:
    """0.11 to 0.13 count blocks, later releases bytes over all workers."""
    extra = _offload(written)
    if extra is None:
        return
    keys = written.registry.offload_keys.get(_spec_name(extra), frozenset())
    wanted = next((key for key in ("cpu_bytes_to_use", "num_cpu_blocks") if key in keys), None)
    if wanted is None or extra.get(wanted) or written.parsed.value("--kv-offloading-size") is not None:
        return
    value = 64 * GIB if wanted == "cpu_bytes_to_use" else 10_000
    other = "cpu_bytes_to_use" if wanted == "num_cpu_blocks" else "num_cpu_blocks"
    instead = f" ({other} is another release's key)" if other in extra else ""
    yield Diagnosis(
        f"the offload config has no {wanted!r}",
        f"vLLM {written.release.version} refuses: {wanted} must be specified in kv_connector_extra_config{instead}",
        f'add "{wanted}": {value} ({"bytes, summed over all workers" if wanted == "cpu_bytes_to_use" else "blocks a worker"})',
        edit=replace_key(written, _with_extra(written, {wanted: value, other: None})),
    )


@rule(
    "LR944",
    "error",
    "secondary_tier_malformed",
    "an entry of secondary_tiers is not one that vLLM takes",
    outcome="refused_at_start",
    first="0.22.0",
)
def secondary_tier_malformed(written: WrittenCommand) -> Iterator[Diagnosis]:
    """Entries go to the tier's constructor: an unknown type or key ends the start."""
    extra = _offload(written)
    if extra is None or "secondary_tiers" not in extra or _spec_name(extra) == _DEFAULT_SPEC:
        return
    if not isinstance(extra["secondary_tiers"], list | tuple):
        kind = type(extra["secondary_tiers"]).__name__
        example = '"secondary_tiers": [{"type": "fs", "root_dir": "/var/cache/kv"}]'
        yield Diagnosis("secondary_tiers is not a list", f"it is a {kind}; vLLM refuses", example)
    for index, tier in enumerate(_tiers(extra)):
        yield from _check_tier(written, index, tier)


def _check_tier(written: WrittenCommand, index: int, tier: Mapping[str, object]) -> Iterator[Diagnosis]:
    known = written.registry.names("secondary_tier")
    kind, version = tier.get("type"), written.release.version
    if kind is None:
        fix = f'add "type": one of {", ".join(sorted(known))}'
        yield Diagnosis(f"secondary tier {index} has no type", "vLLM refuses an entry without it", fix)
    elif known and isinstance(kind, str) and kind not in known:
        renamed = {"fs_python": "fs", "fs": "fs_python"}.get(kind)
        better = renamed if renamed in known else nearest_name(kind, sorted(known))
        tiers = [
            {**entry, "type": better} if place == index else dict(entry)
            for place, entry in enumerate(_tiers(written.connector_extra))
        ]
        yield Diagnosis(
            f"secondary tier type {kind!r} is not known to vLLM {version}",
            f"it has {', '.join(sorted(known))}; the disk tier is fs_python in 0.22 and fs from 0.23 on",
            f'"type": "{better}"' if better else did_you_mean(kind, sorted(known)) or "take the entry out",
            edit=replace_key(written, _with_extra(written, {"secondary_tiers": tiers})) if better else None,
        )


@rule(
    "LR945",
    "error",
    "unknown_eviction_policy",
    "the offload eviction policy is not one that vLLM has",
    outcome="refused_at_start",
    first="0.11.2",
)
def unknown_eviction_policy(written: WrittenCommand) -> Iterator[Diagnosis]:
    """`lru` and `arc`, unless a policy of one's own is imported."""
    extra = _offload(written)
    policy = None if extra is None or extra.get("cache_policy_module_path") else extra.get("eviction_policy")
    if policy is None or policy in ("lru", "arc"):
        return
    yield Diagnosis(
        f"eviction_policy {policy!r} is not one that vLLM has",
        f"vLLM {written.release.version} has lru and arc",
        '"eviction_policy": "lru"',
        edit=replace_key(written, _with_extra(written, {"eviction_policy": "lru"})),
    )


@rule(
    "LR946",
    "error",
    "offload_chunk_given_twice",
    "the offload chunk is given in tokens and in blocks",
    outcome="refused_at_start",
    first="0.26.0",
)
def offload_chunk_given_twice(written: WrittenCommand) -> Iterator[Diagnosis]:
    """`block_size` (tokens) and `blocks_per_chunk` exclude each other."""
    extra = _offload(written)
    if extra is None or "block_size" not in extra or "blocks_per_chunk" not in extra:
        return
    yield Diagnosis(
        f"the offload chunk is {extra['block_size']} tokens and {extra['blocks_per_chunk']} blocks",
        "vLLM takes only one of 'block_size' and 'blocks_per_chunk'",
        "keep blocks_per_chunk: it fits models with several block sizes too",
        edit=replace_key(written, _with_extra(written, {"block_size": None})),
    )


@rule(
    "LR947",
    "error",
    "store_threshold_with_tiers",
    "a store threshold does not go with tiers",
    outcome="refused_at_start",
    first="0.22.0",
)
def store_threshold_with_tiers(written: WrittenCommand) -> Iterator[Diagnosis]:
    """TieringOffloadingSpec refuses store_threshold of 2 or more."""
    extra = _offload(written)
    threshold = None if extra is None or _spec_name(extra) != _TIERING_SPEC else extra.get("store_threshold")
    if not isinstance(threshold, int) or threshold < 2:
        return
    yield Diagnosis(
        f"store_threshold {threshold} is given beside {_TIERING_SPEC}",
        f"{_TIERING_SPEC} refuses a store_threshold of 2 or more",
        "take store_threshold out",
        edit=replace_key(written, _with_extra(written, {"store_threshold": None})),
    )


@rule(
    "LR948",
    "warning",
    "offload_asked_twice",
    "two flags ask for offload",
    first="0.11.2",
)
def offload_asked_twice(written: WrittenCommand) -> Iterator[Diagnosis]:
    """`--kv-offloading-size` writes a transfer config of its own."""
    size = written.parsed.value("--kv-offloading-size")
    overruled = written.connector not in (None, _CONNECTOR) or "cpu_bytes_to_use" in written.connector_extra
    if size is None or not overruled:
        return
    yield Diagnosis(
        f"--kv-offloading-size {size} stands beside a connector and size in --kv-transfer-config",
        "--kv-offloading-size sets connector, role and cpu_bytes_to_use itself, over what the JSON says",
        "keep one of them",
        edit=remove_flag("--kv-offloading-size"),
    )


@rule(
    "LR949",
    "advice",
    "failed_load_fails_request",
    "one block that cannot be loaded fails its request",
    first="0.11.1",
)
def failed_load_fails_request(written: WrittenCommand) -> Iterator[Diagnosis]:
    """The default of `kv_load_failure_policy` is to fail (0.12.0 to 0.33.0)."""
    transfer = written.transfer
    keys = written.registry.settings.get("KVTransferConfig", {})
    if transfer is None or "kv_load_failure_policy" not in keys or transfer.get("kv_load_failure_policy") is not None:
        return
    yield Diagnosis(
        f"'kv_load_failure_policy' is not given beside {written.connector or 'a KV connector'}",
        f"a block gone from its tier then ends the request with an error; vLLM {written.release.version} can compute it again",
        '"kv_load_failure_policy": "recompute"',
        edit=replace_key(written, {"kv_load_failure_policy": "recompute"}),
    )


RULES: tuple[CommandRule, ...] = (
    unknown_offload_spec,
    secondary_tiers_without_spec,
    offload_key_ignored,
    offload_size_missing,
    secondary_tier_malformed,
    unknown_eviction_policy,
    offload_chunk_given_twice,
    store_threshold_with_tiers,
    offload_asked_twice,
    failed_load_fails_request,
)
