"""Who answers at the target. Servers that are not vLLM tell little, and are measured all the same."""

from dataclasses import dataclass

from longreach.errors import ServerError
from longreach.measure.bench.settings import BenchTarget
from longreach.measure.client import Answer, Client
from longreach.measure.server_state import choose_model, fetch_server_state
from longreach.measure.verify_report import ServerState
from longreach.wire.bodies import ServedModel, parse_models

UNNAMED_MODEL = "(unknown)"
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


async def reach(client: Client, target: BenchTarget) -> Reached:
    """Ask who is there. ServerError when the server answers and this target is not to be had: another model, no key."""
    try:
        answer = await client.fetch("/v1/models")
    except ServerError as error:
        return Reached(target.model or UNNAMED_MODEL, ServerState(), error.why)
    model = _choose(answer, target.model)
    return Reached(model.model_id, await fetch_server_state(client, model))


def _choose(answer: Answer, wanted: str | None) -> ServedModel:
    if wanted is not None and answer.status != 200 and answer.status not in _LOCKED:
        return ServedModel(wanted, None)  # many servers have no list of models; the name will do
    try:
        return choose_model(parse_models(answer.require_ok()), wanted)
    except ServerError as error:
        if wanted is None and answer.status not in _LOCKED:
            raise ServerError(error.what, error.why, f"{error.fix}; or name the model: --model NAME") from error
        raise
