"""One vLLM release as data: the rules that differ between releases, each a field, never an `if` on a version elsewhere.

Sources: docs/engine.md. Releases 0.28 to 0.33; the latest patch of each minor.
"""

from dataclasses import dataclass

from longreach.errors import UsageError
from longreach.units import did_you_mean


@dataclass(frozen=True, slots=True)
class Release:
    """What `sizing`, `forecast`, `rules` and `command` must know of a release beyond its flag table."""

    version: str
    null_block_reserved: bool = True  # from 0.29: a request needs one block more than it fills
    yarn_needs_max_position_embeddings: bool = True  # from 0.30: the factor no longer widens the derived length
    gdn_flashinfer_alignment: bool = (
        False  # from 0.33: GDN prefill on FlashInfer aligns blocks to 64, one more state block
    )
    recurrent_checkpoint_block: bool = True  # from 0.29: Mamba2 and checkpointing KDA kernels keep one more block
    default_gpu_memory_utilization: float = 0.92
    log_device_word_generic: bool = True  # from 0.30: "CPU KV cache size" off CUDA

    @property
    def number(self) -> tuple[int, ...]:
        """(0, 32, 0), for ordering."""
        return tuple(int(part) for part in self.version.split("."))


RELEASES: tuple[Release, ...] = (
    Release(
        "0.28.0",
        null_block_reserved=False,
        yarn_needs_max_position_embeddings=False,
        recurrent_checkpoint_block=False,
        log_device_word_generic=False,
    ),
    Release("0.29.0", yarn_needs_max_position_embeddings=False, log_device_word_generic=False),
    Release("0.30.0"),
    Release("0.31.0"),
    Release("0.32.0"),
    Release("0.33.0", gdn_flashinfer_alignment=True),
)

DEFAULT_RELEASE = "0.32.0"


def get_release(version: str) -> Release:
    """The release named `0.32.0`, `0.32` or `0.32.0+cpu`; UsageError names the known ones."""
    wanted = version.split("+", maxsplit=1)[0].removeprefix("v")
    for release in RELEASES:
        if wanted in (release.version, release.version.rpartition(".")[0]):
            return release
    known = [release.version for release in RELEASES]
    raise UsageError(
        f"unknown vLLM release '{version}'",
        f"rules are known for {', '.join(known)}",
        did_you_mean(wanted, known) or f"--vllm {DEFAULT_RELEASE}",
    )
