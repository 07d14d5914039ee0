from tests.rules.deployments import DENSE, HYBRID, with_options

from longreach.rules.finding import SEVERITIES
from longreach.rules.registry import RULES, check_deployment


def test_findings_come_gravest_first_then_by_code() -> None:
    found = check_deployment(with_options(DENSE, scheduler_reserve_full_isl=False))
    assert [(SEVERITIES.index(finding.severity), finding.code) for finding in found] == sorted(
        (SEVERITIES.index(finding.severity), finding.code) for finding in found
    )
    assert {"LR103", "LR106"} <= {finding.code for finding in found}


def test_deployment_that_fits_has_no_error() -> None:
    assert [finding for finding in check_deployment(HYBRID) if finding.severity == "error"] == []


def test_rules_are_listed_in_the_order_of_their_codes() -> None:
    codes = [rule.kind.code for rule in RULES]
    assert codes == sorted(codes)
