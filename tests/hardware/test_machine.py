import pytest

from longreach.errors import UsageError
from longreach.hardware.catalogue import find_gpu
from longreach.hardware.machine import machine_from
from longreach.units import GIB


def words(gpu: str, count: int, link: str | None = None) -> str:
    return " | ".join(machine_from(find_gpu(gpu), count, link, ram_bytes=256 * GIB, num_numa_nodes=1).assumptions)


def test_four_4090s_are_assumed_to_have_full_lanes_and_no_p2p() -> None:
    machine = machine_from(find_gpu("RTX4090"), 4)
    assert machine.link is not None
    assert (machine.num_gpus, machine.link.name, machine.device_type) == (4, "pcie4x16", "cuda")
    assert "stock driver has no PCIe P2P" in machine.assumptions[0]
    assert "host memory is unknown" in machine.assumptions


@pytest.mark.parametrize(
    ("gpu", "count", "link", "phrase"),
    [
        ("RTX3090", 2, None, "no bridge (it joins 2)"),
        ("RTX A6000", 4, None, "NCCL_P2P_LEVEL=SYS"),
        ("RTX A6000", 2, None, "with P2P, the stock driver has it"),
        ("L40S", 4, None, "P2P is not proven"),
        ("RTX4090", 4, "pcie4x16-p2p", "a patched one is taken to work"),
        ("RTX5090", 2, "pcie5x4", "scaled from pcie5x16"),
        ("H100 SXM5 80GB", 8, None, "own fabric (nvlink)"),
        ("GB10", 2, None, "no link between several"),
        ("RTX4090", 1, None, "the host link is the card's own, pcie4x16"),
    ],
)
def test_what_is_assumed_of_the_link_is_said(gpu: str, count: int, link: str | None, phrase: str) -> None:
    assert phrase in words(gpu, count, link)


@pytest.mark.parametrize(
    ("gpu", "count", "link"), [("RTX4090", 4, "pcie4x16"), ("RTX3090", 2, "nvlink-bridge"), ("GB10", 1, None)]
)
def test_nothing_is_assumed_where_nothing_was_left_open(gpu: str, count: int, link: str | None) -> None:
    assert words(gpu, count, link) == ""


def test_assumptions_already_made_come_first() -> None:
    assert machine_from(find_gpu("RTX4090"), 1, assumptions=("one",)).assumptions[0] == "one"


@pytest.mark.parametrize(("gpu", "device_type"), [("MI300X", "rocm"), ("Arc Pro B60", "xpu"), ("T4", "cuda")])
def test_the_vendor_decides_the_device_type(gpu: str, device_type: str) -> None:
    assert machine_from(find_gpu(gpu), 1).device_type == device_type


def test_a_machine_without_a_gpu_is_a_cpu_machine() -> None:
    machine = machine_from(None, 0, ram_bytes=8 * GIB)
    assert (machine.gpu, machine.num_gpus, machine.link, machine.device_type) == (None, 0, None, "cpu")


@pytest.mark.parametrize(
    ("count", "ram_bytes", "nodes"),
    [(0, None, None), (-1, None, None), (10_000, None, None), (1, 0, None), (1, None, 0)],
)
def test_impossible_counts_are_refused(count: int, ram_bytes: int | None, nodes: int | None) -> None:
    with pytest.raises(UsageError):
        machine_from(find_gpu("RTX4090"), count, ram_bytes=ram_bytes, num_numa_nodes=nodes)
