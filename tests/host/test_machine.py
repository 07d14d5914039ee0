import shutil
from collections.abc import Sequence
from pathlib import Path

import pytest

from longreach.host.commands import CommandResult
from longreach.host.machine import detect_machine, parse_nvidia_smi

FOUR_4090 = "".join(
    f"{index}, GPU-{index}a7c1d5e-9f3b-4c1a-8d2e-5b6f7a8c9d0e, NVIDIA GeForce RTX 4090, 24564\n" for index in range(4)
)
MIXED = FOUR_4090 + "4, GPU-4a000000-0000-0000-0000-000000000000, Tesla T4, 15360\n"
DRIVER_DOWN = "NVIDIA-SMI has failed because it couldn't communicate with the NVIDIA driver.\n"


class Recorded:
    """A command runner that answers with what a machine once printed."""

    def __init__(self, result: CommandResult) -> None:
        self.result = result

    def __call__(self, argv: Sequence[str], timeout_s: float) -> CommandResult:
        assert argv[0] == "nvidia-smi"
        assert timeout_s >= 10
        return self.result


def printed(text: str, returncode: int = 0) -> Recorded:
    return Recorded(CommandResult(returncode, text))


@pytest.fixture
def root(tmp_path: Path) -> Path:
    """A /sys with two nodes that have CPUs and one that is GPU memory."""
    for name, cpus in (("node0", "0-63"), ("node1", "64-127"), ("node2", "")):
        node = tmp_path / "sys/devices/system/node" / name
        node.mkdir(parents=True)
        (node / "cpulist").write_text(cpus + "\n")
    return tmp_path


def test_gpus_are_matched_with_the_catalogue(root: Path) -> None:
    machine = detect_machine({}, printed(FOUR_4090), root)
    assert machine.gpu is not None
    assert (machine.gpu.name, machine.num_gpus, machine.device_type) == ("GeForce RTX 4090", 4, "cuda")


def test_the_link_is_the_usual_one_of_the_card_and_said_to_be_assumed(root: Path) -> None:
    machine = detect_machine({}, printed(FOUR_4090), root)
    assert machine.link is not None
    assert machine.link.name == "pcie4x16"
    assert any("pcie4x16" in assumption for assumption in machine.assumptions)


def test_a_card_with_twice_the_memory_is_another_card(root: Path) -> None:
    machine = detect_machine({}, printed(FOUR_4090.replace("24564", "49140")), root)
    assert machine.gpu is not None
    assert machine.gpu.name == "GeForce RTX 4090 48GB (modified)"


@pytest.mark.parametrize(
    ("setting", "num_gpus"),
    [("0,2", 2), ("", 0), ("GPU-1a7c1d5e", 1), ("0,9,1", 1), ("NoDevFiles", 0)],
    ids=["indices", "none", "uuid prefix", "stops at an unknown one", "container without devices"],
)
def test_only_visible_gpus_count(setting: str, num_gpus: int, root: Path) -> None:
    machine = detect_machine({"CUDA_VISIBLE_DEVICES": setting}, printed(FOUR_4090), root)
    assert machine.num_gpus == num_gpus
    assert machine.assumptions[0] == f"CUDA_VISIBLE_DEVICES={setting} shows {num_gpus} of 4 GPUs"


def test_unequal_gpus_leave_the_larger_group_and_say_so(root: Path) -> None:
    machine = detect_machine({}, printed(MIXED), root)
    assert machine.num_gpus == 4
    assert machine.assumptions[0] == (
        "GPUs differ: 4x NVIDIA GeForce RTX 4090 are used (CUDA_VISIBLE_DEVICES=0,1,2,3), not 1x Tesla T4"
    )


def test_an_unknown_gpu_is_counted_but_not_guessed(root: Path) -> None:
    machine = detect_machine({}, printed("0, GPU-1, NVIDIA Zonk 9000, 24564\n"), root)
    assert (machine.gpu, machine.num_gpus, machine.device_type) == (None, 1, "cuda")
    assert "'NVIDIA Zonk 9000' is not in the catalogue: its figures are unknown" in machine.assumptions[0]


@pytest.mark.parametrize(
    ("result", "note"),
    [
        (CommandResult(None, problem="nvidia-smi is not installed"), "nvidia-smi is not installed: no GPU is counted"),
        (CommandResult(9, DRIVER_DOWN), "nvidia-smi failed: NVIDIA-SMI has failed because"),
    ],
    ids=["no driver", "driver down"],
)
def test_without_gpus_the_device_is_the_cpu(result: CommandResult, note: str, root: Path) -> None:
    machine = detect_machine({}, Recorded(result), root)
    assert (machine.gpu, machine.num_gpus, machine.device_type) == (None, 0, "cpu")
    assert machine.assumptions[0].startswith(note)


def test_only_numa_nodes_with_cpus_count(root: Path) -> None:
    assert detect_machine({}, printed(""), root).num_numa_nodes == 2


def test_shared_memory_is_as_large_as_its_file_system(root: Path) -> None:
    assert detect_machine({}, printed(""), root).shm_bytes is None
    (root / "dev/shm").mkdir(parents=True)
    assert detect_machine({}, printed(""), root).shm_bytes == shutil.disk_usage(root).total


def test_a_container_limit_caps_the_memory(root: Path) -> None:
    limit = root / "sys/fs/cgroup/memory.max"
    limit.parent.mkdir(parents=True)
    limit.write_text("1073741824\n")
    machine = detect_machine({}, printed(FOUR_4090), root)
    assert machine.ram_bytes == 2**30
    assert machine.assumptions[0].startswith("memory is limited to 1073741824 bytes by the container")


def test_shared_memory_gpus_print_no_total() -> None:
    (gpu,) = parse_nvidia_smi("0, GPU-b1, NVIDIA GB10, [N/A]\n")
    assert (gpu.name, gpu.memory_mib) == ("NVIDIA GB10", None)
