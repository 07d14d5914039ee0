from pathlib import Path
from typing import get_args

import pytest

from longreach.engine.registry import (
    FAMILIES,
    REGISTRY_VERSIONS,
    Family,
    FlagKind,
    Registry,
    apply_differences,
    get_registry,
    releases_with_flag,
    releases_with_name,
    releases_with_setting,
    version_key,
)
from longreach.errors import UsageError

NEWEST = REGISTRY_VERSIONS[-1]


def test_releases_are_the_latest_patch_of_each_minor_oldest_first() -> None:
    assert REGISTRY_VERSIONS[0] == "0.8.5.post1"
    assert list(REGISTRY_VERSIONS) == sorted(REGISTRY_VERSIONS, key=version_key)
    minors = {version_key(version)[1] for version in REGISTRY_VERSIONS}
    assert minors == set(range(8, max(minors) + 1))
    assert {"0.10.0", "0.10.1.1", "0.10.2", "0.11.0", "0.11.2"} <= set(REGISTRY_VERSIONS)


def test_unknown_release_is_refused_with_the_near_one() -> None:
    with pytest.raises(UsageError, match=r"vLLM 0\.32\.1 is not in the registry") as caught:
        get_registry("0.32.1")
    assert "0.32.0" in caught.value.fix


# Options of `vllm serve --help` without `--help` itself, and environment variables; counted in the source of each release.
COUNTS = {
    "0.8.5.post1": (137, 109),
    "0.9.2": (164, 137),
    "0.10.2": (176, 177),
    "0.11.2": (200, 209),
    "0.12.0": (194, 217),
    "0.15.1": (207, 228),
    "0.19.1": (231, 238),
    "0.21.0": (247, 253),
    "0.25.1": (270, 273),
    "0.29.0": (292, 302),
    "0.30.0": (300, 302),
    "0.31.0": (311, 308),
    "0.32.0": (316, 316),
    "0.33.0": (320, 318),
}


@pytest.mark.parametrize("version", COUNTS)
def test_release_has_as_many_options_and_variables_as_its_source(version: str) -> None:
    registry = get_registry(version)
    assert (len(registry.flags), len(registry.names("env"))) == COUNTS[version]


# Name: first and last release that has it, as the entries of those releases tell; None where the newest still has it.
FLAG_SPANS = {
    "--rope-scaling": ("0.8.5.post1", "0.11.0"),
    "--rope-theta": ("0.8.5.post1", "0.11.0"),
    "--kv-cache-memory-bytes": ("0.10.2", None),
    "--swap-space": ("0.8.5.post1", "0.17.1"),
    "--num-scheduler-steps": ("0.8.5.post1", "0.10.0"),
    "--enable-reasoning": ("0.8.5.post1", "0.9.2"),
    "--max-seq-len-to-capture": ("0.8.5.post1", "0.10.2"),
    "--cuda-graph-sizes": ("0.9.2", "0.12.0"),
    "--max-cudagraph-capture-size": ("0.11.2", None),
    "--task": ("0.8.5.post1", "0.12.0"),
    "--enable-log-requests": ("0.10.1.1", None),
    "--kv-offloading-size": ("0.11.2", None),
    "--attention-backend": ("0.13.0", None),
    "--language-model-only": ("0.17.1", None),
    "--scheduler-reserve-full-isl": ("0.19.1", None),
    "--numa-bind": ("0.20.2", None),
    "--spec-tokens": ("0.22.1", None),
    "--mm-ipc-gpu-memory-gb": ("0.25.1", None),
    "--device-memory-utilization": ("0.31.0", None),
    "--no-enable-prefix-caching": ("0.8.5.post1", None),
    "--calculate-kv-scales": ("0.8.5.post1", "0.27.1"),
}


@pytest.mark.parametrize("flag", FLAG_SPANS)
def test_option_comes_and_goes_with_its_releases(flag: str) -> None:
    first, last = FLAG_SPANS[flag]
    releases = releases_with_flag(flag)
    assert (releases[0], releases[-1]) == (first, last or NEWEST)
    assert releases == REGISTRY_VERSIONS[REGISTRY_VERSIONS.index(first) :][: len(releases)], "without a gap"


def test_0_33_pairs_enable_with_disable() -> None:
    releases = releases_with_flag("--disable-log-requests")
    assert (releases[-2:], releases_with_flag("--disable-prefix-caching")) == (("0.16.0", "0.33.0"), ("0.33.0",))
    assert get_registry("0.33.0").flags["--disable-cascade-attn"].inverses == ("--enable-cascade-attn",)


NAME_SPANS: list[tuple[Family, str, str, str | None]] = [
    ("env", "VLLM_ATTENTION_BACKEND", "0.8.5.post1", "0.14.1"),
    ("kv_cache_dtype", "turboquant_k8v4", "0.20.2", None),
    ("kv_cache_dtype", "fp8_ds_mla", "0.11.2", None),
    ("spec_method", "mtp", "0.11.0", None),
    ("spec_method", "qwen3_next_mtp", "0.10.2", None),
    ("connector", "OffloadingConnector", "0.11.0", None),
    ("offload_spec", "TieringOffloadingSpec", "0.22.1", None),
    ("secondary_tier", "fs_python", "0.22.1", "0.22.1"),
    ("secondary_tier", "fs", "0.23.0", None),
    ("tool_parser", "qwen3_coder", "0.10.0", None),
    ("reasoning_parser", "qwen3", "0.9.2", None),
    ("quantization", "gguf", "0.8.5.post1", "0.23.0"),
    ("attention_backend", "FLASH_ATTN", "0.8.5.post1", None),
    ("architecture", "Phi3SmallForCausalLM", "0.8.5.post1", "0.9.2"),
    ("former_architecture", "Phi3SmallForCausalLM", "0.10.0", None),
]


@pytest.mark.parametrize(("family", "name", "first", "last"), NAME_SPANS, ids=[row[1] for row in NAME_SPANS])
def test_name_comes_and_goes_with_its_releases(family: Family, name: str, first: str, last: str | None) -> None:
    releases = releases_with_name(family, name)
    assert (releases[0], releases[-1]) == (first, last or NEWEST)


def test_settings_come_and_go_with_their_releases() -> None:
    assert releases_with_setting("CompilationConfig", "cudagraph_mode")[0] == "0.10.1.1"
    assert releases_with_setting("CompilationConfig", "full_cuda_graph")[-1] == "0.11.0"
    assert releases_with_setting("SpeculativeConfig", "use_local_argmax_reduction")[0] == "0.17.1"
    assert releases_with_setting("SpeculativeConfig", "no_such_key") == ()


OFFLOAD_KEYS = {
    "num_cpu_blocks": ("0.11.0", "0.13.0"),
    "cpu_bytes_to_use": ("0.14.1", None),
    "eviction_policy": ("0.11.2", None),
    "store_threshold": ("0.18.1", None),
    "offload_prompt_only": ("0.23.0", None),
    "blocks_per_chunk": ("0.26.0", None),
    "block_size": ("0.11.0", None),
    "spec_name": ("0.11.0", None),
}


@pytest.mark.parametrize("key", OFFLOAD_KEYS)
def test_key_of_the_cpu_offload_is_read_in_its_releases(key: str) -> None:
    first, last = OFFLOAD_KEYS[key]
    entries = [
        get_registry(version).offload_keys.get("CPUOffloadingSpec", frozenset()) for version in REGISTRY_VERSIONS
    ]
    releases = [version for version, keys in zip(REGISTRY_VERSIONS, entries, strict=True) if key in keys]
    assert (releases[0], releases[-1]) == (first, last or NEWEST)


def test_tier_takes_its_constructor_s_keys_and_the_spec_takes_none_of_them() -> None:
    keys = get_registry("0.32.0").offload_keys
    assert {"type", "root_dir", "n_read_threads", "n_write_threads"} <= keys["fs"]
    assert "secondary_tiers" in keys["TieringOffloadingSpec"]
    assert "secondary_tiers" not in keys["CPUOffloadingSpec"]
    assert "n_read_threads" not in keys["TieringOffloadingSpec"]


def test_option_is_found_by_every_spelling_and_by_no_other() -> None:
    registry = get_registry("0.32.0")
    flag = registry.flags["--gpu-memory-utilization"]
    assert flag.spellings == ("--gpu-memory-utilization", "--device-memory-utilization")
    assert registry.find("--device-memory-utilization") is flag
    assert registry.find("-tp") is registry.flags["--tensor-parallel-size"]
    assert registry.find("--no-enable-prefix-caching") is registry.flags["--enable-prefix-caching"]
    assert registry.find("--no-max-model-len") is None
    assert registry.find("--no-headless") is None, "a switch is no pair"
    assert registry.find("--max-model") is None


def test_prefix_matches_every_option_that_it_may_stand_for() -> None:
    def matches(version: str, prefix: str) -> list[str]:
        return [flag.name for flag in get_registry(version).matching(prefix)]

    assert matches("0.32.0", "--kv-cache-mem") == ["--kv-cache-memory-bytes"]
    assert matches("0.10.1.1", "--kv-cache-mem") == []
    assert matches("0.32.0", "--no-scheduler-reserve-full") == ["--scheduler-reserve-full-isl"]
    assert {"--max-num-seqs", "--max-num-batched-tokens"} <= set(matches("0.32.0", "--max-num"))
    assert get_registry("0.32.0").spellings("--enable-prefix") == ("--enable-prefix-caching",)


def test_entries_say_what_the_parser_does_with_a_value() -> None:
    flags = get_registry("0.32.0").flags
    assert flags["--max-model-len"].kind == "length"
    assert flags["--kv-cache-memory-bytes"].kind == "size"
    assert "fp8_e4m3" in flags["--kv-cache-dtype"].choices
    assert "qwen3" in flags["--reasoning-parser"].known
    assert flags["--reasoning-parser"].choices == ()
    assert "FLASH_ATTN" in flags["--attention-backend"].known
    assert flags["--gpu-memory-utilization"].default == 0.92
    assert not flags["--compilation-config"].default_is_static
    assert flags["--speculative-config"].settings == "SpeculativeConfig"
    assert flags["--headless"].default is False
    assert flags["--disable-cascade-attn"].deprecated == "0.33"
    assert flags["--disable-cascade-attn"].no_effect
    assert flags["--moe-backend"].folds
    assert flags["--middleware"].repeats
    assert "deepseek_r1" in get_registry("0.10.2").flags["--reasoning-parser"].choices


@pytest.mark.parametrize("version", REGISTRY_VERSIONS)
def test_every_entry_refers_to_what_is_there(version: str) -> None:
    registry = get_registry(version)
    inner = [entry.settings for keys in registry.settings.values() for entry in keys.values()]
    referred = {*inner, *(flag.settings for flag in registry.flags.values())} - {None}
    assert referred <= registry.settings.keys()
    assert registry.names("offload_spec") <= registry.offload_keys.keys()
    assert registry.names("secondary_tier") <= registry.offload_keys.keys()
    assert not registry.names("architecture") & registry.former_architectures.keys()
    assert all(registry.names(family) for family in FAMILIES if family not in _LATE)
    spelled = [spelling for flag in registry.flags.values() for spelling in flag.spellings]
    assert len(spelled) == len(set(spelled)), "no two options share a spelling"


@pytest.mark.parametrize("version", REGISTRY_VERSIONS)
def test_every_option_is_of_a_known_kind(version: str) -> None:
    flags = get_registry(version).flags.values()
    assert {flag.kind for flag in flags} <= set(get_args(FlagKind))
    assert {flag.nargs for flag in flags} <= {"0", "1", "?", "*", "+"}
    assert all((flag.nargs == "0") == (flag.kind in {"bool", "switch"}) for flag in flags)


_LATE = {"offload_spec", "secondary_tier", "former_architecture"}  # none in the oldest releases


def test_the_page_s_example_runs() -> None:
    page = (Path(__file__).parents[2] / "docs" / "registry.md").read_text(encoding="utf-8")
    example = page.partition("```python\n")[2].partition("```")[0]
    seen: dict[str, object] = {}
    exec(example, seen)
    registry = seen["registry"]
    assert isinstance(registry, Registry)
    assert registry.version == "0.32.0"


def test_differences_change_add_and_take_away() -> None:
    before = {"flags": {"--a": {"kind": "int"}, "--b": {"kind": "int"}}}
    after = apply_differences(before, {"flags": {"--a": {"kind": "text"}, "--b": None}, "env": {"X": 1}})
    assert after == {"flags": {"--a": {"kind": "text"}}, "env": {"X": 1}}
    assert before["flags"]["--a"] == {"kind": "int"}, "the release before stays as it is"
