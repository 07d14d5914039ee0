"""Was the run what it was meant to be, and do client and server agree on it? A result in, checklist items out. Pure."""

from collections import Counter
from collections.abc import Callable

from longreach.measure.bench.selection import counted_phases, known, sources_of, states_of, total
from longreach.measure.bench.statistics import percentile
from longreach.measure.bench.values import BenchResult, CacheState, PhaseReport, RequestRecord
from longreach.measure.verify_report import ChecklistItem, Verdict
from longreach.units import format_duration, format_tokens

_TTFT_SHARE, _TTFT_SLACK_S = 0.01, 0.05
_SMALL_SHARE = 0.1  # of a measured time: what of it may be the client's own
_LATE_S = 0.05


def check_run(result: BenchResult) -> tuple[ChecklistItem, ...]:
    """The checklist. A promise that needs what the server does not tell cannot be told."""
    checks: tuple[Callable[[BenchResult], ChecklistItem | None], ...] = (
        _check_complete,
        _check_prompts,
        _check_outputs,
        lambda run: _check_state(run, "cold", "cold_is_cold", "cold prompts met no cache"),
        lambda run: _check_state(run, "warm", "warm_is_warm", "repeated prompts came from the cache"),
        _check_evicted,
        _check_answers,
        _check_ttft,
        _check_tokens,
        _check_client,
        _check_lateness,
    )
    return tuple(item for item in (check(result) for check in checks) if item is not None)


def _answered(result: BenchResult) -> list[RequestRecord]:
    return [record for record in result.counted if record.ok]


def _check_complete(result: BenchResult) -> ChecklistItem:
    name, title = "requests_complete", "every request answered to its end"
    failed = [record for record in result.records if not record.ok]
    if failed:
        kinds = ", ".join(f"{count} {kind}" for kind, count in Counter(r.error_kind for r in failed).most_common())
        first = failed[0]
        status = f"HTTP {first.error_status}, " if first.error_status else ""
        words = first.error or "the server gave no reason"
        evidence = f"{len(failed)} of {len(result.records)} failed ({kinds}); request {first.index}: {status}{words}"
        return ChecklistItem(name, title, "fail", evidence)
    missing = result.num_wanted - len(result.counted)
    if missing > 0:
        reason = "the run was cut short" if result.interrupted else "the results file is not complete"
        return ChecklistItem(name, title, "cannot_tell", f"{missing} of {result.num_wanted} were not made: {reason}")
    return ChecklistItem(name, title, "pass", f"{len(result.records)} of {len(result.records)}")


def _check_prompts(result: BenchResult) -> ChecklistItem | None:
    """Another count on a server that is not vLLM is told, not judged: its tokenizer need not be the one at hand."""
    name, title = "prompt_exact", "prompts exactly as long as wanted, by the server's count"
    wanted = [record for record in _answered(result) if record.wanted_prompt_tokens is not None]
    if not wanted:
        return None
    off = known(_deviation(r.prompt_tokens, r.wanted_prompt_tokens) for r in wanted)
    if not off:
        return ChecklistItem(name, title, "cannot_tell", "the server reports no usage")
    num_off = sum(deviation != 0 for deviation in off)
    if not num_off:
        return ChecklistItem(name, title, "pass", f"{len(off)} of {len(off)}, counted with {result.header.tokenizer}")
    evidence = f"{num_off} of {len(off)} differ, by {min(off):+,} to {max(off):+,} tokens; built with {result.header.tokenizer}"
    return ChecklistItem(name, title, "fail" if result.header.server.version else "cannot_tell", evidence)


def _deviation(counted: int | None, wanted: int | None) -> int | None:
    return None if counted is None or wanted is None else counted - wanted


def _check_outputs(result: BenchResult) -> ChecklistItem | None:
    """Shorter is the model's right unless it says that the limit ended it; longer is never right."""
    name, title = "output_exact", "answers as long as wanted, by the server's count"
    records = [record for record in _answered(result) if record.output_tokens is not None]
    if not records:
        return ChecklistItem(name, title, "cannot_tell", "the server reports no usage") if _answered(result) else None
    other = [record for record in records if record.output_tokens != record.wanted_output_tokens]
    if not other:
        return ChecklistItem(name, title, "pass", f"{len(records)} of {len(records)}")
    ended = all((r.output_tokens or 0) < r.wanted_output_tokens and r.finish_reason != "length" for r in other)
    least, most = (end(r.output_tokens or 0 for r in other) for end in (min, max))
    how = "ended by themselves" if ended else "differ"
    tokens = f"{least:,}" if least == most else f"{least:,} to {most:,}"
    evidence = f"{len(other)} of {len(records)} {how}, with {tokens} tokens"
    return ChecklistItem(name, title, "cannot_tell" if ended else "fail", evidence)


def _check_state(result: BenchResult, state: CacheState, name: str, title: str) -> ChecklistItem | None:
    """By the proof of each request of the last pass."""
    if state not in states_of(result):
        return None
    records = [record for record in _answered(result) if record.state == state]
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


def _check_evicted(result: BenchResult) -> ChecklistItem | None:
    """Gone from the GPU: what is hit comes from another tier. What prompts share is soon back on the GPU, and is allowed."""
    name, title = "evicted_was_evicted", "evicted prompts were gone from the GPU"
    if "evicted" not in states_of(result):
        return None
    records = [record for record in _answered(result) if record.state == "evicted"]
    phases = [phase for phase in counted_phases(result) if phase.state == "evicted" and phase.attributed]
    cached, prompt = total(r.cached_tokens for r in records), sum(r.prompt_tokens or 0 for r in records)
    if cached == 0:
        return ChecklistItem(name, title, "pass", f"none of {format_tokens(prompt)} tokens cached: all recomputed")
    if not records or not any(sources_of(phase) for phase in phases):
        return ChecklistItem(name, title, "cannot_tell", "the server does not say where the hits came from")
    on_gpu = sum(dict(sources_of(phase)).get("device", 0) for phase in phases)
    block = result.header.server.block_size or 0
    allowed = sum((r.reusable_tokens or 0) + block + result.header.template_tokens for r in records)
    elsewhere = "; ".join(_describe_sources(phase) for phase in phases)
    evidence = f"of {format_tokens(prompt)} tokens {elsewhere}; the rest recomputed"
    if on_gpu > allowed:
        evidence += ": the flood did not push them out"
    return ChecklistItem(name, title, "fail" if on_gpu > allowed else "pass", evidence)


def _describe_sources(phase: PhaseReport) -> str:
    return ", ".join(f"{source} {format_tokens(tokens)}" for source, tokens in sources_of(phase))


def _check_answers(result: BenchResult) -> ChecklistItem | None:
    """The same prompt has the same answer, whatever the cache held. Greedy decoding on a GPU may differ by numerics."""
    name, title = "same_answer", "answers from the cache equal those without it"
    cold = {r.index: r.answer_digest for r in _answered(result) if r.state == "cold" and r.answer_digest}
    repeats = [r for r in _answered(result) if r.state in ("warm", "evicted") and r.answer_digest and r.index in cold]
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


def _check_ttft(result: BenchResult) -> ChecklistItem | None:
    """The sums over all phases whose counts are ours alone. Between 50 ms in all and 50 ms a request lies what HTTP and
    tokenizing add before the engine's clock starts.
    """
    name, title = "ttft_agrees", "time to first token agrees with the server's own"
    pairs = [(_in_phase(result, p), p) for p in result.phases if p.attributed and p.ttft_sum_s is not None]
    pairs = [(own, phase) for own, phase in pairs if own and all(r.ok and r.ttft_s is not None for r in own)]
    pairs = [(own, phase) for own, phase in pairs if phase.ttft_count == len(own)]
    if not pairs:
        return ChecklistItem(name, title, "cannot_tell", "the server's metrics are absent or hold other requests too")
    num_requests = sum(len(own) for own, _ in pairs)
    ours = sum(r.ttft_s or 0.0 for own, _ in pairs for r in own)
    theirs = sum(phase.ttft_sum_s or 0.0 for _, phase in pairs)
    apart = abs(ours - theirs)
    evidence = (
        f"{ours:.3f} s here, {theirs:.3f} s there over {num_requests} requests: {1000 * (ours - theirs) / num_requests:+.1f} ms"
        f" a request"
    )
    verdict: Verdict = "fail"
    if apart <= _TTFT_SHARE * theirs + _TTFT_SLACK_S:
        verdict = "pass"
    elif apart <= _TTFT_SHARE * theirs + _TTFT_SLACK_S * num_requests:
        verdict = "cannot_tell"
    return ChecklistItem(name, title, verdict, evidence)


def _in_phase(result: BenchResult, phase: PhaseReport) -> list[RequestRecord]:
    return [r for r in result.records if r.phase == phase.name and phase.began_s <= r.sent_s <= phase.ended_s]


def _check_tokens(result: BenchResult) -> ChecklistItem | None:
    name, title = "tokens_agree", "token totals equal the server's counters"
    rows: list[tuple[str, int, int]] = []
    for phase in result.phases:
        own = _in_phase(result, phase)
        if not phase.attributed or not own or not all(record.ok for record in own):
            continue
        totals = (total(r.prompt_tokens for r in own), total(r.output_tokens for r in own))
        counters = (phase.prompt_tokens, phase.generation_tokens)
        named = zip(("prompt", "output"), totals, counters, strict=True)
        rows += [(kind, ours, theirs) for kind, ours, theirs in named if ours is not None and theirs is not None]
    if not rows:
        return ChecklistItem(name, title, "cannot_tell", "the server's metrics are absent or hold other requests too")
    sums = {
        kind: (sum(r[1] for r in rows if r[0] == kind), sum(r[2] for r in rows if r[0] == kind)) for kind, *_ in rows
    }
    evidence = "; ".join(
        f"{kind} {format_tokens(ours)}{'' if ours == theirs else f' here, {format_tokens(theirs)} there'}"
        for kind, (ours, theirs) in sums.items()
    )
    return ChecklistItem(name, title, "pass" if all(ours == theirs for _, ours, theirs in rows) else "fail", evidence)


def _check_client(result: BenchResult) -> ChecklistItem | None:
    """A lag counts once in a time to first token and once, at most, in each gap between tokens."""
    name, title = "client_kept_up", "this client was not the bottleneck"
    answered = _answered(result)
    lag_s = result.client_loop_lag_p99_s
    first, gaps = known(r.ttft_s for r in answered), known(r.itl_s for r in answered)
    if lag_s is None or not first:
        return None
    medians = [("time to first token", _SMALL_SHARE * percentile(first, 0.5), percentile(first, 0.5))]
    medians += [("time between tokens", percentile(gaps, 0.5), percentile(gaps, 0.5))] if gaps else []
    slow = [(what, median) for what, limit, median in medians if lag_s > limit]
    evidence = f"its event loop was {1000 * lag_s:.1f} ms late at P99"
    if not slow:
        return ChecklistItem(name, title, "pass", evidence)
    beside = ", ".join(f"a {what} of {1000 * median:.1f} ms" for what, median in slow)
    fix = "measure from another machine, or with fewer requests at once"
    return ChecklistItem(name, title, "cannot_tell", f"{evidence}, beside {beside}", fix)


def _check_lateness(result: BenchResult) -> ChecklistItem | None:
    """An open loop that sends late is none: the load was less than asked for."""
    late = [record.sent_s - record.due_s for record in result.counted if record.due_s is not None]
    if not late:
        return None
    p99_s = percentile(late, 0.99)
    first = known(record.ttft_s for record in result.counted)
    limit_s = max(_LATE_S, _SMALL_SHARE * percentile(first, 0.5) if first else 0.0)
    evidence = f"{format_duration(max(p99_s, 0.0))} late at P99, {format_duration(max(*late, 0.0))} at most"
    verdict: Verdict = "pass" if p99_s <= limit_s else "fail"
    if verdict == "fail" and result.header.load.concurrency:
        evidence += f"; at most {result.header.load.concurrency} were allowed at once"
    return ChecklistItem("sent_on_time", "requests sent when they were due", verdict, evidence)
