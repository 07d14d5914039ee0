"""Whether the server's own count of cached tokens says that a request met the cache in the state that was claimed. Pure."""

from longreach.measure.bench.values import CacheState, Proof
from longreach.measure.send_checks import covers_prompt
from longreach.measure.verify_report import Counters
from longreach.measure.workload.values import WorkloadRequest


def judge_state(
    state: CacheState,
    request: WorkloadRequest,
    cached_tokens: int | None,
    counters: Counters | None,
    *,
    prompt_tokens: int | None,
    template_tokens: int,
    block_size: int | None,
) -> Proof | None:
    """None where nothing was claimed; `unattributed` where the server does not tell, or tells of others too.

    Cold may hit the template's own tokens and what earlier requests of this pass brought, warm must hit all but the last
    blocks, evicted must not hit the GPU more than cold may.
    """
    allowed = template_tokens + request.reusable_tokens
    match state:
        case "cold":
            return "unattributed" if cached_tokens is None else _proof(cached_tokens <= allowed)
        case "warm":
            if cached_tokens is None or prompt_tokens is None:
                return "unattributed"
            return _proof(covers_prompt(cached_tokens, prompt_tokens, block_size))
        case "evicted":
            if cached_tokens is not None and cached_tokens <= allowed:
                return "proven"
            on_gpu = _hits_on_gpu(counters)
            return "unattributed" if on_gpu is None else _proof(on_gpu <= allowed)
        case "as_it_comes" | "flood":
            return None


def _proof(holds: bool) -> Proof:
    return "proven" if holds else "disproven"


def _hits_on_gpu(counters: Counters | None) -> int | None:
    if counters is None or not counters.attributed:
        return None
    if counters.hits_by_source:
        return dict(counters.hits_by_source).get("device", 0)
    return counters.prefix_hit_tokens
