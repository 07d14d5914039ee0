"""The attention backend that a foreign command asks for by name. Pure."""

from longreach.rules.written import WrittenCommand

_FLAGS = ("--attention-backend", "--attention-config.backend")
_VARIABLE = "VLLM_ATTENTION_BACKEND"
_FLASH_ATTENTION_2_MAJORS = ("8", "12")


def named_backend(written: WrittenCommand) -> str:
    """In capitals; empty where none is named, or where a release no longer reads the variable."""
    named = next((value for flag in _FLAGS if (value := written.value(flag)) is not None), None)
    if named is None and _VARIABLE in written.registry.names("env"):
        named = written.variable(_VARIABLE)
    name = (named or "").upper()
    return "" if name == "AUTO" else name


def has_flash_attention_2(written: WrittenCommand) -> bool:
    """Whether FlashAttention on this card is its second version for sure: Ampere, Ada and Blackwell's consumer cards."""
    gpu = written.machine.gpu if written.machine is not None else None
    chosen = written.variable("VLLM_FLASH_ATTN_VERSION") is not None or any(
        use.name.startswith("--attention-config") and not use.name.endswith(".backend") for use in written.parsed.uses
    )
    if gpu is None or gpu.vendor != "NVIDIA" or chosen:
        return False
    return gpu.compute_capability.partition(".")[0] in _FLASH_ATTENTION_2_MAJORS
