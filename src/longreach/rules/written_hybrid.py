"""Models with recurrent layers, as foreign commands run them: LR317, LR407 to LR410, LR977. Pure."""

from collections.abc import Iterator

from longreach.model.spec import AttentionLayer, Mamba1Layer, Mamba2Layer, ModelSpec, RecurrentLayer
from longreach.rules.connectors import connector_of, hybrid_manager_is_off, keeps_hybrid_manager
from longreach.rules.edit import Edit, remove_flag
from longreach.rules.rule import Diagnosis, rule
from longreach.rules.written import CommandRule, WrittenCommand

_CACHE = "--enable-prefix-caching"
_KEEP_MANAGER = "--no-disable-hybrid-kv-cache-manager"
_MANAGER_OFF = "--disable-hybrid-kv-cache-manager"


def _hybrid(written: WrittenCommand) -> ModelSpec | None:
    model = written.model
    return model if model is not None and model.is_hybrid else None


@rule(
    "LR317",
    "error",
    "offload_hybrid_no_hma",
    "a KV connector turns off the manager that recurrent layers need",
    outcome="refused_at_start",
    first="0.10.0",
)
def offload_hybrid_no_hma(written: WrittenCommand) -> Iterator[Diagnosis]:
    """States and keys cannot be put into one group, which is all that is left without the hybrid KV cache manager."""
    model = _hybrid(written)
    if model is None or hybrid_manager_is_off(written) is not True:
        return
    connector, asked = connector_of(written), written.parsed.is_on(_MANAGER_OFF)
    who = f"with {connector} vLLM {written.release.version}" if connector is not None and not asked else _MANAGER_OFF
    fix, edit = _keep_manager(written, connector)
    yield Diagnosis(
        f"{who} turns the hybrid KV cache manager off for '{model.name}'",
        "it mixes attention and recurrent layers; vLLM stops with 'Hybrid KV cache manager is disabled but failed to convert the "
        "KV cache specs to one unified type'",
        fix,
        edit=edit,
    )


def _keep_manager(written: WrittenCommand, connector: str | None) -> tuple[str, Edit | None]:
    asked = written.parsed.is_on(_MANAGER_OFF)
    if connector is None:
        return f"leave {_MANAGER_OFF} out", remove_flag(_MANAGER_OFF)
    if keeps_hybrid_manager(connector, written):
        if written.release.number >= (0, 22) and asked:
            return f"leave {_MANAGER_OFF} out", remove_flag(_MANAGER_OFF)
        return f"add {_KEEP_MANAGER}", Edit(set=((_KEEP_MANAGER, ()),))
    if connector == "OffloadingConnector":
        return "use vLLM 0.22 or later, whose connector keeps it, or do without offload", None
    return f"{connector} does not work with recurrent layers here: use OffloadingConnector on 0.22 or later", None


@rule(
    "LR318",
    "warning",
    "offload_hybrid_assert",
    "a hybrid's states do not come back from a connector",
    first="0.15.0",
    last="0.22.1",
)
def offload_hybrid_assert(written: WrittenCommand) -> Iterator[Diagnosis]:
    """The split at block boundaries asserts that no token was computed elsewhere."""
    model, connector = _hybrid(written), connector_of(written)
    if model is None or connector is None or hybrid_manager_is_off(written):
        return
    if not written.parsed.is_on(_CACHE):
        return
    yield Diagnosis(
        f"the first prefix of '{model.name}' that comes back through {connector} ends the engine",
        f"vLLM {written.release.version} asserts 'External KV connector is not verified yet' where states are kept at block "
        "boundaries; 0.23 lifted it",
        "use vLLM 0.23 or later, or leave the connector out",
    )


@rule("LR407", "advice", "hybrid_prefix_cache_off", "prefix caching is off by default on hybrids", last="0.25.1")
def hybrid_prefix_cache_off(written: WrittenCommand) -> Iterator[Diagnosis]:
    """On by default from 0.26 on."""
    model = _hybrid(written)
    if model is None or written.parsed.named(_CACHE) or written.release.state_counting != "modes":
        return
    yield Diagnosis(
        f"vLLM {written.release.version} caches no prefixes of '{model.name}'",
        "its recurrent layers make it a hybrid, for which prefix caching is off until 0.26 unless asked for",
        f"add {_CACHE}",
        edit=Edit(set=((_CACHE, ()),)),
    )


@rule(
    "LR408",
    "warning",
    "hybrid_prefix_cache_ignored",
    "prefix caching of hybrids is switched off whatever is asked",
    last="0.14.1",
    outcome="no_effect",
)
def hybrid_prefix_cache_ignored(written: WrittenCommand) -> Iterator[Diagnosis]:
    """From 0.12 Mamba models as an experiment, from 0.15 every hybrid."""
    model = _hybrid(written)
    if model is None or not written.parsed.is_on(_CACHE):
        return
    states = [layer for layer in model.layers if isinstance(layer, RecurrentLayer)]
    if written.release.state_counting == "length" and all(
        isinstance(layer, Mamba1Layer | Mamba2Layer) for layer in states
    ):
        return
    yield Diagnosis(
        f"{_CACHE} does nothing for '{model.name}' on vLLM {written.release.version}",
        "'Hybrid or mamba-based model detected: disabling prefix caching since it is not yet supported'",
        "use vLLM 0.15 or later to cache prefixes of this model",
        edit=remove_flag(_CACHE),
    )


@rule(
    "LR409",
    "warning",
    "hybrid_block_size",
    "a block size by hand on a hybrid with prefix caching",
    first="0.15.0",
)
def hybrid_block_size(written: WrittenCommand) -> Iterator[Diagnosis]:
    """VLLM aligns the block itself; code that reads the flag instead of the group's size goes astray."""
    model, size = _hybrid(written), written.value("--block-size")
    cached = written.parsed.is_on(_CACHE)
    if model is None or size is None or cached is False:
        return
    if cached is None and not written.release.hybrids_cache_prefixes_by_default:
        return
    yield Diagnosis(
        f"--block-size {size} on '{model.name}', whose block vLLM aligns to its recurrent state",
        "the block in use is far larger than the flag; on 0.27.1 the state's column was computed from the flag, and the second "
        "request over a cached prefix ended in an illegal memory access",
        "leave --block-size out",
        edit=remove_flag("--block-size"),
    )


@rule(
    "LR410",
    "warning",
    "hybrid_manager_disabled",
    "without the hybrid manager every windowed layer pays for the whole length",
    first="0.10.0",
)
def hybrid_manager_disabled(written: WrittenCommand) -> Iterator[Diagnosis]:
    """Sliding windows then count as full attention."""
    model = written.model
    if model is None or model.is_hybrid or not written.parsed.is_on(_MANAGER_OFF):
        return
    windowed = sum(
        isinstance(layer, AttentionLayer) and (layer.window_tokens or layer.chunk_tokens) is not None
        for layer in model.layers
    )
    if windowed == 0 or windowed == len(model.layers):
        return
    yield Diagnosis(
        f"{_MANAGER_OFF} makes {windowed} windowed layers of '{model.name}' keep the whole length",
        f"{windowed} of {len(model.layers)} layers need no more than their window; without the manager all are counted as full "
        "attention",
        f"leave {_MANAGER_OFF} out",
        edit=remove_flag(_MANAGER_OFF),
    )


@rule(
    "LR977",
    "warning",
    "mamba_all_mode_unsupported",
    "the model does not keep a state in every block",
    first="0.15.0",
    last="0.31.0",
    outcome="no_effect",
)
def mamba_all_mode_unsupported(written: WrittenCommand) -> Iterator[Diagnosis]:
    """Mode "all" is for Mamba layers; others fall back to "align"."""
    model = _hybrid(written)
    if model is None or written.value("--mamba-cache-mode") != "all":
        return
    states = [layer for layer in model.layers if isinstance(layer, RecurrentLayer)]
    if all(isinstance(layer, Mamba1Layer | Mamba2Layer) for layer in states):
        return
    yield Diagnosis(
        f"--mamba-cache-mode all falls back to align for '{model.name}'",
        f"{len(states)} of its layers are no Mamba layers, whose states alone are kept in every block",
        "leave --mamba-cache-mode out",
        edit=remove_flag("--mamba-cache-mode"),
    )


RULES: tuple[CommandRule, ...] = (
    offload_hybrid_no_hma,
    offload_hybrid_assert,
    hybrid_prefix_cache_off,
    hybrid_prefix_cache_ignored,
    hybrid_block_size,
    hybrid_manager_disabled,
    mamba_all_mode_unsupported,
)
