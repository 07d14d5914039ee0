from pathlib import Path

import pytest
from tests.measure.tiers.test_run import GOOD, SUBJECT, Act, ScriptedRig, answering, refusing, stopped
from tests.measure.tiers.tier_cases import planned

from longreach.cli.plan_file import read_plan, write_plan
from longreach.engine.release import get_release
from longreach.errors import UsageError
from longreach.measure.tiers.run import TiersSettings, run_tiers
from longreach.measure.tiers.values import TierSet, TiersReport
from longreach.measure.tiers.variants import variant_command, with_arc
from longreach.measure.tiers.winning import winning_plan

GPU, CPU, DISK = SUBJECT.variants
NOTHING_HIT = {variant: answering(2.0, (("host", 0), ("disk", 0))) for variant in (CPU, DISK)}
OUTCOMES: dict[TierSet, tuple[dict[TierSet, Act], bool]] = {
    GPU: (NOTHING_HIT, False),
    CPU: ({}, False),
    DISK: ({DISK: answering(0.01, (("host", 10), ("disk", 9_000)))}, False),
    with_arc(CPU): ({with_arc(CPU): answering(0.01, (("host", 9_000),))}, True),
}


def report_of(winner: TierSet) -> TiersReport:
    acts, try_arc = OUTCOMES[winner]
    report = run_tiers(SUBJECT, TiersSettings(try_arc=try_arc), ScriptedRig(GOOD | acts))
    assert report.winner == winner
    return report


@pytest.mark.parametrize("winner", list(OUTCOMES), ids=lambda item: item.name)
def test_the_winning_plan_reads_back_and_starts_what_won(winner: TierSet, tmp_path: Path) -> None:
    plan = planned(disk="/kv")
    won = winning_plan(plan, report_of(winner))
    write_plan(tmp_path / "best.yaml", won)
    again = read_plan(tmp_path / "best.yaml").instances[0]
    assert again.argv == variant_command(plan.instances[0], winner, get_release("0.32.0")).argv
    assert [tier.name for tier in again.tiers] == list(winner.tiers)
    assert {item.name for item in again.tier_forecasts} == set(winner.tiers) - {"gpu"}


@pytest.mark.parametrize("winner", list(OUTCOMES), ids=lambda item: item.name)
def test_its_findings_are_those_of_a_plan_made_so(winner: TierSet) -> None:
    made = planned(
        cpu=200 * 2**30 if "cpu" in winner.tiers else None,
        disk="/kv" if "disk" in winner.tiers else None,
        policy=winner.policy or "lru",
    )
    found = {item.code for item in winning_plan(planned(disk="/kv"), report_of(winner)).findings}
    assert found == {item.code for item in made.findings} - ({"LR315"} if winner.policy == "arc" else set())


def test_the_choices_say_what_was_measured() -> None:
    choices = winning_plan(planned(disk="/kv"), report_of(CPU)).choices[-2:]
    assert [(choice.option, choice.value) for choice in choices] == [
        ("--cpu-tier", "kept"),
        ("--disk-tier", "left out"),
    ]
    assert "not one prompt token came from the disk tier" in choices[1].why


@pytest.mark.parametrize(
    "acts",
    [{GPU: refusing}, {DISK: refusing}, {DISK: stopped}],
    ids=["nothing to compare with", "a tier that did not start", "stopped early"],
)
def test_no_tier_is_left_out_without_a_verdict(acts: dict[TierSet, Act]) -> None:
    report = run_tiers(SUBJECT, TiersSettings(), ScriptedRig(GOOD | acts))
    with pytest.raises(UsageError, match="no winning plan"):
        winning_plan(planned(disk="/kv"), report)
