"""Scheduler settings that hurt long prompts: LR401 to LR406. Pure."""

from collections.abc import Iterator

from longreach.engine.defaults import default_max_num_batched_tokens
from longreach.rules.deployment import Deployment
from longreach.rules.remedy import set_option
from longreach.rules.rule import Diagnosis, HasOptions, Rule, rule
from longreach.sizing.state import state_mode
from longreach.units import format_bytes, format_duration

_NOTICEABLE_STALL_S = 0.5
_LARGEST_DEFAULT = 16_384  # tokens in a step, on cards of 160 GiB and more
_LARGE_CHUNK_RATIO = 4  # times the card's default


@rule("LR401", "warning", "reserve_full_isl_off", "long prompts start together and thrash")
def reserve_full_isl_off(deployment: Deployment) -> Iterator[Diagnosis]:
    """Without the admission test prompts start that cannot both finish; one is preempted and computed again."""
    capacity = deployment.capacity
    if deployment.options.scheduler_reserve_full_isl is not False or deployment.concurrency == 1:
        return
    if capacity is not None and not capacity.starts:
        return
    held = "" if capacity is None else f"; the cache holds {capacity.max_concurrency:.2f} requests of max-model-len"
    yield Diagnosis(
        "--no-scheduler-reserve-full-isl lets long prompts start that do not fit together",
        f"a prompt that finds no block is preempted and loses its own{held}. One replay of 600 requests: 149 preemptions "
        "instead of 10, hits and first token no better",
        "leave the flag out (--scheduler-reserve-full-isl is the default)",
        set_option("scheduler_reserve_full_isl", None),
    )


@rule("LR402", "advice", "chunk_stalls_decode", "one prefill chunk holds up every answer")
def chunk_stalls_decode(deployment: Deployment) -> Iterator[Diagnosis]:
    """Prefill and decode share a step: the gap between two tokens is a chunk's time."""
    speed = deployment.speed_at_full_length
    if speed is None or speed.ttft_cold_s.low is None or speed.num_prefill_chunks < 2 or deployment.concurrency == 1:
        return
    low, high = speed.ttft_cold_s.low, speed.ttft_cold_s.high or speed.ttft_cold_s.low
    mean_low, mean_high = low / speed.num_prefill_chunks, high / speed.num_prefill_chunks
    if mean_low < _NOTICEABLE_STALL_S:
        return
    yield Diagnosis(
        f"a prefill chunk of {deployment.max_num_batched_tokens} tokens holds up every running answer for "
        f"{format_duration(mean_low)} to {format_duration(mean_high)}",
        f"a prompt of {speed.prompt_tokens} tokens is {speed.num_prefill_chunks} chunks, and each takes a whole step of all "
        "requests; the last chunks attend to everything before them and take longest",
        "halve --max-num-batched-tokens to halve the gap, or keep long prompts on an instance of their own",
    )


@rule(
    "LR403",
    "error",
    "batched_tokens_lt_max_len",
    "without chunked prefill a prompt must fit one batch",
    outcome="refused_at_start",
)
def batched_tokens_lt_max_len(deployment: HasOptions) -> Iterator[Diagnosis]:
    """The engine refuses the combination."""
    batch, length = deployment.max_num_batched_tokens, deployment.max_model_len
    if deployment.options.enable_chunked_prefill is not False or batch is None or length is None or batch >= length:
        return
    yield Diagnosis(
        f"max-num-batched-tokens {batch} is below max-model-len {length} and chunked prefill is off",
        f"vLLM refuses: 'max_num_batched_tokens ({batch}) is smaller than max_model_len ({length})'",
        "leave --no-enable-chunked-prefill out",
        set_option("enable_chunked_prefill", None),
    )


@rule(
    "LR404",
    "error",
    "batched_tokens_lt_num_seqs",
    "the batch is smaller than the number of sequences",
    outcome="refused_at_start",
)
def batched_tokens_lt_num_seqs(deployment: HasOptions) -> Iterator[Diagnosis]:
    """Every running sequence needs a token of each step."""
    batch, seqs = deployment.max_num_batched_tokens, deployment.max_num_seqs
    if batch is None or seqs is None or batch >= seqs:
        return
    yield Diagnosis(
        f"max-num-batched-tokens {batch} is below max-num-seqs {seqs}",
        f"each of {seqs} running sequences needs at least one token of a step; vLLM refuses",
        f"set --max-num-batched-tokens to at least {seqs}, or --max-num-seqs to {batch}",
        set_option("max_num_seqs", batch),
    )


@rule(
    "LR978",
    "error",
    "batched_tokens_below_block",
    "a step does not hold one block of recurrent state",
    first="0.17.0",
    last="0.26.0",
    outcome="refused_at_start",
)
def batched_tokens_below_block(deployment: Deployment) -> Iterator[Diagnosis]:
    """In align mode a prefill stops at block boundaries, so a step must reach one."""
    block_size, batch = _aligned_block_size(deployment), deployment.max_num_batched_tokens
    if block_size is None or batch >= block_size or not _knows_batch(deployment):
        return
    yield Diagnosis(
        f"max-num-batched-tokens {batch} is below the block of {block_size} tokens",
        f"vLLM {deployment.release.version} stops: 'In Mamba cache align mode, block_size ({block_size}) must be <= "
        f"max_num_batched_tokens ({batch})'; 0.27 and later do without",
        f"set --max-num-batched-tokens to at least {block_size}",
        set_option("max_num_batched_tokens", block_size),
    )


@rule(
    "LR979",
    "warning",
    "default_batch_may_be_below_block",
    "the default step may not hold one block of recurrent state",
    first="0.17.0",
    last="0.26.0",
    outcome="refused_at_start",
)
def default_batch_may_be_below_block(deployment: Deployment) -> Iterator[Diagnosis]:
    """The default is 2048 tokens on cards below 70 GiB, and the card is not known."""
    block_size, batch = _aligned_block_size(deployment), deployment.max_num_batched_tokens
    if block_size is None or batch >= block_size or _knows_batch(deployment):
        return
    yield Diagnosis(
        f"the block of {block_size} tokens exceeds vLLM's default of {batch} tokens a step on cards below 70 GiB",
        f"vLLM {deployment.release.version} then stops: 'In Mamba cache align mode, block_size ({block_size}) must be <= "
        f"max_num_batched_tokens ({batch})'",
        f"set --max-num-batched-tokens to at least {block_size}",
        set_option("max_num_batched_tokens", block_size),
    )


def _knows_batch(deployment: Deployment) -> bool:
    """The default follows the card's memory, which the catalogue does not have of every card."""
    gpu = deployment.machine.gpu
    has_memory = gpu is not None and (gpu.memory_bytes or gpu.cuda_memory_bytes) is not None
    return deployment.options.max_num_batched_tokens is not None or has_memory


def _aligned_block_size(deployment: Deployment) -> int | None:
    """Tokens of a block where recurrent states are kept at its boundaries; None elsewhere."""
    request = deployment.kv_request
    if request is None or not deployment.model.is_hybrid or state_mode(request) != "align":
        return None
    return deployment.block_size


@rule("LR405", "warning", "prefix_caching_off", "without the prefix cache every turn pays the full prefill")
def prefix_caching_off(deployment: Deployment) -> Iterator[Diagnosis]:
    """Agents send the same long prefix again and again."""
    if deployment.prefix_caching or deployment.options.enable_prefix_caching is not False:
        return
    speed = deployment.speed_at_full_length
    cost = f"up to {deployment.max_model_len} tokens are computed again at every turn"
    if speed is not None and speed.ttft_cold_s.low is not None:
        cost = f"a prompt of {speed.prompt_tokens} tokens takes at least {format_duration(speed.ttft_cold_s.low)} each time"
    yield Diagnosis(
        "--no-enable-prefix-caching makes every turn of a conversation cold",
        cost,
        "leave --no-enable-prefix-caching out",
        set_option("enable_prefix_caching", None),
    )


@rule("LR406", "advice", "chunk_large_for_gpu", "the prefill chunk is large for this GPU")
def chunk_large_for_gpu(deployment: Deployment) -> Iterator[Diagnosis]:
    """Activation memory grows with the chunk and is taken from the KV cache."""
    gpu, batch = deployment.machine.gpu, deployment.max_num_batched_tokens
    if gpu is None and deployment.is_foreign:
        default, card = _LARGEST_DEFAULT, "whatever the card,"
    elif gpu is None or gpu.memory_bytes is None:
        return
    else:
        memory, device = gpu.memory_bytes, deployment.machine.device_type
        known = default_max_num_batched_tokens(memory, gpu.name, device_type=device)
        if known is None:
            return
        default, card = known, f"on {format_bytes(memory)}"
    if batch <= _LARGE_CHUNK_RATIO * default:
        return
    hidden = deployment.model.hidden_size
    yield Diagnosis(
        f"max-num-batched-tokens {batch} is {batch / default:.0f} times vLLM's default{'' if gpu is None else ' for this card'}",
        f"{card} the default is {'at most ' if gpu is None else ''}{default}; each activation of {batch} x {hidden} values takes "
        f"{format_bytes(2 * batch * hidden)}, several live at once, and the peak is taken from the KV cache",
        f"set --max-num-batched-tokens to {_LARGE_CHUNK_RATIO * default} or less; larger chunks hardly prefill faster",
        set_option("max_num_batched_tokens", _LARGE_CHUNK_RATIO * default),
    )


RULES: tuple[Rule, ...] = (
    reserve_full_isl_off,
    chunk_stalls_decode,
    batched_tokens_lt_max_len,
    batched_tokens_lt_num_seqs,
    batched_tokens_below_block,
    default_batch_may_be_below_block,
    prefix_caching_off,
    chunk_large_for_gpu,
)
