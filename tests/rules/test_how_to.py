"""What the rules say of a published how-to: 750,000 tokens on 4x RTX 4090, TP 4, FP8 KV, 10 GiB of KV per GPU, tiers."""

from dataclasses import replace
from typing import Any

from tests.rules.deployments import CPU_TIER, DENSE, HYBRID, SPEED_750K, with_options

from longreach.engine.options import OffloadOptions, SpeculativeOptions
from longreach.forecast.values import Span
from longreach.rules.registry import check_deployment
from longreach.units import GIB

ASKED: dict[str, Any] = {
    "offload": OffloadOptions(200 * GIB, "/mnt/nvme/kv", eviction_policy="arc", num_disk_read_threads=32),
    "speculative": SpeculativeOptions("mtp", 3, use_local_argmax_reduction=True),
    "scheduler_reserve_full_isl": False,
    "limit_mm_per_prompt": (("image", 4),),
    "cudagraph_mode": "PIECEWISE",
    "disable_custom_all_reduce": True,
    "tool_call_parser": "qwen3_coder",
    "enable_auto_tool_choice": True,
    "reasoning_parser": "qwen3",
    "enable_prompt_tokens_details": True,
}


def codes(deployment: object, severity: str) -> list[str]:
    assert isinstance(deployment, type(DENSE))
    return [finding.code for finding in check_deployment(deployment) if finding.severity == severity]


def test_model_of_its_arithmetic_cannot_start_and_every_way_around_it_is_refuted() -> None:
    dense = replace(
        with_options(DENSE, **ASKED), ttft_wish_s=60, speed=(replace(SPEED_750K, ttft_cold_s=Span(1700, 2200, 900)),)
    )
    found = {finding.cause: finding for finding in check_deployment(dense)}
    assert found["kv_too_small_for_max_len"].fix == "set --max-model-len to 327664"
    assert {
        "offload_does_not_extend_request",
        "reserve_full_isl_adds_no_capacity",
        "mtp_without_draft_layers",
        "ttft_wish_below_bound",
        "mm_options_on_text_model",
        "parser_wrong_family",
        "disk_tier_needs_tiering_spec",
        "disk_threads_inside_tier",
        "disk_tier_never_deletes",
        "arc_no_better_than_lru",
    } <= found.keys()


def test_model_it_names_starts_and_its_wishes_and_price_are_told() -> None:
    hybrid = replace(with_options(HYBRID, **ASKED), ttft_wish_s=60, tiers=(CPU_TIER,))
    assert codes(hybrid, "error") == ["LR801"]
    assert codes(hybrid, "warning") == ["LR203", "LR303", "LR401", "LR414", "LR511"]
    causes = {finding.cause for finding in check_deployment(hybrid)}
    assert {
        "yarn_needs_max_position_embeddings",
        "yarn_override_nested",
        "tiers_hold_other_prefixes",
        "disk_tier_needs_tiering_spec",
        "disk_threads_inside_tier",
        "answers_not_offloaded",
        "hybrid_hits_are_coarse",
        "client_times_out",
        "chunk_stalls_decode",
    } <= causes
