"""Request bodies, and the answers to the small questions: which models, how many tokens, which version."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import orjson

from longreach.errors import ServerError, UsageError
from longreach.wire.documents import parse_json
from longreach.wire.refusals import parse_error_body

ExtraFields = Mapping[str, object]
"""Sampling parameters and other body fields passed through as they are (`temperature`, `chat_template_kwargs`, ...)."""

_MAX_QUOTED = 200  # characters
_NO_LENGTH = 2**53  # tokens
_OURS = frozenset(
    {"model", "messages", "prompt", "stream", "stream_options", "max_tokens", "max_completion_tokens", "n"}
)


@dataclass(frozen=True, slots=True)
class ServedModel:
    """One entry of `/v1/models`; `max_model_len` is vLLM's addition, in tokens."""

    model_id: str
    max_model_len: int | None
    root: str | None = None


def check_extra_fields(extra: ExtraFields) -> None:
    """UsageError when a passed-through field is one that the request sets itself, or is not to be written as JSON."""
    clash = sorted(_OURS & set(extra))
    if clash:
        raise UsageError(
            f"sampling field '{clash[0]}' cannot be passed through",
            "the request sets it itself: length, streaming and the number of answers are part of what is measured",
            f"leave {', '.join(repr(name) for name in clash)} out",
        )
    try:
        orjson.dumps(extra)
    except TypeError as error:
        raise UsageError("the sampling fields cannot be sent", str(error), "use whole numbers of 64 bits") from error


def render_chat_body(model: str, text: str, max_tokens: int, extra: ExtraFields) -> bytes:
    """A streamed chat request with `text` as its only message, as JSON bytes."""
    return _render(model, {"messages": [{"role": "user", "content": text}]}, max_tokens, extra)


def render_completion_body(model: str, prompt: str | Sequence[int], max_tokens: int, extra: ExtraFields) -> bytes:
    """A streamed completion request; a prompt of token ids reaches the model as it is, without any template."""
    return _render(model, {"prompt": prompt if isinstance(prompt, str) else list(prompt)}, max_tokens, extra)


def _render(model: str, prompt: Mapping[str, object], max_tokens: int, extra: ExtraFields) -> bytes:
    check_extra_fields(extra)
    body = {
        "model": model,
        **prompt,
        "max_tokens": max_tokens,
        "stream": True,
        "stream_options": {"include_usage": True},
        **extra,
    }
    return orjson.dumps(body)  # of a million tokens in 30 ms; the event loop waits for it


def parse_models(body: bytes) -> tuple[ServedModel, ...]:
    """The answer of `/v1/models`. ServerError when it is something else."""
    entries = _object(body, "/v1/models").get("data")
    if not isinstance(entries, list):
        raise _unexpected("/v1/models", "it holds no list 'data'")
    return tuple(_served_model(entry) for entry in entries if isinstance(entry, Mapping))


def _served_model(entry: Mapping[str, object]) -> ServedModel:
    length, root = entry.get("max_model_len"), entry.get("root")
    return ServedModel(
        model_id=str(entry.get("id")),
        max_model_len=length if isinstance(length, int) and 0 < length < _NO_LENGTH else None,
        root=root if isinstance(root, str) else None,
    )


def parse_version(body: bytes) -> str:
    """The answer of vLLM's `/version`: `0.32.0`. ServerError when it is something else."""
    version = _object(body, "/version").get("version")
    if not isinstance(version, str):
        raise _unexpected("/version", "it holds no 'version'")
    return version


def parse_token_ids(body: bytes) -> tuple[int, ...]:
    """The answer of vLLM's `/tokenize`. ServerError when it is something else."""
    tokens = _object(body, "/tokenize").get("tokens")
    if not isinstance(tokens, list) or not all(isinstance(token, int) for token in tokens):
        raise _unexpected("/tokenize", "it holds no list of token ids")
    return tuple(tokens)


def _object(body: bytes, path: str) -> Mapping[str, object]:
    try:
        parsed = parse_json(body)
    except ValueError as error:
        said = parse_error_body(body).message[:_MAX_QUOTED]
        raise _unexpected(path, f"it is not JSON but: {said}" if said else "it is empty") from error
    if not isinstance(parsed, Mapping):
        raise _unexpected(path, f"it is a {type(parsed).__name__}, not an object")
    return parsed


def _unexpected(path: str, why: str) -> ServerError:
    return ServerError(f"the server's answer to {path} is not understood", why, "check that the address is vLLM's")
