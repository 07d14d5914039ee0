"""Deployments on which each capacity rule speaks, and near ones on which it stays silent."""

from dataclasses import replace

from tests.rules.case import Case
from tests.rules.deployments import DENSE, DENSE_327664, DENSE_327680, HYBRID, MEMORY, with_options

from longreach.engine.options import OffloadOptions
from longreach.rules import capacity as rules
from longreach.units import GIB

_OFFLOAD = OffloadOptions(cpu_bytes=200 * GIB)
_SHORT = replace(DENSE, max_model_len=327_664, capacity=DENSE_327664)
_EXACT = replace(DENSE, max_model_len=327_680, capacity=DENSE_327680)
_TOO_MUCH = replace(MEMORY, kv_bytes=(16 * GIB, 16 * GIB), fits=False)

CASES = (
    Case(rules.weights_exceed_gpu, replace(DENSE, memory=_TOO_MUCH), (DENSE, replace(DENSE, memory=None))),
    Case(rules.kv_too_small_for_max_len, DENSE, (_SHORT, HYBRID, replace(DENSE, capacity=None))),
    Case(rules.null_block_reserved, _EXACT, (DENSE, _SHORT, HYBRID)),
    Case(
        rules.offload_does_not_extend_request,
        with_options(DENSE, offload=_OFFLOAD),
        (DENSE, with_options(HYBRID, offload=_OFFLOAD)),
    ),
    Case(
        rules.reserve_full_isl_adds_no_capacity,
        with_options(DENSE, scheduler_reserve_full_isl=False),
        (DENSE, with_options(HYBRID, scheduler_reserve_full_isl=False)),
    ),
    Case(
        rules.max_num_seqs_exceeds_state_blocks,
        replace(HYBRID, max_num_seqs=1024),
        (
            HYBRID,
            with_options(replace(HYBRID, max_num_seqs=1024), cudagraph_mode="PIECEWISE"),
            with_options(replace(HYBRID, max_num_seqs=1024), enforce_eager=True),
            replace(DENSE, max_num_seqs=1024),
        ),
    ),
)
