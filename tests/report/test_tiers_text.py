import json
from dataclasses import replace

import pytest
from tests.measure.tiers.test_notes import GPU as GPU_FIGURES
from tests.measure.tiers.test_run import GOOD, SUBJECT, ScriptedRig, answering, refusing

from longreach.cli.params import jsonable
from longreach.measure.bench.statistics import describe
from longreach.measure.tiers.run import TiersSettings, run_tiers
from longreach.measure.tiers.values import Gain, RoundFigures, TierSet, TiersReport, VariantFigures
from longreach.report.style import Paint
from longreach.report.tiers_document import tiers_document
from longreach.report.tiers_text import render_tiers

GPU, CPU, DISK = SUBJECT.variants


@pytest.fixture(scope="module")
def report() -> TiersReport:
    return run_tiers(SUBJECT, TiersSettings(), ScriptedRig(GOOD | {DISK: refusing}))


def shown(report: TiersReport) -> list[str]:
    return [line.strip() for line in render_tiers(report, Paint()).splitlines()]


def test_a_verdict_shows_its_interval_its_evidence_and_each_send(report: TiersReport) -> None:
    lines = shown(report)
    place = lines.index("keep: the CPU tier (GPU+CPU against GPU)")
    assert lines[place + 1].startswith(
        "time to first token saved: +60.0 % (+56.5 to +63.2), more than the 5% asked for"
    )
    assert "9,000 prompt tokens came from the CPU tier" in " ".join(lines[place + 1 : place + 4])
    assert "time to first token saved by send: send 1: +0.0 %  send 2: +90.0 %  send 3: +90.0 %" in lines
    assert lines[-1] == "best: GPU+CPU"


def test_variants_stand_side_by_side(report: TiersReport) -> None:
    (gpu,) = [line for line in shown(report) if line.startswith("GPU ") and "s (" in line]
    (cpu,) = [line for line in shown(report) if line.startswith("GPU+CPU ") and "s (" in line]
    assert gpu.split()[1:4] == ["1", "0", "0.0%"]
    assert cpu.split()[-3:] == ["2.2", "s", "749"]
    rows = [line.split() for line in shown(report) if line.startswith("GPU+CPU  ")]
    assert rows[1] == ["GPU+CPU", "2.1", "s", "209", "ms", "209", "ms"]
    assert rows[2][:3] == ["GPU+CPU", "0", "9,000"]


def test_the_widest_tables_fit_a_usual_terminal() -> None:
    """1,000 requests and more, so that P99 has its interval, from all sources, with all rates."""
    wide = replace(
        GPU_FIGURES,
        variant=TierSet(("gpu", "cpu", "disk"), "arc"),
        ttft_s=describe([61.25 + number / 77 for number in range(2_000)]),
        rounds=tuple(RoundFigures(number, 400, 125.0) for number in range(1, 9)),
        hits_by_source=(("device", 10**8), ("disk", 10**8), ("host", 10**8)),
        stored_bytes=123 * 10**12,
        loaded_bytes=123 * 10**12,
        reload_bytes_per_s=12.34e9,
        disk_written_bytes=123 * 10**12,
        disk_read_bytes=123 * 10**12,
        prompt_tokens_per_s=123_456.0,
    )
    empty = run_tiers(SUBJECT, TiersSettings(), ScriptedRig(dict.fromkeys(SUBJECT.variants, refusing)))
    lines = render_tiers(replace(empty, figures=(wide,), runs=()), Paint()).splitlines()
    assert max(map(len, lines)) <= 120


def test_what_failed_is_told_in_its_own_words(report: TiersReport) -> None:
    place = shown(report).index("GPU+CPU+disk, run 1 failed")
    assert shown(report)[place + 1] == "it did not start   why: no memory   fix: buy some"


@pytest.mark.parametrize(
    ("more_runs", "wanted"),
    [
        (1, "not enough data, 1 more run of each would tell: the CPU tier"),
        (4, "not enough data, 4 more runs of each would tell: the CPU tier"),
        (None, "not enough data, more than 50 runs of each would tell: the CPU tier"),
    ],
)
def test_an_undecided_tier_says_what_would_decide(report: TiersReport, more_runs: int | None, wanted: str) -> None:
    step = replace(report.steps[0], verdict="not_enough_data", more_runs=more_runs, ttft_gain=Gain(0.05, (-0.1, 0.2)))
    assert any(line.startswith(wanted) for line in shown(replace(report, steps=(step,))))


def test_where_others_used_the_engine_no_number_of_runs_is_named(report: TiersReport) -> None:
    step = replace(report.steps[0], verdict="not_enough_data", more_runs=None, is_mixed=True)
    assert "not enough data: the CPU tier (GPU+CPU against GPU)" in shown(replace(report, steps=(step,)))


def test_on_a_cpu_a_copy_is_not_called_a_reload(report: TiersReport) -> None:
    def header(device_type: str) -> str:
        return next(line for line in shown(replace(report, device_type=device_type)) if "from GPU" in line)

    assert "reload" in header("cuda")
    assert "reload" not in header("cpu")
    assert "copy in memory" in header("cpu")


def test_a_report_without_any_run_says_so() -> None:
    empty = run_tiers(SUBJECT, TiersSettings(), ScriptedRig(dict.fromkeys(SUBJECT.variants, refusing)))
    assert shown(empty)[-1] == "nothing could be judged: the GPUs alone were not measured"


def test_the_document_is_strict_json_and_holds_every_figure(report: TiersReport) -> None:
    document = json.loads(json.dumps(jsonable(tiers_document(report)), allow_nan=False))
    assert document["winner"] == "gpu+cpu"
    assert [item["name"] for item in document["variants"]] == ["gpu", "gpu+cpu"]
    fields = set(VariantFigures.__dataclass_fields__) - {"variant"}
    assert fields | {"name", "hit_share"} == set(document["variants"][0])
    assert document["variants"][1]["hits_by_source"] == {"device": 0, "host": 9_000}
    (step,) = document["steps"]
    assert (step["base"], step["variant"], step["verdict"]) == ("gpu", "gpu+cpu", "keep")
    assert step["ttft_gain"]["interval"][0] <= step["ttft_gain"]["value"] <= step["ttft_gain"]["interval"][1]
    assert [(run["results"], run["failure"] is None) for run in document["runs"]] == [
        ("gpu.1.jsonl", True),
        ("gpu-cpu.1.jsonl", True),
        ("gpu-cpu-disk.1.jsonl", False),
    ]


def test_arc_is_told_as_a_policy() -> None:
    rig = ScriptedRig(GOOD | {DISK: answering(0.2, (("disk", 0),))})
    lines = shown(run_tiers(SUBJECT, TiersSettings(try_arc=True), rig))
    assert "drop: ARC in place of LRU (GPU+CPU+ARC against GPU+CPU)" in lines
