from tests.rules.deployments import HYBRID, with_model

from longreach.rules.speculation import mtp_without_draft_layers


def test_layers_that_no_release_runs_are_as_good_as_none() -> None:
    (finding,) = mtp_without_draft_layers.check(with_model(HYBRID, mtp_supported=False))
    assert finding.why.startswith("the checkpoint has 1, but no vLLM up to 0.33 has a class that runs those of")
