"""The chunks of an OpenAI-compatible stream as values: `/v1/chat/completions` and `/v1/completions`.

One shape serves both: a completion's `text` is a choice's `content`. The reasoning text has had two names in vLLM,
`reasoning_content` first and `reasoning` since; either is read.
"""

from collections.abc import Mapping
from dataclasses import dataclass

from longreach.errors import ServerError
from longreach.wire.documents import parse_json
from longreach.wire.refusals import ApiError, parse_error_object
from longreach.wire.sse import SseEvent

_NO_COUNT = 10**15  # tokens; what a server counts beyond it, or below zero, is no count


@dataclass(frozen=True, slots=True)
class ToolCallDelta:
    """A piece of one tool call; the name comes once, the arguments in pieces."""

    index: int
    call_id: str | None
    name: str | None
    arguments: str


@dataclass(slots=True)  # not frozen: every streamed token makes one, and freezing takes four times as long
class ChoiceDelta:
    """What one chunk adds to one choice."""

    index: int = 0
    role: str | None = None
    content: str = ""
    reasoning: str = ""
    tool_calls: tuple[ToolCallDelta, ...] = ()
    finish_reason: str | None = None

    @property
    def carries_token(self) -> bool:
        """Something was generated. A chunk that only names the role, or is empty, is not a token."""
        return bool(self.content or self.reasoning or self.tool_calls)


@dataclass(frozen=True, slots=True)
class Usage:
    """The server's own count, in tokens. None where it does not say.

    `cached_tokens` is the part of the prompt that came from a prefix cache; vLLM sends it with
    `--enable-prompt-tokens-details` only.
    """

    prompt_tokens: int
    completion_tokens: int | None
    cached_tokens: int | None = None
    reasoning_tokens: int | None = None


@dataclass(slots=True)  # as above
class StreamChunk:
    """One event of a stream. Usage comes in a last chunk without choices; an error may come after HTTP 200."""

    choices: tuple[ChoiceDelta, ...] = ()
    usage: Usage | None = None
    error: ApiError | None = None
    model: str | None = None


@dataclass(frozen=True, slots=True)
class StreamDone:
    """`data: [DONE]`."""


def parse_stream_event(event: SseEvent) -> StreamChunk | StreamDone:
    """Read one event. ServerError when it is not JSON of the shape that the API promises."""
    text = event.data.strip()
    if text == "[DONE]":
        return StreamDone()
    try:
        body = parse_json(text)
    except ValueError as error:
        if event.event == "error":
            return StreamChunk(error=ApiError(message=text))
        raise _not_a_chunk(text, f"it is not JSON: {error}") from error
    if not isinstance(body, dict):
        raise _not_a_chunk(text, f"a JSON object was expected, not {type(body).__name__}")
    if event.event or "error" in body or "choices" not in body:
        failure = parse_error_object(body) or (ApiError(message=text) if event.event == "error" else None)
        if failure is not None:
            return StreamChunk(error=failure)
    try:
        return _parse_chunk(body)
    except (AttributeError, KeyError, TypeError, ValueError) as error:
        raise _not_a_chunk(text, f"a field is missing or of the wrong type: {error!r}") from error


def _not_a_chunk(text: str, why: str) -> ServerError:
    shown = text if len(text) <= 200 else text[:200] + "..."
    return ServerError(
        f"the stream holds an event that is no completion chunk: {shown}",
        why,
        "check that the address serves an OpenAI-compatible API",
    )


def _parse_chunk(body: dict[str, object]) -> StreamChunk:
    choices = body.get("choices") or []
    usage = body.get("usage")
    model = body.get("model")
    if not isinstance(choices, list):
        raise TypeError("choices is not a list")
    return StreamChunk(
        tuple([_parse_choice(choice) for choice in choices]),
        parse_usage(usage) if isinstance(usage, dict) else None,
        None,
        model if isinstance(model, str) else None,
    )


def _parse_choice(choice: dict[str, object]) -> ChoiceDelta:
    delta = choice.get("delta")
    finish_reason = _text(choice.get("finish_reason"))
    index = _count(choice.get("index")) or 0
    if not isinstance(delta, dict):
        return ChoiceDelta(index, None, _text(choice.get("text")) or "", "", (), finish_reason)
    tool_calls = delta.get("tool_calls") or []
    if not isinstance(tool_calls, list):
        raise TypeError("tool_calls is not a list")
    return ChoiceDelta(
        index,
        _text(delta.get("role")),
        _text(delta.get("content")) or "",
        _text(delta.get("reasoning")) or _text(delta.get("reasoning_content")) or "",
        tuple([_parse_tool_call(call) for call in tool_calls]) if tool_calls else (),
        finish_reason,
    )


def _parse_tool_call(call: Mapping[str, object]) -> ToolCallDelta:
    function = call.get("function")
    function = function if isinstance(function, Mapping) else {}
    return ToolCallDelta(
        index=_count(call.get("index")) or 0,
        call_id=_text(call.get("id")),
        name=_text(function.get("name")),
        arguments=_text(function.get("arguments")) or "",
    )


def parse_usage(usage: Mapping[str, object]) -> Usage | None:
    """The `usage` object of a chunk or a whole answer; None when it does not count the prompt. TypeError for counts that
    are no numbers.
    """
    prompt_tokens = _count(usage.get("prompt_tokens"))
    if prompt_tokens is None:
        return None
    return Usage(
        prompt_tokens=prompt_tokens,
        completion_tokens=_count(usage.get("completion_tokens")),
        cached_tokens=_detail(usage, "prompt_tokens_details", "cached_tokens"),
        reasoning_tokens=_detail(usage, "completion_tokens_details", "reasoning_tokens"),
    )


def _detail(usage: Mapping[str, object], group: str, key: str) -> int | None:
    details = usage.get(group)
    return _count(details.get(key)) if isinstance(details, Mapping) else None


def _text(value: object) -> str | None:
    if value is None or isinstance(value, str):
        return value
    raise TypeError(f"text was expected, not {value!r}")


def _count(value: object) -> int | None:
    """None also for what can be no count of tokens."""
    if (
        isinstance(value, float) and value.is_integer()
    ):  # JSON does not tell 100 from 100.0, and some servers write this
        value = int(value)
    if value is None:
        return None
    if isinstance(value, int) and not isinstance(value, bool):
        return value if 0 <= value < _NO_COUNT else None
    raise TypeError(f"a whole number was expected, not {value!r}")
