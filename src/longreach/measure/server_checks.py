"""Does the server say of itself what the plan says of it? Values in, checklist items out; nothing is fetched here."""

from longreach.measure.target import ExpectedServer
from longreach.measure.verify_report import ChecklistItem, ServerState, Verdict
from longreach.units import format_tokens


def check_server(expected: ExpectedServer, state: ServerState) -> list[ChecklistItem]:
    """Every promise that the plan makes about the server's own figures."""
    items = [
        _check_version(expected.release, state.version),
        _check_length(expected.max_model_len, state.max_model_len),
        _check_capacity(expected, state),
        _check_concurrency(expected, state),
        _check_equal("block_size", "block size as planned", expected.block_size, state.block_size),
        _check_equal("kv_cache_dtype", "KV cache dtype as planned", expected.kv_cache_dtype, state.kv_cache_dtype),
    ]
    return [item for item in items if item is not None]


def _check_version(planned: str | None, running: str | None) -> ChecklistItem | None:
    """The same minor release: rules differ between minors, not between patches."""
    if planned is None:
        return None
    if running is None:
        verdict: Verdict = "cannot_tell"
        evidence = f"planned for vLLM {planned}; the server has no /version"
    else:
        verdict = "pass" if planned.split(".")[:2] == running.split(".")[:2] else "fail"
        evidence = f"planned for vLLM {planned}, the server runs {running}"
    return ChecklistItem("release", "vLLM release as planned", verdict, evidence)


def _check_length(planned: int | None, served: int | None) -> ChecklistItem | None:
    if planned is None:
        return None
    title = "longest request as planned"
    if served is None:
        return ChecklistItem("max_model_len", title, "cannot_tell", "/v1/models names no max_model_len")
    verdict: Verdict = "pass" if served == planned else "fail"
    evidence = f"max_model_len {format_tokens(served)} by /v1/models, {format_tokens(planned)} planned"
    return ChecklistItem("max_model_len", title, verdict, evidence)


_NO_CAPACITY = "the server's metrics have no cache_config_info with this figure (vLLM has it from 0.24)"


def _check_capacity(expected: ExpectedServer, state: ServerState) -> ChecklistItem | None:
    planned, held = expected.kv_capacity_tokens, state.kv_capacity_tokens
    if planned is None:
        return None
    title = "KV cache capacity as planned"
    if held is None:
        return ChecklistItem("kv_capacity", title, "cannot_tell", _NO_CAPACITY)
    evidence = f"the server holds {format_tokens(held)} tokens, {format_tokens(planned)} planned"
    if expected.num_blocks is not None and state.num_blocks is not None:
        evidence += f"; {format_tokens(state.num_blocks)} blocks, {format_tokens(expected.num_blocks)} planned"
    return ChecklistItem("kv_capacity", title, _compare(expected, is_equal=held == planned), evidence)


def _check_concurrency(expected: ExpectedServer, state: ServerState) -> ChecklistItem | None:
    planned, held = expected.max_concurrency, state.max_concurrency
    if planned is None:
        return None
    title = "concurrency at full length as planned"
    if held is None:
        return ChecklistItem("max_concurrency", title, "cannot_tell", _NO_CAPACITY)
    is_equal = round(held, 2) == round(planned, 2)  # the log prints two digits, metrics all of them
    evidence = f"{held:.2f}x by the server, {planned:.2f}x planned"
    return ChecklistItem("max_concurrency", title, _compare(expected, is_equal=is_equal), evidence)


def _compare(expected: ExpectedServer, *, is_equal: bool) -> Verdict:
    if is_equal:
        return "pass"
    return "fail" if expected.capacity_is_exact else "cannot_tell"


def _check_equal(name: str, title: str, planned: object, found: object) -> ChecklistItem | None:
    if planned is None:
        return None
    if found is None:
        return ChecklistItem(name, title, "cannot_tell", _NO_CAPACITY)
    verdict: Verdict = "pass" if found == planned else "fail"
    return ChecklistItem(name, title, verdict, f"{found} by the server, {planned} planned")
