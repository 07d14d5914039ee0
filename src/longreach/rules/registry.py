"""Every rule in one explicit tuple, and every kind of finding there is."""

from longreach.rules import (
    capacity,
    concurrency,
    gpu,
    kv_dtype,
    link,
    memory,
    multimodal,
    network,
    observed,
    offload,
    outside_share,
    parallel,
    parsers,
    rope,
    scheduler,
    speculation,
    speed,
    split_blocks,
    tiers,
    written_backend,
    written_drafts,
    written_env,
    written_hybrid,
    written_kv,
    written_names,
    written_offload,
    written_parser,
    written_platform,
    written_quantization,
    written_rope,
    written_serving,
    written_speculation,
    written_text,
    written_weights,
)
from longreach.rules.deployment import Deployment
from longreach.rules.finding import SEVERITIES, Finding, FindingKind
from longreach.rules.rule import OptionRule, Rule
from longreach.rules.written import CommandRule

RULES: tuple[Rule, ...] = tuple(
    sorted(
        (
            *memory.RULES,
            *outside_share.RULES,
            *capacity.RULES,
            *concurrency.RULES,
            *kv_dtype.RULES,
            *rope.RULES,
            *tiers.RULES,
            *offload.RULES,
            *scheduler.RULES,
            *speculation.RULES,
            *parallel.RULES,
            *split_blocks.RULES,
            *link.RULES,
            *gpu.RULES,
            *multimodal.RULES,
            *parsers.RULES,
            *network.RULES,
            *speed.RULES,
        ),
        key=lambda rule: rule.kind.code,
    )
)
"""In the order of their codes."""

OPTION_RULES: tuple[OptionRule, ...] = (
    gpu.numa_bind_without_numactl,
    memory.utilization_ignored,
    network.open_to_network,
    offload.answers_not_offloaded,
    offload.arc_no_better_than_lru,
    offload.expandable_segments_conflict,
    parsers.auto_tool_choice_without_parser,
    parsers.parser_without_auto_tool,
    rope.length_check_silenced,
    scheduler.batched_tokens_lt_num_seqs,
    scheduler.batched_tokens_lt_max_len,
    speculation.host_drafts_exclude_async,
)
"""Of those above the ones that need neither model nor machine."""

COMMAND_RULES: tuple[CommandRule, ...] = tuple(
    sorted(
        (
            *written_parser.RULES,
            *written_text.RULES,
            *written_names.RULES,
            *written_offload.RULES,
            *written_env.RULES,
            *written_serving.RULES,
            *written_speculation.RULES,
            *written_rope.RULES,
            *written_hybrid.RULES,
            *written_kv.RULES,
            *written_quantization.RULES,
            *written_weights.RULES,
            *written_drafts.RULES,
            *written_backend.RULES,
            *written_platform.RULES,
        ),
        key=lambda rule: rule.kind.code,
    )
)
"""Over the words of a foreign command; in the order of their codes."""

KINDS: tuple[FindingKind, ...] = tuple(
    sorted(
        (*(rule.kind for rule in RULES), *(rule.kind for rule in COMMAND_RULES), *observed.KINDS),
        key=lambda kind: kind.code,
    )
)


def check_deployment(deployment: Deployment) -> tuple[Finding, ...]:
    """Every finding of every rule that holds for the deployment's release: gravest first, then by code."""
    found = (finding for rule in RULES for finding in rule.check(deployment))
    return tuple(sorted(found, key=lambda finding: (SEVERITIES.index(finding.severity), finding.code)))
