import re
from pathlib import Path

import pytest

from longreach.hardware.catalogue import find_gpu, gpu_names
from longreach.hardware.links import find_link

PAGE = (Path(__file__).parents[2] / "docs" / "hardware.md").read_text(encoding="utf-8")
ROWS = re.findall(
    r"^\| `([\w-]+)` \| ([^|]+) \| ([\d.]+) \| ([\d.]+) \| ([\d.]+) \| ([\d.]+) \| (\d+) \| (\w+) \|$",
    PAGE,
    re.MULTILINE,
)


@pytest.mark.parametrize("row", ROWS, ids=lambda row: f"{row[0]} {row[1]}")
def test_the_pages_link_table_is_what_the_code_says(row: tuple[str, ...]) -> None:
    name, gpu_name, *figures, certainty = row
    link = find_link(name, find_gpu(gpu_name), 2 if name == "nvlink-bridge" else 4)
    rates = (*link.all_reduce_bytes_per_s, link.all_reduce_best_bytes_per_s, link.host_bytes_per_s)
    shown = [f"{rate / 1e9:.4g}" if rate >= 1e12 else f"{rate / 1e9:.3g}" for rate in rates]
    assert [*shown, f"{link.all_reduce_latency_s * 1e6:.0f}"] == figures
    assert link.certainty == certainty


def test_the_page_has_its_link_table_and_counts_the_catalogue() -> None:
    assert len(ROWS) == 16
    assert f"holds {len(gpu_names())} devices" in PAGE


def test_every_column_of_the_catalogue_is_explained() -> None:
    header = (Path(__file__).parents[2] / "src/longreach/hardware/gpus.csv").read_text(encoding="utf-8").splitlines()[0]
    obvious = {"vendor", "architecture", "capability", "tdp_w", "notes"}
    missing = [column for column in header.split(",") if column not in obvious and f"`{column}`" not in PAGE]
    assert missing == []
