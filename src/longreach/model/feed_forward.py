"""Parameters of the feed-forward half of each layer: dense MLPs and mixtures of experts."""

from collections.abc import Callable, Iterable
from dataclasses import dataclass

from longreach.model.decoder import Decoder
from longreach.model.fields import Fields
from longreach.units import round_up

NUM_EXPERTS = ("num_experts", "n_routed_experts", "num_local_experts", "moe_num_experts")
TOP_K = ("num_experts_per_tok", "num_experts_per_token", "moe_k", "moe_topk", "moe_top_k", "top_k_experts")
_NUM_SHARED = ("n_shared_experts", "num_shared_experts", "moe_num_shared_experts", "num_shared_expert")
EXPERT_SIZE = ("moe_intermediate_size", "expert_ffn_hidden_size", "intermediate_size")
_SHARED_SIZE = ("shared_expert_intermediate_size", "share_expert_dim", "shared_intermediate_size")
_LATENT_SIZE = ("moe_latent_size", "routed_expert_hidden_size")


@dataclass(frozen=True, slots=True)
class Block:
    """Parameters of one layer's feed-forward half and norms: all of them, and those one token multiplies."""

    total: int
    active: int

    def __add__(self, other: "Block") -> "Block":
        return Block(self.total + other.total, self.active + other.active)


@dataclass(frozen=True, slots=True)
class FeedForwardTraits:
    """What the config does not say. `reader` replaces the usual layout of one MLP or one set of experts a layer."""

    norms: int = 2  # norms of the whole layer
    matrices: int = 3  # 3: gate, up, down; 2: up, down
    dense_size: str = "intermediate_size"
    first_dense: int = 0  # dense layers before the experts, where the config names none
    num_shared: int = 0  # shared experts, where the config names none
    router_bias: int = 0  # saved numbers per expert beside the router's matrix
    shared_gate: bool = False
    expert_biases: bool = False
    layer_extra: int = 0  # a few numbers in every layer (xIELU)
    reader: "Callable[[Decoder, FeedForwardTraits], tuple[Block, ...] | None] | None" = None


def read_blocks(decoder: Decoder, traits: FeedForwardTraits) -> tuple[Block, ...] | None:
    """One block a layer, or None where the config lacks a size."""
    reader = traits.reader or standard_blocks
    return reader(decoder, traits)


def standard_blocks(decoder: Decoder, traits: FeedForwardTraits) -> tuple[Block, ...] | None:
    """An MLP or a set of experts in every layer."""
    dense, sparse = dense_block(decoder, traits), expert_block(decoder, traits)
    marks = _sparse_layers(decoder, traits) if has_experts(decoder.text) else (False,) * decoder.num_layers
    if (sparse is None and any(marks)) or (dense is None and not all(marks)):
        return None
    fixed = traits.norms * decoder.hidden_size + traits.layer_extra
    norms, nothing = Block(fixed, fixed), Block(0, 0)
    return tuple(norms + ((sparse if mark else dense) or nothing) for mark in marks)


def block_letters(decoder: Decoder, traits: FeedForwardTraits) -> tuple[Block, ...] | None:
    """Nemotron-H: MLP and experts are layers of their own; every layer has one norm."""
    listed = decoder.text.texts("layers_block_type") or tuple(decoder.text.text("hybrid_override_pattern") or "")
    norms, nothing = Block(decoder.hidden_size, decoder.hidden_size), Block(0, 0)
    dense, sparse = dense_block(decoder, traits), expert_block(decoder, traits)
    kinds = {"-": dense, "mlp": dense, "E": sparse, "moe": sparse}
    found = tuple(kinds.get(kind, nothing) for kind in listed)
    return None if None in found else tuple(norms + (block or nothing) for block in found)


def dense_and_experts(decoder: Decoder, traits: FeedForwardTraits) -> tuple[Block, ...] | None:
    """Gemma 4: an MLP in every layer, wider in the layers that borrow a cache, and experts beside it where asked for."""
    dense, hidden = dense_block(decoder, traits), decoder.hidden_size
    if dense is None:
        return None
    extra = _per_layer_input(decoder)
    if decoder.text.flag("enable_moe_block"):
        sparse = expert_block(decoder, traits)
        if sparse is None:
            return None
        experts = decoder.text.count(*NUM_EXPERTS)
        fixed = 4 * hidden + experts  # three more norms, the router's scale, a scale an expert
        extra += Block(sparse.total + fixed, sparse.active + fixed)
    norms = Block(traits.norms * hidden, traits.norms * hidden)
    wide = decoder.num_layers - decoder.text.count("num_kv_shared_layers")
    doubles = decoder.text.flag("use_double_wide_mlp")
    return tuple(
        norms + extra + dense + (dense if doubles and index >= wide else Block(0, 0))
        for index in range(decoder.num_layers)
    )


def laurel_blocks(decoder: Decoder, traits: FeedForwardTraits) -> tuple[Block, ...] | None:
    """Gemma 3n: beside the MLP a low-rank bypass and an input of each layer's own."""
    dense, hidden = dense_block(decoder, traits), decoder.hidden_size
    if dense is None:
        return None
    bypass = 2 * hidden * decoder.text.count("laurel_rank") + hidden
    norms = Block(traits.norms * hidden + bypass, traits.norms * hidden + bypass)
    return (norms + dense + _per_layer_input(decoder),) * decoder.num_layers


def removed_blocks(decoder: Decoder, traits: FeedForwardTraits) -> tuple[Block, ...] | None:
    """Nemotron-NAS: `ffn_mult` gives each MLP its width, removed halves lose their norm too."""
    hidden = decoder.hidden_size
    blocks: list[Block] = []
    for block in decoder.text.mappings("block_configs") or ():
        attention, mlp = block.nested("attention"), block.nested("ffn")
        if attention is None or mlp is None:
            return None
        multiplier = mlp.number("ffn_mult") or 0.0
        width = round_up(int(2 * multiplier * hidden / 3), 256)  # vLLM, nemotron_nas.py
        size = 0 if mlp.flag("no_op") else traits.matrices * hidden * width + hidden
        size += 0 if attention.flag("no_op") else hidden
        blocks.append(Block(size, size))
    return tuple(blocks)


def shortcut_blocks(decoder: Decoder, traits: FeedForwardTraits) -> tuple[Block, ...] | None:
    """LongCat-Flash: two MLPs and one set of experts in every layer; some experts do nothing and weigh nothing."""
    dense, sparse = dense_block(decoder, traits), expert_block(decoder, traits)
    if dense is None or sparse is None:
        return None
    text, hidden = decoder.text, decoder.hidden_size
    real, idle = text.count(*NUM_EXPERTS), text.count("zero_expert_num")
    router = hidden * (real + idle) + real + idle
    experts = sparse.total - real * (hidden + traits.router_bias)
    active = experts * text.count(*TOP_K) // (real + idle) if real + idle else 0
    fixed = router + 4 * hidden
    return (Block(2 * dense.total + experts + fixed, 2 * dense.total + active + fixed),) * decoder.num_layers


def short_conv_blocks(decoder: Decoder, traits: FeedForwardTraits) -> tuple[Block, ...] | None:
    """LFM2: `block_auto_adjust_ff_dim` shrinks the width to two thirds and rounds it up."""
    text = decoder.text
    if not text.flag("block_auto_adjust_ff_dim") or has_experts(text):
        return standard_blocks(decoder, traits)
    width = int(2 * text.count("block_ff_dim", "intermediate_size") / 3)
    width = round_up(
        int(width * (text.number("block_ffn_dim_multiplier") or 1.0)), text.count("block_multiple_of") or 1
    )
    size = traits.matrices * decoder.hidden_size * width + traits.norms * decoder.hidden_size
    return (Block(size, size),) * decoder.num_layers


def dense_block(decoder: Decoder, traits: FeedForwardTraits) -> Block | None:
    """One dense MLP."""
    width = first_count(decoder.text, traits.dense_size, "intermediate_size", "ffn_hidden_size")
    if not width:
        return None
    biases = ((traits.matrices - 1) * width + decoder.hidden_size) * decoder.text.flag("mlp_bias")
    size = traits.matrices * decoder.hidden_size * width + biases
    return Block(size, size)


def expert_block(decoder: Decoder, traits: FeedForwardTraits) -> Block | None:
    """Router, routed experts (top-k of them active) and shared experts; experts may work on a narrower latent."""
    text, hidden = decoder.text, decoder.hidden_size
    count, top_k, width = (first_count(text, *names) for names in (NUM_EXPERTS, TOP_K, EXPERT_SIZE))
    if not count or not top_k or not width:
        return None
    latent = first_count(text, *_LATENT_SIZE)
    biases = ((traits.matrices - 1) * width + hidden) * traits.expert_biases
    expert = traits.matrices * (latent or hidden) * width + biases
    fixed = count * (hidden + traits.router_bias) + hidden * traits.shared_gate
    fixed += 2 * hidden * latent if latent else 0
    fixed += traits.matrices * hidden * _shared_width(text, width, traits.num_shared)
    return Block(fixed + count * expert, fixed + min(top_k, count) * expert)


def has_experts(text: Fields) -> bool:
    """More than one expert."""
    return (first_count(text, *NUM_EXPERTS) or 0) > 1


def first_count(text: Fields, *names: str) -> int | None:
    """A count; of a list the first (ERNIE-VL: text experts come before vision experts)."""
    for name in names:
        if isinstance(text.values.get(name), list):
            listed = text.counts(name)
            return listed[0] if listed else None
        if text.has(name):
            return text.count(name)
    return None


def _sparse_layers(decoder: Decoder, traits: FeedForwardTraits) -> tuple[bool, ...]:
    """Which layers hold experts, by whichever of the publishers' spellings is there."""
    text, count = decoder.text, decoder.num_layers
    listed = text.per_layer(count, text.texts("mlp_layer_types"), "mlp_layer_types")
    if listed is not None:
        return tuple(kind == "sparse" for kind in listed)
    if isinstance(text.values.get("moe_layer_freq"), list):
        marks = text.per_layer(count, text.counts("moe_layer_freq"), "moe_layer_freq")
        return tuple(bool(mark) for mark in marks or (0,) * count)
    if isinstance(text.values.get("moe_layers_enum"), str):  # Step-3: "3,4,5"
        numbers = str(text.values["moe_layers_enum"]).split(",")
        return tuple(str(index) in numbers for index in range(count))
    return tuple(_is_sparse(text, index, traits) for index in range(count))


def _is_sparse(text: Fields, index: int, traits: FeedForwardTraits) -> bool:
    if text.has("moe_layer_start_index"):  # ERNIE 4.5
        start, end = text.count("moe_layer_start_index"), text.count("moe_layer_end_index")
        return start <= index <= end and (index + 1) % (text.optional_positive("moe_layer_interval") or 1) == 0
    if text.has("expert_layer_period"):  # Jamba
        return index % text.positive("expert_layer_period") == text.count("expert_layer_offset")
    if text.has("interleave_moe_layer_step"):  # Llama 4
        return (index + 1) % text.positive("interleave_moe_layer_step") == 0
    named = text.has("first_k_dense_replace", "num_dense_layers")
    first = text.count("first_k_dense_replace", "num_dense_layers") if named else traits.first_dense
    step = text.optional_positive("decoder_sparse_step") or text.optional_positive("moe_layer_freq") or 1
    return index >= first and index not in (text.counts("mlp_only_layers") or ()) and (index + 1) % step == 0


def _shared_width(text: Fields, expert_width: int, num_shared: int) -> int:
    stated = first_count(text, *_SHARED_SIZE)
    if stated is not None:
        return stated
    each = first_count(text, "moe_shared_expert_intermediate_size") or expert_width
    counted = first_count(text, *_NUM_SHARED)
    return (num_shared if counted is None else counted) * each


def _per_layer_input(decoder: Decoder) -> Block:
    """Gemma 3n and 4: a small gated input of the layer's own."""
    width = decoder.text.count("hidden_size_per_layer_input")
    size = 2 * decoder.hidden_size * width + decoder.hidden_size if width else 0
    return Block(size, size)


def total_of(blocks: Iterable[Block]) -> Block:
    """The sum."""
    return sum(blocks, Block(0, 0))
