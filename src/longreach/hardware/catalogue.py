"""The GPU catalogue: names as drivers print them and as people type them, to one row of `gpus.csv`. Pure.

A GPU is added by adding a row. The table is read once, at the first look-up.
"""

import csv
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path

from longreach.errors import UsageError
from longreach.hardware.spec import GpuSpec
from longreach.units import MIB, did_you_mean, shortened

MAX_GPUS = 72
"""Most GPUs in one NVLink domain (NVL72); longreach plans one box."""

_MOST_DIGITS = 9
_TABLE = Path(__file__).with_name("gpus.csv")
_NOISE = frozenset(
    {"nvidia", "geforce", "tesla", "amd", "radeon", "instinct", "intel", "r", "tm", "generation", "dgx", "station"}
    | {"gpu", "gpus", "card", "cards", "per", "one", "of", "four"}
)
_SIZE = re.compile(r"(?<![a-z0-9])(\d+) ?(?:gib|gb|g)\b")  # "80GB", "80 g"; not the "10g" of A10G
_WORD = re.compile(r"\d+gb|[a-z]+|\d+")
_COUNT_FIRST = re.compile(r"\s*(\d+)\s*[x\u00d7*]\s*(\S.*?)\s*", re.IGNORECASE)
_COUNT_LAST = re.compile(r"\s*(\S.*?)(?:\s+[x\u00d7]|\s*[\u00d7*])\s*(\d+)\s*", re.IGNORECASE)
_NUMBERS = {"single": 1, "one": 1, "dual": 2, "two": 2, "quad": 4, "four": 4, "eight": 8}
_NUMBER_WORD = re.compile(rf"({'|'.join(_NUMBERS)})\s+(\S.*)", re.IGNORECASE)
_COUNT_SUFFIX = re.compile(r"(\S.*)[ _](\d+)x", re.IGNORECASE)  # rtx_pro_6000_2x
_ASIDE = re.compile(r"\(.*?\)|\s[-\u2013\u2014]\s.*|[;\u2192].*")  # remarks behind a name
_BUS = re.compile(r"\b(pcie|nvlink)\b", re.IGNORECASE)
_NO_NAME = re.compile(r"\d{1,3}|\d+gb")  # "4090" names a card; "16" counts them, "80gb" measures one
_SAME_MEMORY = 0.01  # a driver total this near the catalogue's is the same card in the same mode
_SAME_CARD = 0.10  # ECC takes 6 % of GDDR; two cards of one name differ by more

_Words = frozenset[str]


@dataclass(frozen=True, slots=True)
class GpuChoice:
    """The GPU a name stands for. `assumption` says what had to be assumed, where the name left something open."""

    gpu: GpuSpec
    assumption: str | None = None


@dataclass(frozen=True, slots=True)
class GpuOrder:
    """`4xRTX4090`, understood."""

    count: int
    gpu: GpuSpec
    assumption: str | None = None


@dataclass(frozen=True, slots=True)
class _Row:
    cells: Mapping[str, str]
    words: _Words
    exact: tuple[_Words, ...]  # our name and the device names
    squashed: tuple[str, ...]  # the same without what separates their words
    usual_for: tuple[_Words, ...]

    @property
    def name(self) -> str:
        return self.cells["name"]

    def fits(self, memory_mib: float | None) -> bool:
        own = _number(self.cells["memory_mib"])
        return memory_mib is None or own is None or abs(memory_mib / own - 1) <= _SAME_CARD


def gpu_names() -> tuple[str, ...]:
    """Our names of all GPUs, in catalogue order."""
    return tuple(row.name for row in _rows())


def find_gpu(name: str, memory_mib: int | None = None) -> GpuSpec:
    """The GPU a name stands for; `memory_mib` (the driver's total) tells boards of one name apart.

    Raises UsageError when no GPU or more than one has that name.
    """
    return choose_gpu(name, memory_mib).gpu


def choose_gpu(name: str, memory_mib: int | None = None) -> GpuChoice:
    """As `find_gpu`, with the assumption made where a family name was taken for its usual part (`H100`: the SXM5 card)."""
    row, assumption = _pick(name, memory_mib)
    return GpuChoice(_with_memory(_spec(row.cells), memory_mib), assumption)


def _pick(name: str, memory_mib: float | None) -> tuple[_Row, str | None]:
    """The row a name stands for, and what was assumed."""
    stages = _stages(name)
    named = next((rows for rows in stages if rows), None)
    if named is None:
        return _pick_by_size(name, memory_mib)
    fitting = next((rows for rows in ([r for r in stage if r.fits(memory_mib)] for stage in stages) if rows), named)
    row = _base(fitting)
    if row is None:
        raise _ambiguous(name, fitting)
    others = [other.name for other in stages[-1] if other is not row] if _words(name) in row.usual_for else []
    assumption = f"'{name}' is taken for {row.name}, the usual one (there are also {', '.join(others)})"
    return row, assumption if others else None


def _pick_by_size(name: str, memory_mib: float | None) -> tuple[_Row, str | None]:
    """`RTX 4090 24GB`: the size that every such card has is no part of its name."""
    size, bare = _SIZE.search(name.lower()), _SIZE.sub(" ", name.lower()).strip()
    nominal_mib = float(size[1]) * 1024 if size else None
    if nominal_mib is None or not any(row.fits(nominal_mib) for stage in _stages(bare) for row in stage):
        raise _unknown(name)
    return _pick(bare, memory_mib or nominal_mib)


def _stages(name: str) -> tuple[list[_Row], ...]:
    """Rows that a name may stand for, the surest way to read it first; the last holds the whole family."""
    words = _words(name)
    if all(_NO_NAME.fullmatch(word) for word in words):
        return ([],)
    return (
        [row for row in _rows() if words in row.exact or _squash(name) in row.squashed],
        [row for row in _rows() if words in row.usual_for],
        [row for row in _rows() if words <= row.words],
    )


def parse_gpus(text: str) -> GpuOrder:
    """`4xRTX4090`, `4x 4090`, `RTX 4090 x4` or `RTX4090` (one)."""
    first, last = _COUNT_FIRST.fullmatch(text), _COUNT_LAST.fullmatch(text)
    if first and last and not _is_count(first[1]):  # "4090 x 4"
        first = None
    count, name = (first[1], first[2]) if first else (last[2], last[1]) if last else ("1", text.strip())
    if not _is_count(count):
        raise UsageError(
            f"GPU count {shortened(count)} is out of range",
            f"one box holds 1 to {MAX_GPUS} GPUs",
            f"write it as 4x{name.replace(' ', '')}",
        )
    choice = choose_gpu(name)
    return GpuOrder(int(count), choice.gpu, choice.assumption)


def _is_count(digits: str) -> bool:
    """Whether that many GPUs stand in one box; int() itself reads no number of thousands of digits."""
    return len(digits) <= _MOST_DIGITS and 1 <= int(digits) <= MAX_GPUS


def find_gpus_in(text: str) -> GpuOrder | None:
    """The cards that free text about a machine names: `8x H200 141 GB`, `Dual 3090 PCIe (TP=2, no NVLink)`, `rtx_pro_6000_2x`.

    None where it names no card of the catalogue, several, or one that could be another; `parse_gpus` says which.
    """
    plain = _ASIDE.sub("", text).strip()
    counted, suffixed = _NUMBER_WORD.fullmatch(plain), _COUNT_SUFFIX.fullmatch(plain)
    if counted:
        plain = f"{_NUMBERS[counted[1].lower()]}x {counted[2]}"
    elif suffixed:
        plain = f"{suffixed[2]}x {suffixed[1]}"
    for words in (plain, _BUS.sub("", plain)):  # "A100 PCIe" is a card, "3090 PCIe" says how it is plugged in
        try:
            return parse_gpus(words.strip())
        except UsageError:
            continue
    return None


@cache
def _rows() -> tuple[_Row, ...]:
    with _TABLE.open(encoding="utf-8", newline="") as table:
        return tuple(_row(cells) for cells in csv.DictReader(table))


def _row(cells: Mapping[str, str]) -> _Row:
    name, usual = cells["name"], cells["usual_for"].split(";")
    exact = (name, *cells["device_names"].split(";"))
    return _Row(
        cells=cells,
        words=_words(name),
        exact=tuple(_words(text) for text in exact),
        squashed=tuple(_squash(text) for text in exact),
        usual_for=tuple(_words(text) for text in usual if text),
    )


def _words(name: str) -> _Words:
    """`NVIDIA A100-SXM4-80GB` and `a100 sxm4 80g` to the same set: a, 100, sxm, 4, 80gb."""
    spaced = re.sub(r"rtx ?pro", "rtx pro ", re.sub(r"[^a-z0-9]+", " ", name.lower()))  # written as one word, too
    return frozenset(_WORD.findall(_SIZE.sub(r"\1gb", spaced))) - _NOISE


def _squash(name: str) -> str:
    """`RTX A6000` to `rtxa6000`."""
    return "".join(word for word in re.findall(r"[a-z0-9]+", name.lower()) if word not in _NOISE)


def _base(rows: Iterable[_Row]) -> _Row | None:
    """The one row, or the card the others are variants of (4090 of 4090 D); None when they are siblings."""
    rows = tuple(rows)
    smallest = min(rows, key=lambda row: len(row.words))
    strictly_more = (row.words > smallest.words for row in rows if row is not smallest)
    return smallest if all(strictly_more) else None


def _unknown(name: str) -> UsageError:
    near = did_you_mean(name.replace(" ", "-"), [_typed(row.name) for row in _rows()])
    return UsageError(
        f"GPU '{name}' is not in the catalogue",
        f"none of its {len(_rows())} devices has that name or these words in its name",
        near or "use the name that `nvidia-smi --query-gpu=name --format=csv` prints, or a short one such as RTX4090",
    )


def _ambiguous(name: str, rows: Iterable[_Row]) -> UsageError:
    candidates = [row.name for row in rows]
    return UsageError(
        f"GPU '{name}' names more than one card",
        f"candidates: {', '.join(candidates)}",
        "write one of them in full, for example " + " or ".join(_typed(row) for row in candidates[:2]),
    )


def _typed(name: str) -> str:
    """Our name as one word to type: `GeForce RTX 4090` to `RTX-4090`."""
    return "-".join(word for word in re.findall(r"\w+", name) if word.lower() not in _NOISE)


def _with_memory(gpu: GpuSpec, memory_mib: int | None) -> GpuSpec:
    """The driver's own total where it differs from the catalogue's (ECC on or off); what CUDA sees is then unknown."""
    if memory_mib is None:
        return gpu
    same = gpu.memory_bytes is not None and abs(memory_mib * MIB / gpu.memory_bytes - 1) <= _SAME_MEMORY
    return gpu if same else replace(gpu, memory_bytes=memory_mib * MIB, cuda_memory_bytes=None)


def _spec(cells: Mapping[str, str]) -> GpuSpec:
    cuda_mib, matmul = _range(cells["cuda_mib"]), _range(cells["bf16_matmul_tflops"])
    memory_mib, (gen, lanes) = _number(cells["memory_mib"]), _pcie(cells["pcie"])
    return GpuSpec(
        name=cells["name"],
        vendor=cells["vendor"],
        architecture=cells["architecture"],
        compute_capability=cells["capability"],
        memory_bytes=None if memory_mib is None else int(memory_mib) * MIB,
        cuda_memory_bytes=None if cuda_mib is None else (int(cuda_mib[0]) * MIB, int(cuda_mib[1]) * MIB),
        memory_bandwidth_bytes_per_s=float(cells["bandwidth_gb_s"]) * 1e9,
        fp16_fp32acc_flops=_number(cells["bf16_tflops"], 1e12),
        fp8_fp32acc_flops=_number(cells["fp8_tflops"], 1e12),
        fp8_best_flops=_number(cells["fp8_best_tflops"], 1e12),
        int8_ops=_number(cells["int8_tops"], 1e12),
        fp4_flops=_number(cells["fp4_tflops"], 1e12),
        bf16_gemm_flops=None if matmul is None else (matmul[0] * 1e12, matmul[1] * 1e12),
        pcie_gen=gen,
        pcie_lanes=lanes,
        host_link_bytes_per_s=_number(cells["host_gb_s"], 1e9),
        nvlink_bytes_per_s=_number(cells["nvlink_gb_s"], 1e9),
        nvlink_kind=cells["nvlink"] or "unknown",
        p2p_pcie_stock_driver=cells["pcie_p2p"] or "unknown",
        fp8_support=cells["fp8"] or "unknown",
        tdp_w=_number(cells["tdp_w"]),
        notes=cells["notes"],
    )


def _number(cell: str, scale: float = 1) -> float | None:
    return float(cell) * scale if cell else None


def _range(cell: str) -> tuple[float, float] | None:
    """`24081-24217`, or one figure for both ends."""
    if not cell:
        return None
    low, _, high = cell.partition("-")
    return float(low), float(high or low)


def _pcie(cell: str) -> tuple[int | None, int | None]:
    """`4x16` to (4, 16); `c2c` and `unified` have no PCIe link to the host."""
    match = re.match(r"(\d)x(\d+)", cell)
    return (int(match[1]), int(match[2])) if match else (None, None)
