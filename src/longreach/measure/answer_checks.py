"""Do the answers agree, and do they know what the prompt said? Values in, checklist items out."""

from collections.abc import Sequence

from longreach.measure.prompts import Needle
from longreach.measure.target import ExpectedServer, VerifySettings
from longreach.measure.verify_report import ChecklistItem, PromptReport, SendReport


def check_same_answer(
    cold: SendReport | None, warm: Sequence[SendReport], settings: VerifySettings, expected: ExpectedServer
) -> ChecklistItem:
    """Equal text proves it; different text damns a deterministic engine, or a greedy one that lost a needle."""
    title = "warm answer equals cold answer"
    if cold is None or not warm:
        return ChecklistItem("same_answer", title, "cannot_tell", "there are not two answers to compare")
    if not settings.is_greedy:
        return ChecklistItem(
            "same_answer", title, "cannot_tell", "sampling is on (temperature above 0): answers may differ"
        )
    for send in warm:
        text, repeat = _full_text(cold), _full_text(send)
        if text == repeat:
            continue
        place = _first_difference(text, repeat)
        evidence = f"{send.label} differs from character {place} on: {text[place : place + 40]!r}, {repeat[place : place + 40]!r}"
        lost = set(cold.needles_found) != set(send.needles_found)
        if lost:
            evidence += "; they name different needles"
        is_fault = lost or expected.is_deterministic
        if not is_fault:
            evidence += "; greedy decoding on a GPU may differ by numerics alone"
        return ChecklistItem("same_answer", title, "fail" if is_fault else "cannot_tell", evidence)
    return ChecklistItem(
        "same_answer", title, "pass", f"{len(warm) + 1} answers, {len(_full_text(cold))} characters, identical"
    )


def _full_text(send: SendReport) -> str:
    return send.reasoning + send.content


def _first_difference(first: str, second: str) -> int:
    pairs = zip(first, second, strict=False)
    return next((place for place, (a, b) in enumerate(pairs) if a != b), min(len(first), len(second)))


def check_needles(prompt: PromptReport, sends: Sequence[SendReport]) -> ChecklistItem | None:
    title = "facts hidden in the prompt found"
    if not prompt.needles:
        reason = prompt.needles_off_reason
        return ChecklistItem("needles_found", title, "cannot_tell", f"not asked: {reason}") if reason else None
    if not sends:
        return ChecklistItem("needles_found", title, "cannot_tell", "no answer to search")
    missing = {send.label: _missing(prompt.needles, send) for send in sends}
    if not any(missing.values()):
        depths = ", ".join(f"{needle.depth:.0%}" for needle in prompt.needles)
        return ChecklistItem(
            "needles_found", title, "pass", f"all {len(prompt.needles)} in every answer (depths {depths})"
        )
    evidence = "; ".join(
        f"{label}: not {', '.join(f'{needle.station} {needle.code} at {needle.depth:.0%}' for needle in needles)}"
        for label, needles in missing.items()
        if needles
    )
    if any(send.finish_reason == "length" and missing[send.label] for send in sends):
        return ChecklistItem(
            "needles_found", title, "cannot_tell", f"{evidence}; the answer was cut at its length limit"
        )
    return ChecklistItem("needles_found", title, "fail", evidence)


def _missing(needles: Sequence[Needle], send: SendReport) -> list[Needle]:
    return [needle for needle in needles if needle not in send.needles_found]
