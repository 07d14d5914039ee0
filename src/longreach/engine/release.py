"""One vLLM release as data: the rules that differ between releases, each a field, never an `if` on a version elsewhere.

Sources: docs/engine.md. Each row of the history names what is new in it; what stands there holds until a later row says otherwise.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass, replace
from itertools import accumulate
from typing import Any, Literal

from longreach.errors import UsageError
from longreach.units import did_you_mean

StartupCheck = Literal["layers", "first_group", "groups"]
"""What the start-up check adds up for one request: each layer by itself, the first group's blocks, or every group's."""

RunnerModels = Literal["few", "dense", "all"]
"""A few named architectures; also every model without experts and recurrent layers; every model."""

CompressedLayout = Literal["tuples", "slots", "overlaid"]
"""Bytes of a compressed model's block: all page sizes times the most layers; each page size times its most layers; or the
widest group's pages."""

StateCounting = Literal["one", "length", "modes"]
"""Blocks of a recurrent group: always one; one for each block of the prompt; or by mode (none, align, all)."""


@dataclass(frozen=True, slots=True)
class Release:
    """What `sizing`, `forecast`, `rules` and `command` must know of a release beyond its flags and names.

    The defaults are those of the oldest release; `_HISTORY` says what changed and when.
    """

    version: str
    # what is printed and refused
    tokens_from_concurrency: bool = False  # int(concurrency x length); before: blocks // groups x smallest block
    concurrency_in_blocks: bool = False  # blocks / blocks of one request; before: tokens / length
    startup_check: StartupCheck = "layers"
    startup_check_by_stage: bool = True  # else the whole model is held against the poorest worker
    null_block_reserved: bool = False  # a request needs one block more than it fills
    refusal_says_models: bool = True  # "with the models's max seq len"
    refusal_gib_trimmed: bool = False  # "10.0 GiB", before "10.00 GiB"
    refusal_estimates: bool = False  # names the largest length that would start
    capacity_on_one_line: bool = False  # tokens and concurrency in one log line
    log_device_word_generic: bool = False  # "CPU KV cache size" off CUDA
    # which layers share a block table
    hybrid_kv_cache_manager: bool = False  # windows free their blocks; before, they count as full attention
    chunked_local_counted: bool = False  # Llama 4's chunks are a kind of their own; before, full attention
    chunked_local_frees_blocks: bool = False  # and keep the hybrid manager on
    connector_disables_hybrid_manager: bool = True  # any --kv-transfer-config; later only connectors that lack it
    offload_with_hybrid_manager: bool = False  # OffloadingConnector works with several kinds of layers
    mixed_pages_share_group: bool = False  # layers of one kind and different widths
    mixed_group_splits_by_stage: bool = False  # else every pipeline stage pays for all layers of such a group
    pages_widen: bool = False  # a page that divides the largest takes more tokens
    attention_pages_pad: bool = False  # other attention pages are padded
    recurrent_pages_pad: bool = False
    windows_fall_back_to_full: bool = False  # windows beside a latent that cannot share its page
    compressed_layout: CompressedLayout | None = None  # of DeepSeek-V4; None: not there yet
    compressed_check_in_tuples: bool = True  # its start-up check counts padded tuples whatever the layout
    compressed_groups_weighed: bool = True  # its concurrency weighs groups by their own bytes
    near_bucket_ratio: float | None = None  # buckets this close in size share the larger one's group size
    # what a layer keeps
    window_keeps_in_flight_batches: bool = False  # windows hold every batch in flight, else one batch
    windows_keep_draft_tokens: bool = False  # what several draft modules read ahead
    prefill_context_parallel_splits: bool = False  # PCP divides what a GPU holds, as DCP does
    full_layers_count_value_dim: bool = False  # else two key widths
    windows_count_value_dim: bool = False
    # recurrent states
    state_counting: StateCounting = "one"
    all_mode_by_default: bool = False  # Mamba models under prefix caching keep a state in every block
    all_mode_exists: bool = False
    all_mode_adds_drafts: bool = False
    drafts_leave_all_mode: bool = False  # with a draft model, align instead
    aligned_states_take_drafts: bool = False  # prefix caching of states beside draft tokens
    skipped_layers_align_blocks: bool = False  # a quantized page covers a block of a layer left at the model's dtype
    hybrids_cache_prefixes_by_default: bool = False
    hybrid_block_multiple_of_given: bool = False  # aligned to --block-size, before to the kernel alone
    hybrid_latent_block_multiple: int | None = None
    states_follow_kv_dtype: bool = True  # recurrent states in --kv-cache-dtype
    config_state_dtype: bool = False  # the state dtype that a model's config or class asks for
    gated_delta_state_dtype: bool = False  # --mamba-ssm-cache-dtype and the config's word hold for gated delta
    mamba2_conv_holds_drafts: bool = False
    kda_conv_holds_drafts: bool = False
    short_conv_holds_drafts: bool = False
    recurrent_checkpoint_block: bool = False  # Mamba2 and checkpointing KDA kernels keep one more block
    gdn_flashinfer_alignment: bool = False  # GDN prefill on FlashInfer aligns blocks to 64, one more state block
    # memory, tiers, rope
    default_gpu_memory_utilization: float = 0.90
    estimates_cudagraph_memory: bool = False  # profiling sets memory aside for CUDA graphs
    counts_collectives: bool = True  # NCCL starts after the first look at free memory, so its buffers count
    sampling_logit_copies: float = 9.6  # float32 logits at the peak of the V1 runner's profile run (it sorts them)
    mrope_rows: int = 4  # of the cos/sin table for each position of M-RoPE
    model_runner_v2_for: RunnerModels = "few"  # models that the V2 runner serves by default
    offload_chunks_page_aligned: bool = False  # CPU tier chunks rounded up to 4,096 bytes
    offload_sized_in_bytes: bool = False  # cpu_bytes_to_use over all workers; before: num_cpu_blocks
    yarn_needs_max_position_embeddings: bool = False  # the YaRN factor no longer widens the derived length

    @property
    def number(self) -> tuple[int, ...]:
        """(0, 32, 0), for ordering; of 0.8.5.post1 (0, 8, 5)."""
        return _number(self.version)

    @property
    def minor(self) -> tuple[int, ...]:
        """(0, 32)."""
        return self.number[:2]


_HISTORY: tuple[tuple[str, Mapping[str, Any]], ...] = (
    ("0.8.5.post1", {}),
    ("0.9.2", {"concurrency_in_blocks": True, "hybrid_kv_cache_manager": True, "refusal_estimates": True}),
    ("0.10.0", {"chunked_local_counted": True}),
    ("0.10.1.1", {"states_follow_kv_dtype": False}),
    ("0.10.2", {}),
    ("0.11.0", {"mixed_pages_share_group": True, "counts_collectives": False}),
    ("0.11.2", {"state_counting": "length", "hybrid_latent_block_multiple": 64}),
    ("0.12.0", {"near_bucket_ratio": 1.25, "pages_widen": True, "prefill_context_parallel_splits": True}),
    ("0.13.0", {"config_state_dtype": True}),
    (
        "0.14.1",
        {
            "startup_check": "first_group",
            "startup_check_by_stage": False,
            "refusal_gib_trimmed": True,
            "chunked_local_frees_blocks": True,
            "full_layers_count_value_dim": True,
            "offload_sized_in_bytes": True,
        },
    ),
    ("0.15.1", {"state_counting": "modes", "all_mode_by_default": True, "all_mode_exists": True}),
    ("0.16.0", {}),
    (
        "0.17.1",
        {
            "startup_check_by_stage": True,
            "mixed_group_splits_by_stage": True,
            "aligned_states_take_drafts": True,
            "gated_delta_state_dtype": True,
            "mamba2_conv_holds_drafts": True,
            "sampling_logit_copies": 3.5,  # masks in place
        },
    ),
    ("0.18.1", {"near_bucket_ratio": 1.5}),
    ("0.19.1", {"startup_check": "groups"}),
    (
        "0.20.2",
        {
            "tokens_from_concurrency": True,
            "compressed_layout": "tuples",
            "windows_count_value_dim": True,
            "hybrid_block_multiple_of_given": True,
            "hybrid_latent_block_multiple": None,
            "drafts_leave_all_mode": True,
            "default_gpu_memory_utilization": 0.92,
            "estimates_cudagraph_memory": True,
        },
    ),
    ("0.21.0", {"offload_with_hybrid_manager": True}),
    ("0.22.1", {"refusal_says_models": False, "all_mode_adds_drafts": True, "drafts_leave_all_mode": False}),
    (
        "0.23.0",
        {
            "connector_disables_hybrid_manager": False,
            "offload_chunks_page_aligned": True,
            "compressed_layout": "slots",
        },
    ),
    ("0.24.0", {"attention_pages_pad": True}),
    ("0.25.1", {"model_runner_v2_for": "dense", "skipped_layers_align_blocks": True}),
    (
        "0.26.0",
        {
            "window_keeps_in_flight_batches": True,
            "prefill_context_parallel_splits": False,
            "recurrent_pages_pad": True,
            "hybrids_cache_prefixes_by_default": True,
        },
    ),
    (
        "0.27.1",
        {
            "windows_fall_back_to_full": True,
            "hybrid_latent_block_multiple": 128,
            "kda_conv_holds_drafts": True,
            "compressed_layout": "overlaid",
            "compressed_groups_weighed": False,
        },
    ),
    (
        "0.28.0",
        {"capacity_on_one_line": True, "all_mode_by_default": False, "windows_keep_draft_tokens": True},
    ),
    (
        "0.29.0",
        {
            "null_block_reserved": True,
            "compressed_check_in_tuples": False,
            "recurrent_checkpoint_block": True,
            "short_conv_holds_drafts": True,
            "model_runner_v2_for": "all",
        },
    ),
    ("0.30.0", {"yarn_needs_max_position_embeddings": True, "log_device_word_generic": True}),
    ("0.31.0", {}),
    ("0.32.0", {"all_mode_exists": False, "mrope_rows": 1}),
    ("0.33.0", {"gdn_flashinfer_alignment": True}),
)


def _make_releases() -> tuple[Release, ...]:
    first, changes = _HISTORY[0]
    oldest = Release(first, **changes)
    return tuple(
        accumulate(_HISTORY[1:], lambda before, row: replace(before, version=row[0], **row[1]), initial=oldest)
    )


RELEASES: tuple[Release, ...] = _make_releases()
"""Oldest first; one for each release whose flags and names are recorded."""

DEFAULT_RELEASE = "0.32.0"
"""What `plan` takes when none is named: the newest release that was also run."""

NEWEST_RELEASE = RELEASES[-1].version

_EARLIER_PATCHES: Mapping[tuple[int, ...], Mapping[str, Any]] = {(0, 20, 0): {"tokens_from_concurrency": False}}
"""Patches that follow other rules than the recorded one of their minor. None of 0.10.1, 0.11.1, 0.14.0, 0.15.0, 0.17.0, 0.18.0,
0.19.0 does."""

_VERSION = re.compile(r"v?(\d{1,9}(?:\.\d{1,9})+)((?:\.?(?:a|b|rc|post|dev)\d*)*)(?:\+.*)?")


def get_release(version: str) -> Release:
    """The release that `0.32.0`, `0.32`, `v0.20.1rc1.dev16+g7a1eb8a` or `0.13.0+cpu` stands for.

    The patch itself, else the next patch of the same minor, else the newest of it. UsageError for a minor that is not known.
    """
    match = _VERSION.fullmatch(version.strip())
    wanted = _number(match.group(1)) if match else ()
    candidates = [release for release in RELEASES if wanted and release.minor == wanted[:2]]
    if not candidates:
        raise _unknown(version)
    if len(wanted) == len(("major", "minor")):
        return candidates[-1]
    found = next((release for release in candidates if release.number >= wanted), candidates[-1])
    return _as_patch(found, wanted)


def possible_releases(version: str) -> tuple[Release, ...]:
    """What a build may follow: of a release its own rules; of a development build also those of the patch before and of the
    next minor, since it was cut from the main branch between them.
    """
    found = get_release(version)
    match = _VERSION.fullmatch(version.strip())
    if match is None or not re.search(r"a|b|rc|dev", match.group(2)):
        return (found,)
    before = _as_patch(found, (*found.minor, 0))
    later = [release for release in RELEASES if release.minor > found.minor]
    return tuple(dict.fromkeys((before, found, *later[:1])))


def _as_patch(release: Release, patch: tuple[int, ...]) -> Release:
    changes = _EARLIER_PATCHES.get(patch)
    return release if changes is None else replace(release, **changes)


def _number(version: str) -> tuple[int, ...]:
    plain = version.partition(".post")[0]
    return tuple(int(part) for part in plain.split("."))


def _unknown(version: str) -> UsageError:
    known = [release.version for release in RELEASES]
    return UsageError(
        f"unknown vLLM release '{version}'",
        f"rules are known for {', '.join(known)}",
        did_you_mean(version.removeprefix("v").partition("+")[0], known) or f"--vllm {DEFAULT_RELEASE}",
    )
