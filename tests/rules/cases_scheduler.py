"""Deployments on which the rules of `scheduler` and `speculation` speak, and near ones on which they stay silent."""

from dataclasses import replace

from tests.rules.case import Case
from tests.rules.deployments import (
    DENSE,
    FULL_27B,
    HYBRID,
    SPEED_750K,
    with_gpu,
    with_machine,
    with_model,
    with_options,
)

from longreach.engine.options import SpeculativeOptions
from longreach.engine.release import get_release
from longreach.forecast.values import Span
from longreach.rules import scheduler, speculation
from longreach.units import GIB

_FITTING = with_options(DENSE, max_model_len=131_072)
_OFF = {"scheduler_reserve_full_isl": False}
_MTP = SpeculativeOptions("mtp", 3)
_NGRAM = SpeculativeOptions("ngram", 5, prompt_lookup_max=5)
_PLAIN = with_options(HYBRID, speculative=None)
_ON_CPU = {"gpu": None, "link": None, "num_gpus": 0, "device_type": "cpu"}
_NEXT = with_options(
    with_model(HYBRID, name="qwen3-next-80b-a3b", architecture="Qwen3NextForCausalLM"),
    speculative=replace(_MTP, use_local_argmax_reduction=True),
)

CASES = (
    Case(
        scheduler.reserve_full_isl_off,
        with_options(HYBRID, **_OFF),
        (HYBRID, with_options(DENSE, **_OFF), replace(with_options(HYBRID, **_OFF), concurrency=1)),
    ),
    Case(
        scheduler.chunk_stalls_decode,
        HYBRID,
        (
            DENSE,
            replace(HYBRID, concurrency=1),
            replace(HYBRID, speed=(replace(SPEED_750K, ttft_cold_s=Span(30, 40)),)),
            replace(HYBRID, speed=(replace(SPEED_750K, num_prefill_chunks=1),)),
        ),
    ),
    Case(
        scheduler.batched_tokens_lt_max_len,
        with_options(_FITTING, enable_chunked_prefill=False),
        (_FITTING, with_options(_FITTING, enable_chunked_prefill=False, max_num_batched_tokens=131_072)),
    ),
    Case(scheduler.batched_tokens_lt_num_seqs, with_options(_FITTING, max_num_batched_tokens=8), (_FITTING,)),
    Case(scheduler.prefix_caching_off, with_options(HYBRID, enable_prefix_caching=False), (HYBRID, DENSE)),
    Case(
        scheduler.chunk_large_for_gpu,
        with_options(_FITTING, max_num_batched_tokens=16_384),
        (
            _FITTING,
            with_gpu(with_options(_FITTING, max_num_batched_tokens=16_384), memory_bytes=80 * GIB),
            with_gpu(with_options(_FITTING, max_num_batched_tokens=16_384), memory_bytes=None),
        ),
    ),
    Case(speculation.mtp_without_draft_layers, with_options(_FITTING, speculative=_MTP), (_FITTING, HYBRID)),
    Case(
        speculation.argmax_reduction_without_effect,
        with_options(_FITTING, speculative=replace(_NGRAM, use_local_argmax_reduction=True)),
        (_FITTING, HYBRID, with_options(HYBRID, speculative=_MTP, tensor_parallel_size=1)),
    ),
    Case(
        speculation.argmax_reduction_unsupported,
        _NEXT,
        (HYBRID, with_options(_NEXT, speculative=_MTP), replace(_NEXT, release=get_release("0.33.0"))),
    ),
    Case(
        speculation.mtp_may_lose_hybrid_hits,
        HYBRID,
        (_PLAIN, with_options(HYBRID, enable_prefix_caching=False), with_machine(HYBRID, **_ON_CPU)),
    ),
    Case(
        speculation.mtp_layer_runs_again,
        HYBRID,
        (_PLAIN, with_options(HYBRID, speculative=replace(_MTP, num_speculative_tokens=1))),
    ),
    Case(
        speculation.draft_tokens_not_multiple,
        with_model(HYBRID, draft_layers=(FULL_27B, FULL_27B)),
        (
            HYBRID,
            with_options(
                with_model(HYBRID, draft_layers=(FULL_27B,) * 2), speculative=replace(_MTP, num_speculative_tokens=4)
            ),
            with_options(
                with_model(HYBRID, draft_layers=(FULL_27B,) * 3), speculative=replace(_MTP, num_speculative_tokens=2)
            ),
        ),
    ),
    Case(
        speculation.host_drafts_exclude_async,
        with_options(_FITTING, speculative=_NGRAM, async_scheduling=True),
        (with_options(_FITTING, speculative=_NGRAM), with_options(HYBRID, async_scheduling=True), _FITTING),
    ),
    Case(
        speculation.host_drafts_cost_async,
        with_options(_FITTING, speculative=_NGRAM),
        (_FITTING, HYBRID, with_machine(with_options(_FITTING, speculative=_NGRAM), **_ON_CPU)),
    ),
    Case(
        speculation.mtp_hybrid_hits_fail_on_cpu,
        with_machine(HYBRID, **_ON_CPU),
        (
            HYBRID,
            with_machine(_PLAIN, **_ON_CPU),
            with_machine(with_options(HYBRID, enable_prefix_caching=False), **_ON_CPU),
        ),
    ),
)
