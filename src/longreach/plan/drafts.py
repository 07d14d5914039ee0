"""Whether MTP is chosen: where the model has it, it pays, and the goal fits with it as well as without. Pure."""

from dataclasses import replace

from longreach.engine.registry import get_registry
from longreach.model.spec import IndexerLayer
from longreach.plan.count import Case, Decision, count_if_possible
from longreach.plan.request_time import RequestTime, speed_request, time_request
from longreach.plan.values import Choice

_PAYING_RATE = 1.1  # of the decode rate without drafts


def choose_drafts(case: Case, plain: Decision) -> tuple[Decision, tuple[Choice, ...]]:
    """`plain` decodes one token a step. Nothing is chosen, and nothing said, where the goal decides or the model has no MTP."""
    num_drafts = sum(not isinstance(layer, IndexerLayer) for layer in case.model.draft_layers)
    if case.goal.speculation is not None or not num_drafts or not case.model.mtp_supported or not _has_method(case):
        return plain, ()
    wanted = f"mtp:{num_drafts}"
    obstacle = _obstacle(case, plain)
    if obstacle is not None:
        return plain, (Choice("--spec", "none", f"{wanted}: {obstacle}"),)
    with_drafts = count_if_possible(case, replace(plain.trial, speculation=wanted))
    if with_drafts is None or with_drafts.grade > plain.grade:
        return plain, (Choice("--spec", "none", f"with {wanted} the goal would not fit as it does without"),)
    before, after = _time(case, plain), _time(case, with_drafts)
    if before is None or after is None:
        return plain, (Choice("--spec", "none", f"whether {wanted} pays cannot be told: no rates are known"),)
    rates = f"{after.decode_tokens_per_s:.0f} tokens/s instead of {before.decode_tokens_per_s:.0f}, mid-range"
    if after.decode_tokens_per_s < _PAYING_RATE * before.decode_tokens_per_s:
        return plain, (Choice("--spec", "none", f"{wanted} does not pay: {rates}"),)
    return with_drafts, (Choice("--spec", wanted, f"the model's own draft layer: {rates} for one request"),)


def _obstacle(case: Case, plain: Decision) -> str | None:
    split = plain.settled.split
    if case.machine.device_type == "cpu":
        return "drafts are not chosen on a CPU"
    if split.pp_size > 1 or split.dcp_size > 1:
        return f"drafts beside {split} are not proven: ask for them with --spec"
    if case.model.is_hybrid and case.goal.prefix_caching:
        return "decodes faster, and may cost a hybrid its prefix hits (LR414): ask for it with --spec and verify"
    if not plain.fit.serves:
        return "nothing is added to what does not fit"
    return None


def _has_method(case: Case) -> bool:
    return "mtp" in get_registry(case.release.version).names("spec_method")


def _time(case: Case, decision: Decision) -> RequestTime | None:
    longest = speed_request(case.model, case.machine, case.goal, decision.settled, decision.fit)
    request = replace(longest, prompt_tokens=decision.settled.mean_input_tokens)
    return time_request(request, case.goal.mean_output_tokens)
