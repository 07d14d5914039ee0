"""Every edit of a rule over foreign commands makes its finding vanish."""

import pytest
from tests.rules.case import Case
from tests.rules.cases import COMMAND_CASES

from longreach.engine.options import ServeCommand
from longreach.lint.check import Surroundings, read_written
from longreach.lint.edits import apply_edit
from longreach.rules.finding import Finding
from longreach.rules.written import WrittenCommand

EDITS = [
    (case, finding) for case in COMMAND_CASES for finding in case.rule.check(case.fires) if finding.edit is not None
]


@pytest.mark.parametrize(("case", "finding"), EDITS, ids=[finding.code for _, finding in EDITS])
def test_edit_makes_its_finding_vanish(case: Case[WrittenCommand], finding: Finding) -> None:
    fires, edit = case.fires, finding.edit
    assert edit is not None
    words = [token for use in fires.parsed.uses for token in use.tokens]
    command = ServeCommand(("vllm", "serve", str(fires.parsed.model), *words), fires.env)
    around = Surroundings(model=fires.model, machine=fires.machine)
    mended = apply_edit(command, read_written(command, fires.release, around).parsed, edit)
    left = case.rule.check(read_written(mended, fires.release, around))
    assert finding.what not in [found.what for found in left]
