"""One vLLM release as data: the rules that differ between releases, each a field, never an `if` on a version elsewhere.

Sources: docs/engine.md. Each row of the history names what is new in it; what stands there holds until a later row says otherwise.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass, replace
from itertools import accumulate
from typing import Any

from longreach.errors import UsageError
from longreach.units import did_you_mean


@dataclass(frozen=True, slots=True)
class Release:
    """What `sizing`, `forecast`, `rules` and `command` must know of a release beyond its flags and names.

    The defaults are those of the oldest release; `_HISTORY` says what changed and when.
    """

    version: str
    tokens_from_concurrency: bool = False  # printed tokens: int(concurrency x length), else blocks // groups x block
    near_bucket_ratio: float | None = None  # buckets of layers this close in size share the larger one's group size
    null_block_reserved: bool = False  # a request needs one block more than it fills
    window_keeps_in_flight_batches: bool = False  # windows hold every batch in flight, else one batch
    recurrent_modes: bool = False  # states counted by mode (align, none); before, one block per block_size tokens
    recurrent_checkpoint_block: bool = False  # Mamba2 and checkpointing KDA kernels keep one more block
    gdn_flashinfer_alignment: bool = False  # GDN prefill on FlashInfer aligns blocks to 64, one more state block
    default_gpu_memory_utilization: float = 0.90
    estimates_cudagraph_memory: bool = False  # profiling sets memory aside for CUDA graphs
    yarn_needs_max_position_embeddings: bool = False  # the YaRN factor no longer widens the derived length
    log_device_word_generic: bool = False  # "CPU KV cache size" off CUDA

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
    ("0.9.2", {}),
    ("0.10.0", {}),
    ("0.10.1.1", {}),
    ("0.10.2", {}),
    ("0.11.0", {}),
    ("0.11.2", {}),
    ("0.12.0", {"near_bucket_ratio": 1.25}),
    ("0.13.0", {}),
    ("0.14.1", {}),
    ("0.15.1", {"recurrent_modes": True}),
    ("0.16.0", {}),
    ("0.17.1", {}),
    ("0.18.1", {"near_bucket_ratio": 1.5}),
    ("0.19.1", {}),
    ("0.20.2", {"default_gpu_memory_utilization": 0.92, "estimates_cudagraph_memory": True}),
    ("0.21.0", {"tokens_from_concurrency": True}),
    ("0.22.1", {}),
    ("0.23.0", {}),
    ("0.24.0", {}),
    ("0.25.1", {}),
    ("0.26.0", {"window_keeps_in_flight_batches": True}),
    ("0.27.1", {}),
    ("0.28.0", {}),
    ("0.29.0", {"null_block_reserved": True, "recurrent_checkpoint_block": True}),
    ("0.30.0", {"yarn_needs_max_position_embeddings": True, "log_device_word_generic": True}),
    ("0.31.0", {}),
    ("0.32.0", {}),
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

_VERSION = re.compile(r"v?(\d+(?:\.\d+)+)(?:\.?(?:a|b|rc|post|dev)\d*)*(?:\+.*)?")


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
    return next((release for release in candidates if release.number >= wanted), candidates[-1])


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
