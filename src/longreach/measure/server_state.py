"""Asking a server who it is: models, version, capacity."""

from collections.abc import Sequence

from longreach.engine.metrics import EngineMetrics
from longreach.errors import ServerError, UsageError
from longreach.measure.client import Client
from longreach.measure.metrics import fetch_metrics
from longreach.measure.verify_report import ServerState
from longreach.units import did_you_mean
from longreach.wire.bodies import ServedModel, parse_models, parse_version


async def fetch_models(client: Client) -> tuple[ServedModel, ...]:
    """What the server serves; ServerError when it cannot be reached or refuses."""
    return parse_models((await client.fetch("/v1/models")).require_ok())


def choose_model(served: Sequence[ServedModel], wanted: str | None) -> ServedModel:
    """The wanted model, or the only one. ServerError when it is not served, UsageError when there is a choice."""
    names = tuple(model.model_id for model in served)
    if not names:
        raise ServerError("the server serves no model", "its list of models is empty", "check what was started there")
    for model in served:
        if model.model_id == wanted or (wanted is None and len(served) == 1):
            return model
    listing = ", ".join(names)
    if wanted is None:
        raise UsageError("which model is meant is not clear", f"the server serves: {listing}", "--model NAME")
    fix = did_you_mean(wanted, names) or f"--model {names[0]}"
    raise ServerError(f"the server does not serve '{wanted}'", f"it serves: {listing}", fix)


async def fetch_server_state(client: Client, model: ServedModel) -> ServerState:
    """Version and capacity as the server tells them; what it does not tell is None."""
    return read_server_state(model, await _fetch_version(client), await fetch_metrics(client))


async def _fetch_version(client: Client) -> str | None:
    try:
        return parse_version((await client.fetch("/version")).require_ok())
    except ServerError:
        return None  # only vLLM has it


def read_server_state(model: ServedModel, version: str | None, metrics: EngineMetrics | None) -> ServerState:
    """Put together what three answers say. Of several engines (data parallel) the one that holds least counts."""
    if metrics is None or not metrics.cache:
        return ServerState(version=version, max_model_len=model.max_model_len)
    engine = min(metrics.cache, key=lambda cache: cache.kv_cache_size_tokens or 0)
    return ServerState(
        version=version,
        max_model_len=model.max_model_len,
        kv_capacity_tokens=engine.kv_cache_size_tokens,
        max_concurrency=engine.kv_cache_max_concurrency,
        block_size=engine.block_size,
        num_blocks=engine.num_gpu_blocks,
        kv_cache_dtype=engine.cache_dtype,
    )
