"""Do this client's clock and counts agree with the server's, and could the client keep up? Pure."""

from collections.abc import Callable

from longreach.measure.bench.selection import answered, came_in_one_piece, itl_s, known, total
from longreach.measure.bench.statistics import percentile
from longreach.measure.bench.values import BenchResult, PhaseReport, RequestRecord
from longreach.measure.verify_report import ChecklistItem, Verdict
from longreach.units import format_count, format_duration, format_tokens

_TTFT_SHARE, _TTFT_SLACK_S = 0.01, 0.05
_SMALL_SHARE = 0.1  # of a measured time: what of it may be the client's own
_LATE_S = 0.05


def check_ttft(result: BenchResult) -> ChecklistItem | None:
    """The sums over all phases whose counts are ours alone. Between 50 ms in all and 50 ms a request lies what HTTP and
    tokenizing add before the engine's clock starts; what this client was late comes on top.
    """
    name, title = "ttft_agrees", "time to first token agrees with the server's own"
    pairs = [
        (own, phase)
        for own, phase in _countable(result)
        if phase.ttft_sum_s is not None and phase.ttft_count == len(known(r.ttft_s for r in own)) == len(own)
    ]
    if not pairs:
        return ChecklistItem(name, title, "cannot_tell", _why_untold(result, lambda phase: phase.ttft_count))
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
    elif apart <= _TTFT_SHARE * theirs + (_TTFT_SLACK_S + (result.client_loop_lag_p99_s or 0.0)) * num_requests:
        verdict = "cannot_tell"
    elif ours > theirs and any(came_in_one_piece(r) for own, _ in pairs for r in own):
        verdict, evidence = "cannot_tell", f"{evidence}; some answers came in one piece, later than their first token"
    return ChecklistItem(name, title, verdict, evidence)


def _countable(result: BenchResult) -> list[tuple[list[RequestRecord], PhaseReport]]:
    """The phases whose counts are of our requests alone, all of them answered, each with its requests."""
    pairs = []
    for phase in result.phases:
        own = [r for r in result.records if r.phase == phase.name and phase.began_s <= r.sent_s <= phase.ended_s]
        if phase.attributed and own and len(own) == phase.num_sent and all(record.ok for record in own):
            pairs.append((own, phase))
    return pairs


def _why_untold(result: BenchResult, count: Callable[[PhaseReport], int | None]) -> str:
    """The reason that holds, where no phase can be held against the server's count."""
    if not result.phases:
        return "no pass came to its end"
    if all(count(phase) is None for phase in result.phases):
        return "the server's metrics do not count it, or there are none"
    if not any(phase.attributed for phase in result.phases):
        return "the server's metrics hold other requests than these too"
    if not _countable(result):
        return "in every pass a request failed, or was sent before the run was taken up again"
    return "the server counted another number of requests, or reports no usage"


def check_tokens(result: BenchResult) -> ChecklistItem | None:
    name, title = "tokens_agree", "token totals equal the server's counters"
    rows: list[tuple[str, int, int]] = []
    for own, phase in _countable(result):
        totals = (total(r.prompt_tokens for r in own), total(r.output_tokens for r in own))
        counters = (phase.prompt_tokens, phase.generation_tokens)
        named = zip(("prompt", "output"), totals, counters, strict=True)
        rows += [(kind, ours, theirs) for kind, ours, theirs in named if ours is not None and theirs is not None]
    if not rows:
        return ChecklistItem(name, title, "cannot_tell", _why_untold(result, lambda phase: phase.generation_tokens))
    sums = {
        kind: (sum(r[1] for r in rows if r[0] == kind), sum(r[2] for r in rows if r[0] == kind)) for kind, *_ in rows
    }
    evidence = "; ".join(
        f"{kind} {format_tokens(ours)}{'' if ours == theirs else f' here, {format_tokens(theirs)} there'}"
        for kind, (ours, theirs) in sums.items()
    )
    return ChecklistItem(name, title, "pass" if all(ours == theirs for _, ours, theirs in rows) else "fail", evidence)


def check_streaming(result: BenchResult) -> ChecklistItem | None:
    """Told only where it happened: tokens that come together have no times of their own."""
    records = answered(result)
    whole = sum(map(came_in_one_piece, records))
    if not whole:
        return None
    evidence = (
        f"{whole} of {format_count(len(records), 'answer')} came in one piece: their first token is known only to have come by"
        " then (TTFT is at most what is shown), and they are in no ITL and no chunk gap"
    )
    fix = "measure without a proxy that buffers, with idle cores for server and client, and with longer answers"
    return ChecklistItem("tokens_streamed", "tokens came as they were generated", "cannot_tell", evidence, fix)


def check_client(result: BenchResult) -> ChecklistItem | None:
    """A lag counts once in a time to first token and once, at most, in each gap between tokens."""
    name, title = "client_kept_up", "this client was not the bottleneck"
    records = answered(result)
    lag_s = result.client_loop_lag_p99_s
    first, gaps = known(r.ttft_s for r in records), known(map(itl_s, records))
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


def check_lateness(result: BenchResult) -> ChecklistItem | None:
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
