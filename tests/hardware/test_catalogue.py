from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from longreach.errors import UsageError
from longreach.hardware.catalogue import MAX_GPUS, choose_gpu, find_gpu, find_gpus_in, gpu_names, parse_gpus
from longreach.units import GIB, MIB

TYPED = {
    "RTX4090": "GeForce RTX 4090",
    "4090": "GeForce RTX 4090",
    "rtx-4090": "GeForce RTX 4090",
    "4090 48g": "GeForce RTX 4090 48GB (modified)",
    "RTX4090D": "GeForce RTX 4090 D",
    "5090 D v2": "GeForce RTX 5090 D v2",
    "3090": "GeForce RTX 3090",
    "3090ti": "GeForce RTX 3090 Ti",
    "A6000": "RTX A6000",
    "rtxa6000": "RTX A6000",
    "A10": "A10",
    "a10g": "A10G",
    "L40": "L40",
    "l40s": "L40S",
    "mi300x": "Instinct MI300X",
    "B200": "B200 180GB",
    "rtx pro 6000 max-q": "RTX PRO 6000 Blackwell Max-Q",
}

PRINTED = {
    "NVIDIA GeForce RTX 4090": "GeForce RTX 4090",
    "NVIDIA H100 80GB HBM3": "H100 SXM5 80GB",
    "NVIDIA H100 PCIe": "H100 PCIe 80GB",
    "NVIDIA H100 NVL": "H100 NVL 94GB",
    "NVIDIA A100-SXM4-80GB": "A100 SXM4 80GB",
    "NVIDIA A100 80GB PCIe": "A100 PCIe 80GB",
    "NVIDIA H20": "H20 96GB",
    "NVIDIA H20-3e": "H20-3e 141GB",
    "NVIDIA H200": "H200 SXM 141GB",
    "NVIDIA GH200 480GB": "GH200 96GB",
    "Tesla T4": "T4",
    "NVIDIA L20": "L20",
    "AMD_Instinct_MI355_OAM": "Instinct MI355X",
    "Intel(R) Arc(TM) Pro B60 Graphics": "Arc Pro B60",
    "Intel(R) Graphics [0xe211]": "Arc Pro B60",
    "NVIDIA RTX PRO 6000 Blackwell Server Edition": "RTX PRO 6000 Blackwell Server",
}


@pytest.mark.parametrize(("typed", "name"), TYPED.items(), ids=list(TYPED))
def test_a_name_as_people_type_it_finds_the_card(typed: str, name: str) -> None:
    choice = choose_gpu(typed)
    assert (choice.gpu.name, choice.assumption) == (name, None)


@pytest.mark.parametrize(("printed", "name"), PRINTED.items(), ids=list(PRINTED))
def test_a_name_as_the_driver_prints_it_finds_the_card(printed: str, name: str) -> None:
    assert find_gpu(printed).name == name


@pytest.mark.parametrize("name", gpu_names())
def test_every_own_name_finds_its_own_row_in_any_spelling(name: str) -> None:
    spellings = [name, name.lower(), name.upper(), name.replace(" ", "-"), name.replace(" ", "_")]
    assert {find_gpu(spelling).name for spelling in spellings} == {name}


@pytest.mark.parametrize(
    ("name", "memory_mib", "expected"),
    [
        ("NVIDIA GeForce RTX 4090", 24564, "GeForce RTX 4090"),
        ("NVIDIA GeForce RTX 4090", 49140, "GeForce RTX 4090 48GB (modified)"),
        ("NVIDIA GeForce RTX 4090 D", 49140, "GeForce RTX 4090 D 48GB (modified)"),
        ("V100", 32768, "V100 SXM2 32GB"),
        ("GH200", 146831, "GH200 144GB HBM3e"),
        ("H100", 95830, "H100 NVL 94GB"),
    ],
)
def test_memory_tells_cards_of_one_name_apart(name: str, memory_mib: int, expected: str) -> None:
    gpu = find_gpu(name, memory_mib)
    assert gpu.name == expected
    assert gpu.memory_bytes == memory_mib * MIB


def test_a_drivers_total_changed_by_ecc_replaces_the_catalogues() -> None:
    gpu = find_gpu("NVIDIA RTX A6000", 46068)
    assert (gpu.name, gpu.memory_bytes, gpu.cuda_memory_bytes) == ("RTX A6000", 46068 * MIB, None)


def test_a_rounded_memory_size_keeps_the_catalogues_totals() -> None:
    assert find_gpu("RTX4090", 24 * 1024) == find_gpu("RTX4090")


@pytest.mark.parametrize(
    ("typed", "name", "other"),
    [
        ("H100", "H100 SXM5 80GB", "H100 NVL"),
        ("a100-80g", "A100 SXM4 80GB", "A100 PCIe 80GB"),
        ("H200", "H200 SXM 141GB", "NVL"),
        ("H200 141 GB", "H200 SXM 141GB", "NVL"),
        ("RTX PRO 6000 Blackwell", "RTX PRO 6000 Blackwell Workstation", "Server"),
        ("RTX PRO 6000 96GB", "RTX PRO 6000 Blackwell Workstation", "Max-Q"),
    ],
)
def test_a_family_name_means_its_usual_card_and_says_so(typed: str, name: str, other: str) -> None:
    choice = choose_gpu(typed)
    assert choice.gpu.name == name
    assert choice.assumption is not None
    assert other in choice.assumption


@pytest.mark.parametrize("typed", ["A100", "V100", "6000", "GH200"])
def test_a_name_of_several_cards_is_refused_with_the_candidates(typed: str) -> None:
    with pytest.raises(UsageError, match="more than one card") as refused:
        find_gpu(typed)
    first = refused.value.why.removeprefix("candidates: ").split(", ")[0]
    assert find_gpu(first).name == first


@pytest.mark.parametrize(
    ("typed", "meant"), [("RTX5O90", "RTX-5090"), ("H1000", "H100-SXM5-80GB"), ("rtx 4009", "RTX-4090")]
)
def test_an_unknown_name_is_refused_with_the_nearest(typed: str, meant: str) -> None:
    with pytest.raises(UsageError, match="not in the catalogue") as refused:
        find_gpu(typed)
    assert f"did you mean '{meant}'" in refused.value.fix


@pytest.mark.parametrize(
    ("typed", "name"),
    [
        ("RTX 4090 24GB", "GeForce RTX 4090"),
        ("RTX 3090 24 GB", "GeForce RTX 3090"),
        ("L40S 48GB", "L40S"),
        ("RTX A5000 24GB", "RTX A5000"),
        ("RTX PRO 4000 24GB", "RTX PRO 4000 Blackwell"),
    ],
)
def test_the_size_that_every_such_card_has_may_stand_behind_its_name(typed: str, name: str) -> None:
    gpu = find_gpu(typed)
    assert gpu.name == name
    assert gpu == find_gpu(name)  # a marketing size replaces no driver total


@pytest.mark.parametrize("typed", ["RTX 4090 80GB", "48 GB card", "64 GB", "16 GPUs", "8 cards", "24GB"])
def test_a_size_or_a_count_alone_and_a_wrong_size_name_no_card(typed: str) -> None:
    with pytest.raises(UsageError, match="not in the catalogue"):
        find_gpu(typed)


@pytest.mark.parametrize("typed", ["banana", "", "NVIDIA", "NVIDIA L20X"])
def test_a_name_near_nothing_is_refused_with_where_to_look(typed: str) -> None:
    with pytest.raises(UsageError) as refused:
        find_gpu(typed)
    assert "nvidia-smi" in refused.value.fix or "did you mean" in refused.value.fix


@pytest.mark.parametrize(
    ("text", "count", "name"),
    [
        ("4xRTX4090", 4, "GeForce RTX 4090"),
        ("4x 4090", 4, "GeForce RTX 4090"),
        ("RTX 4090 x4", 4, "GeForce RTX 4090"),
        ("RTX4090*2", 2, "GeForce RTX 4090"),
        ("RTX4090", 1, "GeForce RTX 4090"),
        ("8 x MI300X", 8, "Instinct MI300X"),
        ("2X3090 Ti", 2, "GeForce RTX 3090 Ti"),
        ("4090 x 4", 4, "GeForce RTX 4090"),
    ],
)
def test_gpus_are_counted_and_named(text: str, count: int, name: str) -> None:
    order = parse_gpus(text)
    assert (order.count, order.gpu.name) == (count, name)


@pytest.mark.parametrize("text", ["0xRTX4090", "1000xRTX4090", "4x", "x4", ""])
def test_a_senseless_order_is_refused(text: str) -> None:
    with pytest.raises(UsageError):
        parse_gpus(text)


@pytest.mark.parametrize(
    ("text", "count", "name"),
    [
        ("8x H200 141 GB", 8, "H200 SXM 141GB"),
        ("2x RTX 3090 24GB", 2, "GeForce RTX 3090"),
        ("A100 80GB SXM", 1, "A100 SXM4 80GB"),
        ("4090 x 4", 4, "GeForce RTX 4090"),
        ("2\u00d7 3090 PCIe (TP=2, no NVLink)", 2, "GeForce RTX 3090"),
        ("Dual 3090 (TP=2, NVLink auto-detected) \u2014 single-card boot-OOMs on 24 GB", 2, "GeForce RTX 3090"),
        ("Quad 3090 PCIe (TP=4)", 4, "GeForce RTX 3090"),
        ("RTX 5090 32GB (WSL2, inferred)", 1, "GeForce RTX 5090"),
        ("rtx_pro_6000_2x", 2, "RTX PRO 6000 Blackwell Workstation"),
        ("DGX Spark (GB10)", 1, "GB10 (DGX Spark)"),
        ("dgx_spark_gb10", 1, "GB10 (DGX Spark)"),
        ("dgx_station_gb300", 1, "GB300 (per GPU)"),
        ("8x H100 80 GB", 8, "H100 SXM5 80GB"),
    ],
)
def test_free_text_about_a_machine_is_read(text: str, count: int, name: str) -> None:
    order = find_gpus_in(text)
    assert order is not None
    assert (order.count, order.gpu.name) == (count, name)


@pytest.mark.parametrize(
    "text",
    [
        "8 GPUs",
        "16 GPUs (2 nodes)",
        "80 GB class",
        "48 GB card (47.74 GiB)",
        "h100, b200",
        "A100 / H20",
        "CPU",
        "TPU v6e",
        "",
        "4x V100",
        "A100",
        "Ascend NPU 64GB",
        "AMD MI50 16GB",
        "RX 6700 XT 12 GB (ROCm)",
        "GB10 class cluster",
        "xeon6",
    ],
)
def test_text_that_names_no_card_several_or_an_open_one_is_not_guessed(text: str) -> None:
    assert find_gpus_in(text) is None


@settings(deadline=None)  # the first example reads the table
@given(st.integers(1, MAX_GPUS), st.sampled_from(gpu_names()))
def test_count_and_name_survive_either_order(count: int, name: str) -> None:
    assert parse_gpus(f"{count}x{name}") == parse_gpus(f"{name} x{count}")
    assert parse_gpus(f"{count}x{name}").count == count


def test_the_catalogue_carries_the_figures_of_a_4090() -> None:
    gpu = find_gpu("RTX4090")
    assert gpu.memory_bytes == 24564 * MIB
    assert gpu.cuda_memory_bytes == (24081 * MIB, 24217 * MIB)
    assert (gpu.fp16_fp32acc_flops, gpu.bf16_gemm_flops) == (165.2e12, (162e12, 173e12))
    assert (gpu.pcie_gen, gpu.pcie_lanes, gpu.nvlink_kind, gpu.p2p_pcie_stock_driver) == (4, 16, "none", "no")


def test_all_figures_of_all_rows_are_plausible() -> None:
    gpus = [find_gpu(name) for name in gpu_names()]
    assert len(gpus) == 76
    for gpu in gpus:
        low, high = gpu.cuda_memory_bytes or (GIB, GIB)
        assert GIB <= low <= high <= (gpu.memory_bytes or high), gpu.name
        assert 100e9 < gpu.memory_bandwidth_bytes_per_s < 10e12, gpu.name
        rates = (gpu.fp16_fp32acc_flops, gpu.fp8_fp32acc_flops, gpu.fp8_best_flops, gpu.fp4_flops)
        known = [rate for rate in rates if rate is not None]
        assert known == sorted(known), gpu.name
        gemm_low, gemm_high = gpu.bf16_gemm_flops or (1.0, 1.0)
        assert gemm_low <= gemm_high <= 1.2 * (gpu.fp16_fp32acc_flops or 1e18), gpu.name


def test_the_table_ships_inside_the_package() -> None:
    from longreach.hardware import catalogue

    assert Path(catalogue.__file__).with_name("gpus.csv").is_file()


@pytest.mark.parametrize("count", ["0", "73", "9" * 5000], ids=["none", "more than a box holds", "5,000 digits"])
def test_a_count_that_no_box_holds_is_told(count: str) -> None:
    with pytest.raises(UsageError, match=r"GPU count .* is out of range"):
        parse_gpus(f"{count}xRTX4090")


def test_every_card_with_memory_of_its_own_has_its_size() -> None:
    """A plan on it must not end in "memory is not known"; what shares the host's has none to print."""
    unknown = [name for name in gpu_names() if find_gpu(name).memory_bytes is None]
    assert unknown == ["GB10 (DGX Spark)", "Jetson AGX Thor T5000", "Jetson AGX Orin 64GB"]


@pytest.mark.parametrize(
    ("name", "printed_bytes"),
    [
        ("MI355X", 309_220_868_096),
        ("Radeon PRO W7900", 48_301_604_864),
        ("Radeon AI PRO R9700", 34_208_743_424),
        ("H800 PCIe", 81_559 * MIB),
    ],
)
def test_memory_is_what_drivers_print(name: str, printed_bytes: int) -> None:
    assert find_gpu(name).memory_bytes == printed_bytes


@pytest.mark.parametrize(
    ("name", "sms", "boost_ghz"),
    [("RTX 3060", 28, 1.777), ("RTX 3060 Ti", 38, 1.665), ("RTX 5060 Ti", 36, 2.572), ("RTX 5070 Ti", 70, 2.452)],
)
def test_rates_of_cards_without_a_published_table_are_counted(name: str, sms: int, boost_ghz: float) -> None:
    """512 FLOPs a clock and SM in fp16 with fp32 accumulate: half of what the tensor cores of other lines do."""
    gpu = find_gpu(name)
    assert gpu.fp16_fp32acc_flops == pytest.approx(sms * boost_ghz * 1e9 * 512, rel=0.005)
