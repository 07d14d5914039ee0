from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest
from tests.measure.tiers.tier_cases import planned

from longreach.engine.command import parse_command
from longreach.engine.release import get_release
from longreach.errors import UsageError
from longreach.measure.tiers.values import TierSet
from longreach.measure.tiers.variants import tier_sets, variant_command, with_arc
from longreach.plan.document import plan_from_document, plan_to_document
from longreach.plan.values import InstancePlan

RELEASE = get_release("0.32.0")
GPU, CPU, DISK = TierSet(("gpu",)), TierSet(("gpu", "cpu"), "lru"), TierSet(("gpu", "cpu", "disk"), "lru")


def instance(**wish: Any) -> InstancePlan:
    return planned(**wish).instances[0]


def test_each_variant_has_one_tier_more_than_the_one_before() -> None:
    assert tier_sets(instance()) == (GPU, CPU)
    assert tier_sets(instance(disk="/kv")) == (GPU, CPU, DISK)
    assert [item.name for item in (GPU, CPU, DISK, with_arc(DISK))] == [
        "gpu",
        "gpu+cpu",
        "gpu+cpu+disk",
        "gpu+cpu+disk+arc",
    ]


def test_a_planned_arc_has_to_win_first() -> None:
    assert {item.policy for item in tier_sets(instance(policy="arc"))} == {None, "lru"}


@pytest.mark.parametrize(
    ("wish", "variant"),
    [({}, CPU), ({"disk": "/kv"}, DISK), ({"policy": "arc"}, with_arc(CPU))],
    ids=["cpu", "disk", "arc"],
)
def test_the_fullest_variant_is_the_plan_s_own_command(wish: dict[str, Any], variant: TierSet) -> None:
    assert variant_command(instance(**wish), variant, RELEASE).argv == instance(**wish).argv


def test_a_variant_differs_in_the_connector_alone() -> None:
    full, gpu = instance(disk="/kv"), variant_command(instance(disk="/kv"), GPU, RELEASE).argv
    flag = full.argv.index("--kv-transfer-config")
    assert gpu == (*full.argv[:flag], *full.argv[flag + 2 :])
    cpu = parse_command(variant_command(full, CPU, RELEASE).argv, (), RELEASE)
    assert cpu.offload is not None
    assert cpu.offload.disk_path is None


def test_each_start_gets_a_disk_folder_of_its_own() -> None:
    options = parse_command(
        variant_command(instance(disk="/kv"), DISK, RELEASE, disk_path="/kv/run-1").argv, (), RELEASE
    )
    assert options.offload is not None
    assert options.offload.disk_path == "/kv/run-1"


def test_flags_that_were_added_by_hand_stay_in_every_variant() -> None:
    edited = instance(extra=("--uvicorn-log-level", "warning"))
    for variant in (GPU, CPU):
        assert variant_command(edited, variant, RELEASE).argv[-2:] == ("--uvicorn-log-level", "warning")


def test_cached_tokens_are_told_even_if_the_plan_was_edited_not_to() -> None:
    document = plan_to_document(planned())
    document["instances"][0]["argv"].remove("--enable-prompt-tokens-details")
    edited = plan_from_document(document).instances[0]
    assert "--enable-prompt-tokens-details" in variant_command(edited, GPU, RELEASE).argv


def _cut(argv: list[str], flag: str, length: int) -> None:
    place = argv.index(flag)
    del argv[place : place + length]


def _set(argv: list[str], value: str) -> None:
    argv[argv.index("--kv-transfer-config") + 1] = value


def _turn_off_prefix_caching(argv: list[str]) -> None:
    argv[argv.index("--enable-prefix-caching")] = "--no-enable-prefix-caching"


@pytest.mark.parametrize(
    ("change", "what"),
    [
        (lambda argv: _cut(argv, "--kv-transfer-config", 2), "has no tier"),
        (lambda argv: _set(argv, '{"kv_connector":"LMCacheConnectorV1","kv_role":"kv_both"}'), "has no tier"),
        (_turn_off_prefix_caching, "can pay"),
        (
            lambda argv: _set(
                argv,
                '{"kv_connector":"OffloadingConnector","kv_role":"kv_both","kv_connector_extra_config":{"cpu_bytes_to_use":'
                '4294967296,"spec_name":"TieringOffloadingSpec","secondary_tiers":[{"type":"fs","root_dir":"/a"},'
                '{"type":"fs","root_dir":"/b"}]}}',
            ),
            "taken out by itself",
        ),
    ],
    ids=["no tier", "another connector", "no prefix caching", "two disks"],
)
def test_what_cannot_be_taken_apart_is_refused_in_plain_words(change: Callable[[list[str]], object], what: str) -> None:
    document = plan_to_document(planned())
    change(document["instances"][0]["argv"])
    with pytest.raises(UsageError, match=what):
        tier_sets(plan_from_document(document).instances[0])


def test_all_variants_have_the_environment_of_the_plan() -> None:
    """On a CPU, how many cores compute is written there, since vLLM itself keeps more of them back for a connector."""
    reserved = (("VLLM_CPU_NUM_OF_RESERVED_CPU", "1"),)
    planned_so = replace(instance(), options=replace(instance().options, env=reserved))
    assert {variant_command(planned_so, variant, RELEASE).env for variant in tier_sets(planned_so)} == {reserved}
