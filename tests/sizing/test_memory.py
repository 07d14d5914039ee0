"""One GPU's memory: weights, the rest, and what is left to KV."""

from dataclasses import replace
from typing import Any

import pytest
from tests.sizing.cases import read_cases

from longreach.engine.release import get_release
from longreach.hardware.spec import GpuSpec, Machine
from longreach.model.source import load_model
from longreach.model.spec import ParameterCount
from longreach.sizing.memory import MemoryRequest, budget_memory, estimate_other_bytes, estimate_rest, num_graphs
from longreach.sizing.weights import plan_weights
from longreach.units import GIB

CARD = GpuSpec(
    name="card",
    vendor="NVIDIA",
    architecture="",
    compute_capability="8.9",
    memory_bytes=24564 * 2**20,
    cuda_memory_bytes=(24081 * 2**20, 24217 * 2**20),
    memory_bandwidth_bytes_per_s=1e12,
    fp16_fp32acc_flops=None,
    fp8_fp32acc_flops=None,
    fp8_best_flops=None,
    int8_ops=None,
    fp4_flops=None,
    bf16_gemm_flops=None,
    pcie_gen=None,
    pcie_lanes=None,
    host_link_bytes_per_s=None,
    nvlink_bytes_per_s=None,
    nvlink_kind="none",
    p2p_pcie_stock_driver="no",
    fp8_support="native",
    tdp_w=None,
)
MACHINE = Machine(gpu=CARD, num_gpus=4, link=None)
REQUEST = MemoryRequest(
    model=load_model("qwen3.6-27b", "w4a16"),
    machine=MACHINE,
    tp_size=4,
    pp_size=1,
    max_num_batched_tokens=2048,
    max_num_seqs=16,
)


def spans(**changes: object) -> tuple[float, float]:
    """The rest, least and most in GiB."""
    low, high = estimate_other_bytes(replace(REQUEST, **changes))  # type: ignore[arg-type]
    return low / GIB, high / GIB


def test_loaded_weights_lie_in_their_range() -> None:
    cases = read_cases("loaded_weights")
    inside = 0
    for case in cases:
        plan = plan_weights(load_model(case["model"], case["weights"]), case["tp_size"], 1, use_draft_layers=False)
        assert plan.bytes_per_gpu is not None
        low, high = (size / GIB for size in plan.bytes_per_gpu)
        inside += low * 0.99 <= case["loaded_gib"] <= high
        assert low * 0.85 < case["loaded_gib"] < high * 1.2, case["id"]
    assert (inside, len(cases)) == (26, 29)


def test_kv_bytes_asked_for_are_exact() -> None:
    budget = budget_memory(replace(REQUEST, kv_cache_memory_bytes=10 * GIB))
    assert (budget.kv_bytes, budget.kv_certainty) == ((10 * GIB, 10 * GIB), "exact")


def test_multimodal_transfer_memory_is_taken_out_of_kv() -> None:
    asked = replace(REQUEST, mm_ipc_gpu_memory_bytes=GIB)
    assert budget_memory(replace(asked, kv_cache_memory_bytes=10 * GIB)).kv_bytes == (9 * GIB, 9 * GIB)
    (low, high), (less_low, less_high) = (budget_memory(request).kv_bytes or (0, 0) for request in (REQUEST, asked))
    assert (low - less_low, high - less_high) == (GIB, GIB)


def test_utilization_leaves_a_range_to_kv_with_a_best_guess_inside() -> None:
    budget = budget_memory(REQUEST)
    assert budget.kv_certainty == "range"
    assert budget.weights_bytes is not None
    assert budget.other_bytes is not None
    assert budget.kv_bytes is not None
    assert budget.kv_middle_bytes is not None
    low, high = budget.kv_bytes
    assert low < budget.kv_middle_bytes < high
    # parts miss independently: the range is narrower than with all of them at their ends
    assert low > 24081 * 2**20 * 0.92 - budget.weights_bytes[1] - budget.other_bytes[1]
    assert high < 24217 * 2**20 * 0.92 - budget.weights_bytes[0] - budget.other_bytes[0]


def test_before_0_32_the_table_of_m_rope_has_four_rows_a_position() -> None:
    old = replace(REQUEST, release=get_release("0.31.0"), enforce_eager=True)
    with_table, without = (estimate_rest(replace(old, rope_table_bytes=size)).middle for size in (GIB, 0))
    assert with_table - without == pytest.approx(GIB)


def test_a_larger_share_of_the_card_goes_to_kv_alone() -> None:
    (low, high), (more_low, more_high) = (
        budget_memory(replace(REQUEST, gpu_memory_utilization=share)).kv_bytes or (0, 0) for share in (0.8, 0.9)
    )
    gained = 0.1 * (24081 + 24217) / 2 * 2**20
    assert more_low - low == pytest.approx(gained)
    assert more_high - high == pytest.approx(gained)


def test_the_rope_table_is_counted() -> None:
    with_table = budget_memory(replace(REQUEST, rope_table_bytes=GIB))
    assert with_table.rope_table_bytes == GIB
    assert with_table.other_bytes is not None
    low, high = estimate_other_bytes(REQUEST)
    assert with_table.other_bytes[0] == pytest.approx(low + GIB / 4)  # one row a position of the four of M-RoPE
    assert high + GIB / 4 < with_table.other_bytes[1] <= high + GIB


@pytest.mark.parametrize(
    ("changes", "grows"),
    [
        ({"max_num_batched_tokens": 32768}, True),
        ({"max_num_seqs": 1024}, True),
        ({"release": get_release("0.16.0"), "max_num_seqs": 1024}, True),
        ({"enforce_eager": True}, False),
        ({"text_only": True}, False),
    ],
    ids=["batch", "sequences", "sorting sampler", "no graphs", "no encoder"],
)
def test_the_rest_follows_what_profiling_runs(changes: dict[str, object], grows: bool) -> None:
    assert (spans(**changes)[1] > spans()[1]) is grows


def test_old_releases_leave_no_room_for_graphs_and_count_nccl() -> None:
    old = replace(REQUEST, release=get_release("0.10.2"), max_num_seqs=1)
    newer = replace(old, release=get_release("0.16.0"))
    assert estimate_rest(old).middle > estimate_rest(newer).middle
    assert estimate_rest(old) == estimate_rest(replace(old, enforce_eager=True))


def test_several_gpus_keep_buffers_for_collectives() -> None:
    bare = {"max_num_batched_tokens": 1, "max_num_seqs": 1, "enforce_eager": True, "text_only": True}
    assert spans(**bare)[1] > spans(**bare, tp_size=1)[1] + 0.5


@pytest.mark.parametrize(("max_num_seqs", "graphs"), [(2, 3 + 2), (128, 35 + 19), (256, 51 + 35), (1024, 51 + 51)])
def test_graphs_are_counted_as_the_engine_logs_them(max_num_seqs: int, graphs: int) -> None:
    assert num_graphs(max_num_seqs) == graphs


@pytest.mark.parametrize(("asked_gib", "fits"), [(8, True), (16, None), (22, False)])
def test_whether_everything_fits_the_card_is_said_only_when_sure(asked_gib: int, fits: bool | None) -> None:
    assert budget_memory(replace(REQUEST, kv_cache_memory_bytes=asked_gib * GIB)).fits is fits


def test_weights_beyond_the_card_never_fit() -> None:
    assert budget_memory(replace(REQUEST, model=load_model("qwen3.6-27b", "none"), tp_size=1)).fits is False


def test_without_a_card_only_what_was_asked_for_is_known() -> None:
    nowhere = replace(REQUEST, machine=Machine(gpu=None, num_gpus=1, link=None))
    budget = budget_memory(nowhere)
    assert (budget.gpu_total_bytes, budget.kv_bytes, budget.kv_certainty, budget.fits) == (None, None, "unknown", None)
    assert budget_memory(replace(nowhere, kv_cache_memory_bytes=GIB)).kv_certainty == "exact"


@pytest.mark.parametrize(
    ("changes", "expected"),
    [
        ({"cuda_memory_bytes": None}, ((24564 - 770) * 2**20, (24564 - 250) * 2**20)),
        ({"cuda_memory_bytes": None, "vendor": "AMD"}, (24564 * 2**20, 24564 * 2**20)),
        ({"cuda_memory_bytes": None, "memory_bytes": None}, None),
    ],
)
def test_the_drivers_total_stands_in_for_cudas(changes: dict[str, Any], expected: tuple[int, int] | None) -> None:
    machine = replace(MACHINE, gpu=replace(CARD, **changes))
    assert budget_memory(replace(REQUEST, machine=machine)).gpu_total_bytes == expected


def test_unknown_active_parameters_are_taken_for_typical() -> None:
    unknown = replace(REQUEST, model=replace(REQUEST.model, parameters=ParameterCount(None, 0, None, "estimate")))
    assert estimate_other_bytes(unknown)[1] == pytest.approx(estimate_other_bytes(REQUEST)[1], rel=0.2)


@pytest.mark.parametrize(
    ("release", "model", "copies"),
    [
        ("0.16.0", "qwen3-8b", 9.6),
        ("0.21.0", "qwen3-8b", 3.5),
        ("0.26.0", "qwen3-8b", 1.6),
        ("0.26.0", "qwen3.6-27b", 3.5),
        ("0.26.0", "gpt-oss-20b", 3.5),
        ("0.32.0", "qwen3.6-27b", 1.6),
    ],
)
def test_sampling_is_profiled_as_the_release_samples(release: str, model: str, copies: float) -> None:
    request = replace(
        REQUEST, model=load_model(model, None), release=get_release(release), text_only=True, enforce_eager=True
    )
    few, many = (estimate_rest(replace(request, max_num_seqs=count)).middle for count in (1024, 2048))
    assert many - few == pytest.approx(copies * 1024 * request.model.vocab_size * 4, rel=0.02)


def test_a_fabric_of_many_gpus_keeps_larger_buffers_than_pcie() -> None:
    fabric = replace(MACHINE, gpu=replace(CARD, nvlink_kind="nvswitch"))
    assert estimate_rest(replace(REQUEST, machine=fabric)).middle > estimate_rest(REQUEST).middle


def test_the_host_moves_what_unified_memory_leaves() -> None:
    unified = replace(MACHINE, gpu=replace(CARD, memory_bytes=None))
    wide, usual = (estimate_rest(replace(REQUEST, machine=machine)) for machine in (unified, MACHINE))
    assert wide.high - wide.low > usual.high - usual.low + 2 * GIB
