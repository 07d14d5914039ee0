import re
from pathlib import Path

import pytest

from longreach.forecast import decode, rates, tiers

PAGE = " ".join((Path(__file__).parents[2] / "docs" / "forecast.md").read_text(encoding="utf-8").split())

SHARES = {
    "linear layers, GeForce, of the published bf16 matmul": rates._LINEAR_SHARE_GEFORCE,
    "linear layers, other cards": rates._LINEAR_SHARE_OTHER,
    "linear layers of experts": rates._MOE_SHARE,
    "attention, GeForce": rates._ATTENTION_SHARE_GEFORCE,
    "attention, other cards": rates._ATTENTION_SHARE_OTHER,
    "attention, heads wider than 256 or sparse latents": rates._ATTENTION_SHARE_HARD,
    "gain of fp8 over bf16, GeForce": rates._GAIN_GEFORCE["fp8"],
    "gain of fp8 over bf16, other cards": rates._GAIN_OTHER["fp8"],
    "gain of int8 over bf16": rates._GAIN_OTHER["int8"],
    "gain of fp4 over bf16, GeForce": rates._GAIN_GEFORCE["fp4"],
    "gain of fp4 over bf16, other cards": rates._GAIN_OTHER["fp4"],
}


@pytest.mark.parametrize("name", SHARES)
def test_the_pages_shares_are_those_of_the_code(name: str) -> None:
    row = re.search(rf"\| {re.escape(name)} \| ([\d.]+) \| ([\d.]+) \|", PAGE)
    assert row is not None
    assert (float(row[1]), float(row[2])) == SHARES[name]


@pytest.mark.parametrize(
    ("sentence", "pair"),
    [
        ("{} to {} of the nominal peak stands for it on GeForce", rates._MATMUL_SHARE_GEFORCE),
        ("{} to {} of the bandwidth", decode._BANDWIDTH_SHARE),
        ("an acceptance of {} to {} a position for MTP", decode._MTP_ACCEPTANCE),
        ("{} to {} GB/s where the host's rate is unknown", tuple(rate / 1e9 for rate in tiers._HOST_PATH_BYTES_PER_S)),
        ("A disk is read at {} to {} GB/s", tuple(rate / 1e9 for rate in tiers._DISK_BYTES_PER_S)),
    ],
)
def test_the_pages_sentences_carry_the_codes_figures(sentence: str, pair: tuple[float, float]) -> None:
    found = re.search(re.escape(sentence).replace(r"\{\}", r"([\d.]+)"), PAGE)
    assert found is not None
    assert (float(found[1]), float(found[2])) == pytest.approx(pair)
