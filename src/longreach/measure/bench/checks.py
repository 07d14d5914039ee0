"""Was the run what it was meant to be, and do client and server agree on it? A result in, checklist items out. Pure."""

from collections import Counter
from collections.abc import Callable

from longreach.measure.bench.agreement_checks import (
    check_client,
    check_lateness,
    check_streaming,
    check_tokens,
    check_ttft,
)
from longreach.measure.bench.cache_checks import check_answers, check_evicted, check_state
from longreach.measure.bench.selection import answered, known, words_of
from longreach.measure.bench.values import BenchResult
from longreach.measure.verify_report import ChecklistItem
from longreach.units import format_count


def check_run(result: BenchResult) -> tuple[ChecklistItem, ...]:
    """The checklist. A promise that needs what the server does not tell cannot be told."""
    checks: tuple[Callable[[BenchResult], ChecklistItem | None], ...] = (
        _check_complete,
        _check_prompts,
        _check_outputs,
        lambda run: check_state(run, "cold", "cold_is_cold", "cold prompts met no cache"),
        lambda run: check_state(run, "warm", "warm_is_warm", "repeated prompts came from the cache"),
        check_evicted,
        check_answers,
        check_streaming,
        check_ttft,
        check_tokens,
        check_client,
        check_lateness,
    )
    return tuple(item for item in (check(result) for check in checks) if item is not None)


def _extras(result: BenchResult) -> str:
    """What makes these more than the requests that figures are made from."""
    flood = sum(record.state == "flood" for record in result.records)
    repeats = len(result.records) - len(result.counted) - flood
    parts = [f"{flood} of the flood"] if flood else []
    parts += [f"{repeats} of passes before the last of their state"] if repeats else []
    return f" ({len(result.counted)} measured, {', '.join(parts)})" if parts else ""


def _check_complete(result: BenchResult) -> ChecklistItem:
    name, title = "requests_complete", "every request answered to its end"
    failed = [record for record in result.records if not record.ok]
    if failed:
        kinds = ", ".join(f"{count} {kind}" for kind, count in Counter(r.error_kind for r in failed).most_common())
        first = failed[0]
        status = f"HTTP {first.error_status}, " if first.error_status else ""
        evidence = (
            f"{len(failed)} of {len(result.records)}{_extras(result)} failed ({kinds}); "
            f"request {first.index}: {status}{words_of(first)}"
        )
        return ChecklistItem(name, title, "fail", evidence)
    missing = result.num_wanted - len(result.counted)
    if missing > 0:
        reason = "the run was cut short" if result.interrupted else "the results file is not complete"
        return ChecklistItem(name, title, "cannot_tell", f"{missing} of {result.num_wanted} were not made: {reason}")
    return ChecklistItem(name, title, "pass", f"{len(result.records)} of {len(result.records)}{_extras(result)}")


def _check_prompts(result: BenchResult) -> ChecklistItem | None:
    """Another count on a server that is not vLLM is told, not judged: its tokenizer need not be the one at hand."""
    name, title = "prompt_exact", "prompts exactly as long as wanted, by the server's count"
    wanted = [record for record in answered(result) if record.wanted_prompt_tokens is not None]
    if not wanted:
        return None
    off = known(_deviation(r.prompt_tokens, r.wanted_prompt_tokens) for r in wanted)
    if not off:
        return ChecklistItem(name, title, "cannot_tell", "the server reports no usage")
    wrong = [deviation for deviation in off if deviation]
    if not wrong:
        return ChecklistItem(name, title, "pass", f"{len(off)} of {len(off)}, counted with {result.header.tokenizer}")
    differ = f"{len(wrong)} of {len(off)} differ, by {min(wrong):+,} to {max(wrong):+,} tokens"
    evidence = f"{differ}; built with {result.header.tokenizer}"
    return ChecklistItem(name, title, "fail" if result.header.server.version else "cannot_tell", evidence)


def _deviation(counted: int | None, wanted: int | None) -> int | None:
    return None if counted is None or wanted is None else counted - wanted


def _check_outputs(result: BenchResult) -> ChecklistItem | None:
    """Shorter is the model's right unless it says that the limit ended it; longer is never right."""
    name, title = "output_exact", "answers as long as wanted, by the server's count"
    records = [record for record in answered(result) if record.output_tokens is not None]
    if not records:
        return ChecklistItem(name, title, "cannot_tell", "the server reports no usage") if answered(result) else None
    other = [record for record in records if record.output_tokens != record.wanted_output_tokens]
    if not other:
        return ChecklistItem(name, title, "pass", f"{len(records)} of {len(records)}")
    ended = all((r.output_tokens or 0) < r.wanted_output_tokens and r.finish_reason != "length" for r in other)
    least, most = (end(r.output_tokens or 0 for r in other) for end in (min, max))
    how = "ended by themselves" if ended else "differ"
    tokens = format_count(most, "token") if least == most else f"{least:,} to {most:,} tokens"
    evidence = f"{len(other)} of {len(records)} {how}, with {tokens}"
    return ChecklistItem(name, title, "cannot_tell" if ended else "fail", evidence)
