"""Refusals that an engine's log shows: what, why, fix. longreach's own error classes are not importable here."""

from vllm.version import __version__ as release

SUPPORTED = "0.32"  # the offload internals change with every minor release


class OffloadRefusedError(RuntimeError):
    """Offload on the CPU engine cannot be had in this way; the engine ends with this text."""

    def __init__(self, what: str, why: str, fix: str) -> None:
        super().__init__(f"longreach.vllm_ext: {what} (why: {why}; fix: {fix})")


def check_release(found: str = release) -> None:
    """OffloadRefusedError in an engine of another minor release than the supported one."""
    if found.split(".")[:2] != SUPPORTED.split("."):
        raise OffloadRefusedError(
            f"no KV offload on the CPU engine of vLLM {found}",
            f"the copy worker is written for the internals of vLLM {SUPPORTED}",
            f"use vLLM {SUPPORTED}, or leave --kv-transfer-config out",
        )
