"""Which decoder layer a cache belongs to, and which pipeline stage holds it."""

from collections.abc import Sequence
from dataclasses import dataclass

from longreach.errors import UsageError
from longreach.model.spec import IndexerLayer, KvLayer, ModelSpec


@dataclass(frozen=True, slots=True)
class LayerPlaces:
    """The decoder layer of each cache-owning layer, drafts numbered on from the last. `is_exact` is False where the model
    does not record it and the layers were spread evenly instead.
    """

    indices: tuple[int, ...]
    is_exact: bool


def locate_layers(model: ModelSpec, draft_layers: Sequence[KvLayer] = ()) -> LayerPlaces:
    """Decoder layer of each of `model.layers`, then of the drafts."""
    drafts = _number_drafts(model.num_layers, draft_layers)
    if model.layer_indices is not None:
        return LayerPlaces(model.layer_indices + drafts, is_exact=True)
    owners = [index for index, layer in enumerate(model.layers) if not isinstance(layer, IndexerLayer)]
    per_decoder_layer, rest = divmod(len(owners), model.num_layers)
    indices: list[int] = []
    seen = 0
    for layer in model.layers:
        seen += not isinstance(layer, IndexerLayer)  # an indexer sits in the layer of the attention before it
        indices.append((seen - 1) * model.num_layers // len(owners))
    return LayerPlaces(tuple(indices) + drafts, is_exact=rest == 0 and per_decoder_layer > 0)


def split_stages(model: ModelSpec, places: LayerPlaces, pp_size: int) -> tuple[tuple[int, ...], ...]:
    """Positions of the cache-owning layers on each stage, as vLLM's `get_pp_indices` cuts the decoder; drafts come last.

    Layers that do not divide evenly go to the stages before the last, from the back. Raises UsageError when a stage would
    hold no cache at all, which vLLM cannot start.
    """
    base, rest = divmod(model.num_layers, pp_size)
    sizes = [base] * pp_size
    for back in range(2, rest + 2):
        sizes[-back] += 1
    ends = [sum(sizes[: stage + 1]) for stage in range(pp_size)]
    stages: list[list[int]] = [[] for _ in range(pp_size)]
    for position, index in enumerate(places.indices):
        stages[next((stage for stage, end in enumerate(ends) if index < end), pp_size - 1)].append(position)
    if not all(stages):
        raise UsageError(
            f"pipeline parallel size {pp_size} leaves a stage without KV cache",
            f"{model.num_layers} decoder layers are cut into {sizes}",
            "a smaller --pp",
        )
    return tuple(tuple(stage) for stage in stages)


def _number_drafts(num_layers: int, draft_layers: Sequence[KvLayer]) -> tuple[int, ...]:
    numbered, last = [], num_layers - 1
    for layer in draft_layers:
        last += not isinstance(layer, IndexerLayer)
        numbered.append(last)
    return tuple(numbered)
