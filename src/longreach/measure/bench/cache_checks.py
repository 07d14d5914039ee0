"""Did every request meet the cache in the state that was claimed, and is what came from it right? Pure."""

from collections import Counter

from longreach.measure.bench.selection import answered, counted_phases, describe_sources, sources_of, states_of, total
from longreach.measure.bench.values import BenchResult, CacheState
from longreach.measure.verify_report import ChecklistItem
from longreach.units import format_tokens


def check_state(result: BenchResult, state: CacheState, name: str, title: str) -> ChecklistItem | None:
    """By the proof of each request of the last pass."""
    if state not in states_of(result):
        return None
    records = [record for record in answered(result) if record.state == state]
    if not records:
        return ChecklistItem(name, title, "cannot_tell", "no such request was answered")
    proofs = Counter(record.proof for record in records)
    cached, prompt = total(r.cached_tokens for r in records), sum(r.prompt_tokens or 0 for r in records)
    hits = "" if cached is None else f"; {format_tokens(cached)} of {format_tokens(prompt)} tokens cached"
    evidence = f"{proofs['proven']} of {len(records)} proven by the server's count{hits}"
    if proofs["disproven"]:
        return ChecklistItem(name, title, "fail", f"{proofs['disproven']} of {len(records)} were not{hits}")
    if proofs["proven"] < len(records):
        evidence += "; the others it does not attribute (it does with --enable-prompt-tokens-details)"
        return ChecklistItem(name, title, "cannot_tell", evidence)
    return ChecklistItem(name, title, "pass", evidence)


def check_evicted(result: BenchResult) -> ChecklistItem | None:
    """Gone from the GPU: what is hit comes from another tier. What prompts share is soon back on the GPU, and is allowed."""
    name, title = "evicted_was_evicted", "evicted prompts were gone from the GPU"
    if "evicted" not in states_of(result):
        return None
    records = [record for record in answered(result) if record.state == "evicted"]
    phases = [phase for phase in counted_phases(result) if phase.state == "evicted" and phase.attributed]
    cached, prompt = total(r.cached_tokens for r in records), sum(r.prompt_tokens or 0 for r in records)
    if cached == 0:
        return ChecklistItem(name, title, "pass", f"none of {format_tokens(prompt)} tokens cached: all recomputed")
    if not records or not any(sources_of(phase) for phase in phases):
        return ChecklistItem(name, title, "cannot_tell", "the server does not say where the hits came from")
    on_gpu = sum(dict(sources_of(phase)).get("device", 0) for phase in phases)
    block = result.header.server.block_size or 0
    allowed = sum((r.reusable_tokens or 0) + block + result.header.template_tokens for r in records)
    elsewhere = "; ".join(describe_sources(sources_of(phase)) for phase in phases)
    evidence = f"of {format_tokens(prompt)} tokens {elsewhere}; the rest recomputed"
    if on_gpu > allowed:
        evidence += ": the flood did not push them out"
    return ChecklistItem(name, title, "fail" if on_gpu > allowed else "pass", evidence)


def check_answers(result: BenchResult) -> ChecklistItem | None:
    """The same prompt has the same answer, whatever the cache held. Greedy decoding on a GPU may differ by numerics."""
    name, title = "same_answer", "answers from the cache equal those without it"
    cold = {r.index: r.answer_digest for r in answered(result) if r.state == "cold" and r.answer_digest}
    repeats = [r for r in answered(result) if r.state in ("warm", "evicted") and r.answer_digest and r.index in cold]
    if not {"warm", "evicted"} & set(states_of(result)):
        return None
    if not repeats:
        return ChecklistItem(name, title, "cannot_tell", "there are not two answers to compare")
    other = [record for record in repeats if record.answer_digest != cold[record.index]]
    if not other:
        return ChecklistItem(name, title, "pass", f"{len(repeats)} repeats, all identical")
    where = ", ".join(f"request {r.index} {r.state}" for r in other[:3])
    evidence = f"{len(other)} of {len(repeats)} differ ({where}{', ...' if len(other) > 3 else ''})"
    if result.header.is_deterministic:
        return ChecklistItem(name, title, "fail", evidence)
    return ChecklistItem(name, title, "cannot_tell", f"{evidence}; on a GPU they may by numerics alone")
