import pytest

from longreach.errors import UsageError
from longreach.hardware.catalogue import find_gpu, gpu_names
from longreach.hardware.links import LINK_NAMES, default_link, find_link, link_of_group, with_and_without_p2p

GB = 1e9


@pytest.mark.parametrize("gpu_name", gpu_names())
def test_every_default_link_carries_no_more_than_physics_allows(gpu_name: str) -> None:
    gpu = find_gpu(gpu_name)
    link = default_link(gpu, 4)
    if link is None:
        assert gpu.pcie_gen is None
        return
    low, high = link.all_reduce_bytes_per_s
    assert 0 < low <= high <= link.all_reduce_best_bytes_per_s
    assert link.host_bytes_per_s <= (gpu.host_link_bytes_per_s or 0)
    assert link.source


@pytest.mark.parametrize(
    ("gpu_name", "num_gpus", "name"),
    [
        ("RTX4090", 4, "pcie4x16"),
        ("RTX5090", 2, "pcie5x16"),
        ("RTX3090", 2, "pcie4x16"),
        ("RTX A6000", 2, "pcie4x16-p2p"),
        ("RTX A6000", 4, "pcie4x16"),
        ("H100 SXM5 80GB", 8, "nvlink"),
        ("H100 NVL", 2, "pcie5x16"),
        ("MI300X", 8, "xgmi"),
        ("MI210", 4, "pcie4x16"),
        ("Arc Pro B60", 4, "pcie5x8"),
    ],
)
def test_the_default_link_takes_no_bridge_and_no_unproven_p2p(gpu_name: str, num_gpus: int, name: str) -> None:
    link = default_link(find_gpu(gpu_name), num_gpus)
    assert link is not None
    assert link.name == name


def test_unified_memory_has_no_known_link() -> None:
    assert default_link(find_gpu("GB10"), 2) is None


@pytest.mark.parametrize(
    ("gpu_name", "num_gpus", "low", "high", "best"),
    [
        ("A100 SXM4 80GB", 8, 109, 230, 300),
        ("H100 SXM5 80GB", 4, 234, 370, 900),
        ("H100 SXM5 80GB", 8, 234, 480, 900),
        ("H800 SXM5 80GB", 8, 104, 215, 400),
        ("B200", 4, 255, 673, 1800),
        ("B200", 8, 255, 846, 1800),
        ("A800 SXM4 80GB", 8, 72, 154, 200),
        ("MI300X", 8, 312.9, 336, 448),
        ("MI300X", 2, 44.7, 48, 64),
        ("V100 SXM2 32GB", 4, 54, 115.5, 150),
        ("GH200 96GB", 2, 234, 370, 900),
    ],
)
def test_fabric_rates_follow_the_generation_and_the_group(
    gpu_name: str, num_gpus: int, low: float, high: float, best: float
) -> None:
    link = default_link(find_gpu(gpu_name), num_gpus)
    assert link is not None
    assert [rate / GB for rate in link.all_reduce_bytes_per_s] == pytest.approx([low, high])
    assert link.all_reduce_best_bytes_per_s / GB == pytest.approx(best)


@pytest.mark.parametrize(
    ("name", "gpu_name", "low", "high"),
    [
        ("nvlink-bridge", "RTX3090", 15, 48),
        ("nvlink-bridge", "H100 NVL", 116, 208),
        ("nvlink-bridge", "A30", 33, 70),
        ("nvlink-bridge", "H200 NVL", 148.5, 315),
        ("xgmi", "MI210", 49.5, 105),
    ],
)
def test_bridges_that_were_not_measured_take_the_share_of_those_that_were(
    name: str, gpu_name: str, low: float, high: float
) -> None:
    link = find_link(name, find_gpu(gpu_name))
    assert [rate / GB for rate in link.all_reduce_bytes_per_s] == pytest.approx([low, high])


@pytest.mark.parametrize(
    ("gpu_name", "host"),
    [
        ("RTX4090", 26.2),
        ("RTX5090", 55),
        ("H100 SXM5 80GB", 55),
        ("GH200 96GB", 337.5),
        ("GB200", 337.5),
        ("T4", 12.1),
        ("B60", 27.5),
    ],
)
def test_host_copies_run_at_the_practical_rate_of_the_cards_lanes(gpu_name: str, host: float) -> None:
    link = default_link(find_gpu(gpu_name), 1)
    assert link is not None
    assert link.host_bytes_per_s / GB == pytest.approx(host)


@pytest.mark.parametrize("gen", [3, 4, 5])
@pytest.mark.parametrize("lanes", [8, 16])
def test_p2p_and_more_lanes_never_slow_a_link(gen: int, lanes: int) -> None:
    gpu = find_gpu("RTX5090")
    plain, p2p = find_link(f"pcie{gen}x{lanes}", gpu), find_link(f"pcie{gen}x{lanes}-p2p", gpu)
    narrow = find_link(f"pcie{gen}x{lanes // 2}", gpu)
    assert p2p.all_reduce_bytes_per_s >= plain.all_reduce_bytes_per_s >= narrow.all_reduce_bytes_per_s
    assert p2p.all_reduce_latency_s < plain.all_reduce_latency_s
    assert narrow.host_bytes_per_s == pytest.approx(plain.host_bytes_per_s / 2)


def test_an_unmeasured_class_is_scaled_and_says_assumed() -> None:
    link = find_link("pcie5x4", find_gpu("RTX5090"))
    assert link.certainty == "assumed"
    assert "scaled from pcie5x16" in link.source
    assert link.all_reduce_bytes_per_s[0] / GB == pytest.approx(20 / 4)


@pytest.mark.parametrize(
    ("name", "gpu_name", "fix"),
    [
        ("nvlink", "RTX4090", "--link pcie4x16"),
        ("nvlink", "RTX3090", "--link nvlink-bridge"),
        ("nvlink-bridge", "RTX4090", "--link pcie4x16"),
        ("xgmi", "H100 SXM5 80GB", "--link nvlink"),
        ("pcie5x16", "RTX4090", "--link pcie4x16"),
        ("pcie5x16-p2p", "Arc Pro B60", "--link pcie5x8-p2p"),
        ("pcie4x16", "GB10", "leave --link out"),
        ("nvlink", "GB10", "leave --link out"),
        ("pcie4x6", "RTX4090", "did you mean 'pcie4x16'"),
        ("infiniband", "RTX4090", "use one of them"),
    ],
)
def test_a_link_the_card_does_not_have_is_refused_with_one_it_has(name: str, gpu_name: str, fix: str) -> None:
    with pytest.raises(UsageError) as refused:
        find_link(name, find_gpu(gpu_name))
    assert refused.value.fix.startswith(fix)


def test_every_known_name_is_understood_for_some_card() -> None:
    cards = [find_gpu(name) for name in ("B300", "RTX3090", "MI300X")]
    for name in LINK_NAMES:
        found = []
        for card in cards:
            try:
                found.append(find_link(name, card, 4).name)
            except UsageError:
                continue
        assert name in found, name


def test_a_bridge_serves_pairs_and_a_wider_ring_crosses_pcie() -> None:
    gpu = find_gpu("RTX3090")
    bridge = find_link("nvlink-bridge", gpu, 4)
    assert link_of_group(bridge, gpu, 2) == bridge
    assert link_of_group(bridge, gpu, 4) == find_link("pcie4x16", gpu)


def test_a_mesh_pair_uses_one_link_and_other_links_do_not_depend_on_the_group() -> None:
    mi300x, a6000 = find_gpu("MI300X"), find_gpu("A6000")
    mesh, pcie = default_link(mi300x, 8), default_link(a6000, 2)
    assert mesh is not None
    assert pcie is not None
    assert link_of_group(mesh, mi300x, 2) == default_link(mi300x, 2)
    assert link_of_group(pcie, a6000, 8) == pcie


@pytest.mark.parametrize(
    ("name", "gpu_name", "names"),
    [
        ("pcie4x16", "RTX4090", ("pcie4x16", "pcie4x16-p2p")),
        ("pcie5x8-p2p", "RTX5090", ("pcie5x8", "pcie5x8-p2p")),
        ("pcie", "RTX3090", ("pcie", "pcie4x16-p2p")),
    ],
)
def test_a_pcie_link_is_known_with_and_without_p2p(name: str, gpu_name: str, names: tuple[str, str]) -> None:
    gpu = find_gpu(gpu_name)
    plain, direct = with_and_without_p2p(find_link(name, gpu), gpu)
    assert (plain.name, direct.name) == names
    assert plain.p2p < direct.p2p
    assert plain.all_reduce_bytes_per_s[0] < direct.all_reduce_bytes_per_s[0]
