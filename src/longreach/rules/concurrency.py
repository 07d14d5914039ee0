"""How many requests the KV cache holds, and what the printed number means: LR108 to LR113. Pure."""

from collections.abc import Iterator
from dataclasses import replace

from longreach.rules.deployment import Deployment
from longreach.rules.remedy import set_option
from longreach.rules.rule import Diagnosis, Rule, rule
from longreach.sizing.kv_cache import plan_kv_cache, size_kv_cache
from longreach.units import ceil_div, format_bytes

_BOUNDED_KINDS = ("sliding_window", "chunked_local")
_SMALL_CHUNK = 2048  # vLLM's default on cards below 70 GiB
_OTHER_LENGTH = 32_768


def useful_max_num_seqs(num_held: int) -> int:
    """The most that pays where `num_held` requests of mean length fit: shorter ones and shared prefixes take less."""
    return max(2 * num_held, 16)


@rule("LR108", "advice", "max_num_seqs_beyond_cache", "max-num-seqs is more than the KV cache can hold")
def max_num_seqs_beyond_cache(deployment: Deployment) -> Iterator[Diagnosis]:
    """Sequences that can never run at once still cost CUDA graphs and warm-up memory."""
    blocks, capacity = _blocks_of_a_usual_request(deployment), deployment.capacity
    if blocks is None or capacity is None:
        return
    if deployment.mean_input_tokens is None:
        yield from _never_reached(deployment, capacity.num_blocks)
        return
    if deployment.concurrency is not None and deployment.max_num_seqs <= deployment.concurrency:
        return  # as many as are wanted: LR109 says how many fit
    held = capacity.num_blocks // blocks
    if held < 1 or deployment.max_num_seqs <= useful_max_num_seqs(held):
        return
    yield Diagnosis(
        f"max-num-seqs {deployment.max_num_seqs} is far more than the {held} request{'s' if held > 1 else ''} of mean length "
        f"that fit{'s' if held == 1 else ''}",
        f"a request of {deployment.tokens_per_request} tokens takes {blocks} of {capacity.num_blocks} KV cache blocks; "
        "graphs and warm-up are sized for max-num-seqs all the same",
        f"set --max-num-seqs to {held} (more pay only where requests share prefixes or are shorter)",
        set_option("max_num_seqs", held),
    )


def _never_reached(deployment: Deployment, num_blocks: int) -> Iterator[Diagnosis]:
    """How long requests are is not known: what even requests of one token cannot fill is never reached."""
    request, given = deployment.kv_request, deployment.options.max_num_seqs
    if request is None or given is None or not deployment.is_foreign:
        return
    blocks = plan_kv_cache(request).blocks_per_request(1)
    held = num_blocks // blocks
    if held < 1 or given <= held:
        return
    yield Diagnosis(
        f"max-num-seqs {given} can never be reached: at most {held} requests hold a block at once",
        f"the shortest request takes {blocks} of the {num_blocks} KV cache blocks",
        f"set --max-num-seqs to {held} or less",
        set_option("max_num_seqs", held),
    )


@rule("LR109", "warning", "concurrency_not_met", "the KV cache holds fewer requests than wanted")
def concurrency_not_met(deployment: Deployment) -> Iterator[Diagnosis]:
    """Requests beyond what fits wait in the queue, or are preempted while they answer."""
    blocks, capacity, wanted = _blocks_of_a_usual_request(deployment), deployment.capacity, deployment.concurrency
    if blocks is None or capacity is None or wanted is None or not capacity.starts:
        return
    engines = deployment.options.data_parallel_size
    held = capacity.num_blocks / blocks * engines
    if held >= wanted:
        return
    of_each = f" of each of {engines} engines" if engines > 1 else ""
    needed = (blocks * ceil_div(wanted, engines) + 1) * capacity.bytes_per_block
    room = deployment.kv_room_bytes
    more_fits = room is not None and room[0] >= needed
    yield Diagnosis(
        f"the KV cache holds {held:.2f} requests of {deployment.tokens_per_request} tokens at once, wanted were {wanted}",
        f"one takes {blocks} of {capacity.num_blocks} blocks{of_each}; the others wait until one ends",
        f"{wanted} at once need {needed} bytes per GPU ({format_bytes(needed)}): "
        + ("set --kv-cache-memory-bytes to that" if more_fits else "fewer at once, shorter requests, or more GPUs"),
        set_option("kv_cache_memory_bytes", needed) if more_fits else None,
    )


def _blocks_of_a_usual_request(deployment: Deployment) -> int | None:
    if deployment.kv_request is None:
        return None
    return plan_kv_cache(deployment.kv_request).blocks_per_request(deployment.tokens_per_request)


@rule(
    "LR110", "advice", "window_capacity_depends_on_chunk", "sliding-window capacity depends on max-num-batched-tokens"
)
def window_capacity_depends_on_chunk(deployment: Deployment) -> Iterator[Diagnosis]:
    """Windowed layers reserve the tokens in flight, two batches with async scheduling, beside their window."""
    capacity, request = deployment.capacity, deployment.kv_request
    if capacity is None or request is None or request.max_num_batched_tokens <= _SMALL_CHUNK:
        return
    if not any(group.kind in _BOUNDED_KINDS for group in capacity.groups):
        return
    smaller = size_kv_cache(replace(request, max_num_batched_tokens=_SMALL_CHUNK))
    if smaller.kv_capacity_tokens < 1.05 * capacity.kv_capacity_tokens:
        return
    yield Diagnosis(
        f"chunks of {request.max_num_batched_tokens} tokens cost KV capacity: {capacity.kv_capacity_tokens} tokens "
        f"against {smaller.kv_capacity_tokens}",
        f"windowed layers keep the tokens in flight beside their window; with --max-num-batched-tokens {_SMALL_CHUNK} "
        f"one request takes {smaller.blocks_per_request} blocks instead of {capacity.blocks_per_request}",
        f"set --max-num-batched-tokens to {_SMALL_CHUNK} where capacity matters more than prefill speed",
        set_option("max_num_batched_tokens", _SMALL_CHUNK),
    )


@rule("LR111", "advice", "printed_tokens_depend_on_length", "the printed KV cache size holds for one length only")
def printed_tokens_depend_on_length(deployment: Deployment) -> Iterator[Diagnosis]:
    """The engine prints concurrency x length; state blocks are paid once per request, so short requests hold less."""
    capacity, request = deployment.capacity, deployment.kv_request
    if capacity is None or request is None or not deployment.model.is_hybrid or deployment.is_foreign:
        return
    if not capacity.starts or deployment.max_model_len <= _OTHER_LENGTH:
        return
    other = size_kv_cache(replace(request, max_model_len=_OTHER_LENGTH))
    yield Diagnosis(
        f"the engine will print {capacity.kv_capacity_tokens} tokens, which holds for requests of "
        f"{deployment.max_model_len} only",
        f"it prints int(concurrency x length): {capacity.max_concurrency:.2f} x {deployment.max_model_len}; the same bytes "
        f"print {other.kv_capacity_tokens} at {_OTHER_LENGTH}, since each request also pays its recurrent state",
        "none needed; compare sizes only at the same --max-model-len",
    )


@rule("LR112", "warning", "kv_capacity_estimated", "the KV capacity is an estimate")
def kv_capacity_estimated(deployment: Deployment) -> Iterator[Diagnosis]:
    """The layout or the bytes behind the number are not known exactly."""
    capacity = deployment.capacity
    if capacity is None or capacity.certainty != "estimate" or deployment.is_foreign:
        return
    yield Diagnosis(
        f"the KV capacity of {capacity.kv_capacity_tokens} tokens is an estimate",
        f"{capacity.estimate_reason or 'its layout is known only approximately'} ({deployment.model.name} on "
        f"{deployment.release.version})",
        "read 'KV cache size' in the engine's log before you rely on it",
    )


@rule("LR113", "advice", "one_request_fills_cache", "two requests of max-model-len do not fit at once")
def one_request_fills_cache(deployment: Deployment) -> Iterator[Diagnosis]:
    """A second long request waits for the first to end: queueing, not a fault."""
    capacity = deployment.capacity
    if capacity is None or not capacity.starts or capacity.max_concurrency >= 2 or deployment.concurrency == 1:
        return
    if deployment.is_foreign and capacity.certainty == "estimate":
        return
    share = capacity.blocks_per_request / capacity.num_blocks
    yield Diagnosis(
        f"one request of {deployment.max_model_len} tokens takes {share:.0%} of the KV cache",
        f"{capacity.blocks_per_request} of {capacity.num_blocks} blocks: a second one of that length waits until the "
        "first ends, and short ones beside it are evicted from the prefix cache",
        "send the longest prompts one after another"
        + ("" if deployment.is_foreign else ", or limit them with --concurrency 1 in the plan"),
    )


RULES: tuple[Rule, ...] = (
    max_num_seqs_beyond_cache,
    concurrency_not_met,
    window_capacity_depends_on_chunk,
    printed_tokens_depend_on_length,
    kv_capacity_estimated,
    one_request_fills_cache,
)
