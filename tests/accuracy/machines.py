"""The machines that a published line's hardware text names, as far as it can be read."""

import re

from longreach.engine.options import ServeCommand
from longreach.engine.parser import parse_arguments
from longreach.engine.registry import get_registry
from longreach.errors import UsageError
from longreach.hardware.catalogue import MAX_GPUS, parse_gpus
from longreach.hardware.machine import machine_from
from longreach.hardware.spec import Machine

_COUNTED = re.compile(r"(\d+|Single|Dual|Quad)\s*[x\u00d7]?\s+(.*)")
_WORDS = {"Single": 1, "Dual": 2, "Quad": 4}
_SIZES = ("--tensor-parallel-size", "--pipeline-parallel-size", "--data-parallel-size")


def machines_of(hardware: str | None, command: ServeCommand, version: str) -> tuple[Machine, ...]:
    """One for "8x H200 141 GB", one each for a recipe's "h100, h200", none for "4 GPUs", hosts without GPUs and several nodes.

    Where the text gives no count, the command's own size is taken.
    """
    if hardware is None or "nodes" in hardware or "cluster" in hardware:
        return ()
    found = (_machine(name.strip(), command, version) for name in re.sub(r"\(.*", "", hardware).split(","))
    return tuple(machine for machine in found if machine is not None)


def _machine(text: str, command: ServeCommand, version: str) -> Machine | None:
    counted = _COUNTED.fullmatch(re.sub(r"(\d)[x\u00d7]\s*", r"\1 ", text))
    count = _size(command, version) if counted is None else _WORDS.get(counted[1]) or int(counted[1])
    name = (text if counted is None else counted[2]).replace("_", " ").removesuffix(" PCIe")
    name = f"RTX {name}" if re.fullmatch(r"[345]0\d0( Ti)?", name) else name
    if not 1 <= count <= MAX_GPUS:
        return None
    try:
        order = parse_gpus(f"{count}x{name}")
    except UsageError:
        return None
    return machine_from(order.gpu, order.count)


def _size(command: ServeCommand, version: str) -> int:
    parsed = parse_arguments(command.argv, get_registry(version))
    size = 1
    for name in _SIZES:
        value = parsed.value(name) or "1"
        size *= int(value) if value.isdecimal() else 1
    return size
