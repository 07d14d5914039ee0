"""The draft model of a speculative command: whether its layers join the KV pool, and which they are."""

from longreach.engine.options import SpeculativeOptions
from longreach.model.catalogue import find_catalogue_model, load_catalogue_model
from longreach.model.spec import ModelSpec

_WITHOUT_LAYERS = ("mtp", "ngram", "ngram_gpu", "suffix", "medusa", "mlp_speculator", "custom_class")
"""MTP layers are the target's own; the others draft without attention."""


def brings_layers(spec: SpeculativeOptions | None) -> bool:
    """EAGLE, DFlash and plain draft models cache keys and values of their own in the target's pool."""
    return spec is not None and spec.method not in _WITHOUT_LAYERS


def find_drafter(spec: SpeculativeOptions | None) -> ModelSpec | None:
    """The draft model when the catalogue knows it by the name in the command."""
    if spec is None or not brings_layers(spec):
        return None
    named = dict(spec.extra).get("model")
    if not isinstance(named, str) or find_catalogue_model(named) is None:
        return None
    return load_catalogue_model(named)
