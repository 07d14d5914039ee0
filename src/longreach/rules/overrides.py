"""What a foreign command writes over the model's config: `--hf-overrides` in every form, and the old rope flags. Pure."""

from collections.abc import Mapping

from longreach.engine.flag_values import load_json
from longreach.rules.written import WrittenCommand

Json = Mapping[str, object]


def overrides_of(written: WrittenCommand) -> Json | None:
    """The merged overrides, empty where there are none; None where they cannot be read (a shell variable, a function's name)."""
    flags = _rope_flags(written)
    if not any(use.name == "--hf-overrides" for use in written.parsed.uses):
        return flags
    found = written.parsed.json("--hf-overrides")
    return None if found is None else {**found, **flags}


def _rope_flags(written: WrittenCommand) -> Json:
    """`--rope-scaling` and `--rope-theta`, up to 0.11.0: written into the overrides by vLLM itself."""
    flags: dict[str, object] = {}
    for name, key in (("--rope-scaling", "rope_scaling"), ("--rope-theta", "rope_theta")):
        text = written.parsed.value(name) if written.registry.find(name) is not None else None
        if text is not None:
            flags[key] = _read(text)
    return {key: value for key, value in flags.items() if value is not None}


def _read(text: str) -> object:
    try:
        return load_json(text)
    except ValueError:
        return None
