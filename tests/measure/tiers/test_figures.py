from dataclasses import replace

import pytest
from tests.measure.tiers.tier_cases import Script, result_of

from longreach.measure.tiers.figures import variant_figures
from longreach.measure.tiers.places import Place
from longreach.measure.tiers.values import TierSet

DISK = TierSet(("gpu", "cpu", "disk"), "lru")
CPU = TierSet(("gpu", "cpu"), "lru")
PLACES = {0: Place(1, 0), 1: Place(1, 1), 2: Place(2, 0), 3: Place(2, 1)}
SCRIPT = Script(
    ttfts=(2.0, 2.0, 1.0, 1.0),
    hits=(("device", 100), ("disk", 300), ("host", 600)),
    cached=250,
    answer_s=0.5,
    tier_written=(("0:primary", 9_000), ("1:fs", 4_000)),
    loaded=(90_000, 0.3),
)


def test_runs_add_up() -> None:
    found = variant_figures(DISK, [result_of(SCRIPT), result_of(SCRIPT)], PLACES)
    assert (found.num_runs, found.num_ok, found.prompt_tokens) == (2, 8, 8_000)
    assert dict(found.hits_by_source or ()) == {"device": 200, "disk": 600, "host": 1_200}
    assert (found.hits_from("gpu"), found.hits_from("cpu"), found.hits_from("disk")) == (200, 1_200, 600)
    assert found.hit_share == pytest.approx(0.25)
    assert [(item.round, item.num_requests, item.ttft_mean_s) for item in found.rounds] == [(1, 4, 2.0), (2, 4, 1.0)]


def test_rates_are_over_what_they_took() -> None:
    found = variant_figures(DISK, [result_of(SCRIPT)], PLACES)
    assert found.duration_s == pytest.approx(8.0)
    assert found.prompt_tokens_per_s == pytest.approx(4_000 / 8)
    assert found.reload_bytes_per_s == pytest.approx(300_000)
    assert found.reload_tokens_per_s == pytest.approx(900 / 0.3)
    assert found.disk_written_bytes == 4_000, "the CPU tier's own memory is no disk"
    assert found.disk_written_bytes_per_s == pytest.approx(500)


def test_a_release_that_tells_no_source_tells_inside_and_outside() -> None:
    result = result_of(replace(SCRIPT, hits=()))
    phase = replace(result.phases[0], prefix_hit_tokens=100, external_hit_tokens=900)
    of_cpu, of_disk = (variant_figures(tiers, [replace(result, phases=(phase,))], PLACES) for tiers in (CPU, DISK))
    assert (of_cpu.hits_from("cpu"), of_cpu.hits_from("gpu")) == (900, 100)
    assert of_disk.hits_from("disk") is None, "CPU tier or disk: it does not say"


def test_what_the_server_does_not_count_is_unknown_and_not_zero() -> None:
    found = variant_figures(CPU, [result_of(Script((1.0, 1.0)))], PLACES)
    assert found.hits_from("cpu") is None
    assert (found.stored_bytes, found.reload_tokens_per_s, found.disk_written_bytes) == (None, None, None)
