"""Deployments on which the rules of `capacity` and `memory` speak, and near ones on which they stay silent."""

from dataclasses import replace

from tests.rules.case import Case
from tests.rules.deployments import DENSE, HYBRID, MEMORY, with_machine, with_model, with_options

from longreach.engine.options import OffloadOptions
from longreach.model.spec import WeightsSpec
from longreach.rules import capacity, memory
from longreach.units import GIB, MIB

_OFFLOAD = OffloadOptions(cpu_bytes=200 * GIB)
_SHORT = with_options(DENSE, max_model_len=327_664)
_EXACT = with_options(DENSE, max_model_len=327_680)
_FULL_OF_WEIGHTS = replace(MEMORY, weights_bytes=(25 * GIB, 25 * GIB), kv_bytes=(0, 0), fits=False)
_UNCLEAR = replace(MEMORY, weights_bytes=(7500 * MIB, 12000 * MIB), fits=None)
_OTHER_FORM = with_model(HYBRID, weights=WeightsSpec("w4a16", None, None, "as stated", differs=True))
_ON_CPU = with_machine(HYBRID, gpu=None, link=None, num_gpus=0, device_type="cpu")

CASES = (
    Case(
        memory.weights_exceed_gpu,
        with_options(HYBRID, kv_cache_memory_bytes=16 * GIB),
        (HYBRID, replace(HYBRID, memory=None)),
    ),
    Case(
        memory.memory_cannot_tell,
        replace(HYBRID, memory=_UNCLEAR),
        (HYBRID, replace(HYBRID, memory=None), replace(HYBRID, memory=_FULL_OF_WEIGHTS)),
    ),
    Case(capacity.kv_too_small_for_max_len, DENSE, (_SHORT, HYBRID, replace(DENSE, capacity=None))),
    Case(capacity.null_block_reserved, _EXACT, (DENSE, _SHORT, HYBRID)),
    Case(
        capacity.offload_does_not_extend_request,
        with_options(DENSE, offload=_OFFLOAD),
        (DENSE, with_options(HYBRID, offload=_OFFLOAD)),
    ),
    Case(
        capacity.reserve_full_isl_adds_no_capacity,
        with_options(DENSE, scheduler_reserve_full_isl=False),
        (DENSE, with_options(HYBRID, scheduler_reserve_full_isl=False)),
    ),
    Case(
        capacity.mamba_blocks_lt_max_num_seqs,
        with_options(HYBRID, max_num_seqs=1024),
        (
            HYBRID,
            with_options(HYBRID, max_num_seqs=1024, cudagraph_mode="PIECEWISE"),
            with_options(HYBRID, max_num_seqs=1024, enforce_eager=True),
            with_options(DENSE, max_num_seqs=1024),
        ),
    ),
    Case(
        memory.weights_unknown,
        replace(HYBRID, memory=replace(MEMORY, weights_bytes=None, weights_certainty="unknown", fits=None)),
        (HYBRID, replace(HYBRID, memory=None)),
    ),
    Case(
        memory.checkpoint_form_differs,
        with_options(_OTHER_FORM, model=HYBRID.model.name),
        (with_options(HYBRID, model=HYBRID.model.name), _OTHER_FORM),
    ),
    Case(
        memory.kv_memory_unknown,
        replace(_ON_CPU, memory=replace(MEMORY, kv_bytes=None, kv_certainty="unknown")),
        (HYBRID, _ON_CPU, replace(HYBRID, memory=None)),
    ),
    Case(
        capacity.architecture_not_in_release,
        with_model(HYBRID, architecture_releases=("0.33.0", "0.33.0")),
        (HYBRID, with_model(HYBRID, architecture_releases=("0.8.5.post1", "0.33.0"))),
    ),
    Case(
        memory.cpu_kvcache_space_overrides,
        with_options(_ON_CPU, env=(("VLLM_CPU_KVCACHE_SPACE", "40"),)),
        (_ON_CPU, with_options(HYBRID, env=(("VLLM_CPU_KVCACHE_SPACE", "40"),))),
    ),
    Case(
        capacity.cpu_offload_moves_weights,
        with_options(DENSE, extra_args=("--cpu-offload-gb", "64")),
        (DENSE, with_options(HYBRID, extra_args=("--cpu-offload-gb", "64"))),
    ),
    Case(memory.utilization_ignored, with_options(HYBRID, gpu_memory_utilization=0.9), (HYBRID,)),
)
