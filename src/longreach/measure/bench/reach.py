"""Who answers at the target. Servers that are not vLLM tell little, and are measured all the same."""

from dataclasses import dataclass

from longreach.errors import ServerError
from longreach.measure.bench.settings import BenchTarget
from longreach.measure.client import Answer, Client
from longreach.measure.server_state import choose_model, fetch_server_state
from longreach.measure.verify_report import ServerState
from longreach.wire.bodies import ServedModel, parse_models

UNNAMED_MODEL = "(unknown)"
_NO_ANSWER = frozenset({"unreachable", "silent", "broken"})
_LOCKED = frozenset({401, 403})


@dataclass(frozen=True, slots=True)
class Reached:
    """The model under its served name, and what the server says of itself. `error` is why nothing answers there."""

    model: str
    state: ServerState
    error: str | None = None

    @property
    def is_vllm(self) -> bool:
        """It takes vLLM's own request fields."""
        return self.state.version is not None


def not_reached(target: BenchTarget, reason: str) -> Reached:
    """Nobody is there, for this reason."""
    return Reached(target.model or UNNAMED_MODEL, ServerState(), reason)


async def reach(client: Client, target: BenchTarget) -> Reached:
    """Ask who is there. ServerError when the server answers and this target is not to be had: another model, no key."""
    try:
        model = _choose(await client.fetch("/v1/models"), target.model)
    except ServerError as error:
        if error.cause not in _NO_ANSWER:
            raise
        if error.cause != "broken" or target.model is None:
            return not_reached(target, error.why)
        model = ServedModel(target.model, None)  # somebody is there, and breaks off what it does not know
    return Reached(model.model_id, await fetch_server_state(client, model))


def _choose(answer: Answer, wanted: str | None) -> ServedModel:
    try:
        served = parse_models(answer.require_ok())
    except ServerError as error:
        if answer.status in _LOCKED:
            raise
        if wanted is None:
            raise ServerError(error.what, error.why, f"{error.fix}; or name the model: --model NAME") from error
        served = ()
    if not served and wanted is not None:
        return ServedModel(wanted, None)  # many servers have no list of models; the name will do
    return choose_model(served, wanted)
