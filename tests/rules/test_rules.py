"""What every rule promises: it speaks on its case, is silent on near ones, and has a page that shows just what it says."""

import re
from collections import Counter
from dataclasses import replace
from typing import Any

import pytest
from tests.rules.case import Case
from tests.rules.cases import CASES, COMMAND_CASES
from tests.rules.deployments import count
from tests.rules.observed_examples import EXAMPLES
from tests.rules.write_pages import PAGES, outdated

from longreach.rules.deployment import Deployment
from longreach.rules.explain import explain
from longreach.rules.finding import Finding, FindingKind
from longreach.rules.registry import COMMAND_RULES, KINDS, RULES
from longreach.rules.remedy import apply_remedy

ALL_CASES: tuple[Case[Any], ...] = (*CASES, *COMMAND_CASES)
FINDINGS = (*(finding for case in ALL_CASES for finding in case.rule.check(case.fires)), *EXAMPLES)
NAMES = ("TP", "YaRN", "MTP", "NCCL", "KV", "FP8", "CPU", "VLLM_")


def by_code(case: Case[Any]) -> str:
    return case.rule.kind.code


@pytest.mark.parametrize("case", ALL_CASES, ids=by_code)
def test_rule_speaks_on_its_case_under_its_own_code(case: Case[Any]) -> None:
    found = list(case.rule.check(case.fires))
    assert found
    assert {(finding.code, finding.severity, finding.cause) for finding in found} == {
        (case.rule.kind.code, case.rule.kind.severity, case.rule.kind.cause)
    }


@pytest.mark.parametrize("case", ALL_CASES, ids=by_code)
def test_rule_is_silent_on_near_deployments(case: Case[Any]) -> None:
    assert case.silent
    assert [list(case.rule.check(deployment)) for deployment in case.silent] == [[]] * len(case.silent)


def test_every_rule_has_a_case_and_every_observed_kind_an_example() -> None:
    assert sorted({finding.code for finding in FINDINGS}) == [kind.code for kind in KINDS]
    assert {case.rule.kind.code for case in CASES} == {rule.kind.code for rule in RULES}
    assert {case.rule.kind.code for case in COMMAND_CASES} == {rule.kind.code for rule in COMMAND_RULES}


@pytest.mark.parametrize("field", ["code", "cause", "title"])
def test_no_two_kinds_share_a(field: str) -> None:
    counts = Counter(getattr(kind, field) for kind in KINDS)
    assert [value for value, count in counts.items() if count > 1] == []


@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.code)
def test_kind_is_well_formed(kind: FindingKind) -> None:
    assert re.fullmatch(r"LR[1-9]\d\d", kind.code)
    assert re.fullmatch(r"[a-z][a-z0-9]*(_[a-z0-9]+)+", kind.cause)
    assert not kind.title.endswith(".")


@pytest.mark.parametrize("finding", FINDINGS, ids=lambda finding: finding.code)
def test_finding_reads_as_the_style_asks(finding: Finding) -> None:
    assert finding.what[0] in "-'0123456789" or finding.what[0].islower() or finding.what.startswith(NAMES)
    assert "\n" not in finding.what
    assert not finding.what.endswith(".")
    assert re.search(r"\d|--|'|[A-Z_]{4,}", finding.what), "what names no value"
    assert re.search(r"\d|--|'|[A-Z_]{4,}", finding.why), "why proves nothing"
    assert finding.fix
    assert not finding.fix.endswith(".")


def test_pages_and_their_examples_are_what_the_rules_say() -> None:
    assert [path.name for path, _ in outdated()] == [], "run python -m tests.rules.write_pages"


def test_there_is_no_page_without_a_kind() -> None:
    assert sorted(path.stem for path in PAGES.glob("*.md")) == [kind.code for kind in KINDS]


@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.code)
def test_page_explains_and_cures(kind: FindingKind) -> None:
    page = explain(kind.code)
    sections = re.findall(r"^## (.+)$", page, re.MULTILINE)
    assert sections == ["What it means", "Why", "What to do", "Example"]
    assert all(len(text.strip()) > 10 for text in re.split(r"^## .+$", page, flags=re.MULTILINE)[1:])


REMEDIES = [(case, finding) for case in CASES for finding in case.rule.check(case.fires) if finding.remedy is not None]


@pytest.mark.parametrize(("case", "finding"), REMEDIES, ids=[finding.code for _, finding in REMEDIES])
def test_remedy_makes_its_finding_vanish(case: Case[Deployment], finding: Finding) -> None:
    assert finding.remedy is not None
    cured = count(replace(case.fires, options=apply_remedy(case.fires.options, finding.remedy)))
    assert finding.what not in [left.what for left in case.rule.check(cured)]
