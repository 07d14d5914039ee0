"""Memory that the share of the card does not cover, in commands that nobody planned: LR129 to LR131. Pure."""

from collections.abc import Iterator

from longreach.rules.deployment import Deployment
from longreach.rules.remedy import set_option
from longreach.rules.rule import Diagnosis, Rule, rule
from longreach.sizing.kv_cache import size_kv_cache
from longreach.units import GIB, format_bytes

_GRAPHS_AND_BUFFERS_BYTES = 5 * GIB // 2  # of CUDA graphs, NCCL and all-reduce buffers on several cards
_LOGIT_BYTES = 4
_WORTH_A_WORD_BYTES = 8 * GIB


def _outside_bytes(deployment: Deployment) -> int | None:
    """What of the card vLLM leaves to everything that it does not profile; None: not known."""
    memory, options = deployment.memory, deployment.options
    if not deployment.is_foreign or memory is None or memory.gpu_total_bytes is None:
        return None
    if options.kv_cache_memory_bytes is not None:
        return None
    share = options.gpu_memory_utilization or deployment.release.default_gpu_memory_utilization
    return int(memory.gpu_total_bytes[0] * (1 - share))


@rule("LR129", "warning", "graphs_outside_profile", "CUDA graphs may not find room", last="0.19.1")
def graphs_outside_profile(deployment: Deployment) -> Iterator[Diagnosis]:
    """Graphs are captured after the KV cache took the whole share; from 0.20 on they are set aside before."""
    outside = _outside_bytes(deployment)
    if outside is None or outside >= _GRAPHS_AND_BUFFERS_BYTES or deployment.options.enforce_eager:
        return
    if deployment.num_gpus_per_engine == 1 or deployment.machine.device_type == "cpu":
        return
    yield Diagnosis(
        f"{format_bytes(outside)} of each card are left to CUDA graphs and the buffers of {deployment.num_gpus_per_engine} GPUs",
        f"vLLM {deployment.release.version} gives the whole share to weights, activations and KV and captures graphs afterwards; "
        "with NCCL they take 1 to 2.5 GiB, and capture ends out of memory where that is not there",
        "lower --gpu-memory-utilization, capture fewer graphs, or set --enforce-eager",
    )


@rule("LR130", "warning", "sampler_outside_share", "warming up the sampler may not find room")
def sampler_outside_share(deployment: Deployment) -> Iterator[Diagnosis]:
    """The logits of max-num-seqs sequences, several times over, beside a card that is nearly full."""
    outside, sequences = _outside_bytes(deployment), deployment.max_num_seqs
    copies = deployment.release.sampling_logit_copies
    needed = int(copies * sequences * deployment.model.vocab_size * _LOGIT_BYTES)
    if outside is None or needed <= outside:
        return
    fewer = max(int(outside / (copies * deployment.model.vocab_size * _LOGIT_BYTES)) // 16 * 16, 1)
    yield Diagnosis(
        f"sampling for {sequences} sequences takes up to {format_bytes(needed)}, and {format_bytes(outside)} of the card are free",
        f"{sequences} rows of {deployment.model.vocab_size} logits, {copies:g} times at the peak; vLLM says 'CUDA out of memory "
        f"occurred when warming up sampler with {sequences} dummy requests'",
        f"set --max-num-seqs to {fewer}, or lower --gpu-memory-utilization",
        set_option("max_num_seqs", fewer),
    )


@rule("LR131", "advice", "length_defaults_to_native", "no --max-model-len: the model's whole length must fit")
def length_defaults_to_native(deployment: Deployment) -> Iterator[Diagnosis]:
    """The start-up check is made for the length in force, which is the config's when none is given."""
    options, request = deployment.options, deployment.kv_request
    if not deployment.is_foreign or options.max_model_len is not None or options.max_model_len_auto or request is None:
        return
    needed = size_kv_cache(request).needed_bytes_per_gpu
    if needed < _WORTH_A_WORD_BYTES:
        return
    yield Diagnosis(
        f"without --max-model-len one request may have {deployment.max_model_len} tokens, and must fit",
        f"that takes {format_bytes(needed)} of KV cache on each GPU; where less is there, vLLM refuses to start",
        "set --max-model-len to what you need",
    )


RULES: tuple[Rule, ...] = (graphs_outside_profile, sampler_outside_share, length_defaults_to_native)
