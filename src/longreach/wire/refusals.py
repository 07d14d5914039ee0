"""Why a server said no: the text inside an error body, in any of the shapes that servers use."""

import html
import json
import re
from collections.abc import Mapping
from dataclasses import dataclass

from longreach.wire.documents import parse_json

_MAX_TEXT = 4000  # characters kept of what a server says


@dataclass(frozen=True, slots=True)
class ApiError:
    """An error as the server words it. `param` is the request field that it blames (vLLM: `input_tokens`)."""

    message: str
    kind: str | None = None  # "BadRequestError", "invalid_request_error", ...
    code: str | None = None
    param: str | None = None

    def __post_init__(self) -> None:
        """No more of each text than people read: it goes into results, logs and pages."""
        for name in ("message", "kind", "code", "param"):
            text = getattr(self, name)
            if text is not None and len(text) > _MAX_TEXT:
                object.__setattr__(self, name, text[:_MAX_TEXT])


def parse_error_object(body: Mapping[str, object]) -> ApiError | None:
    """The error in a JSON object, or None when it holds none.

    Known shapes: OpenAI and vLLM since 0.11 `{"error": {"message", "type", "param", "code"}}`, `{"error": "text"}`,
    older vLLM `{"object": "error", "message", ...}`, Starlette `{"detail": "text" | [{"loc", "msg"}, ...]}`.
    """
    inner = body.get("error")
    if isinstance(inner, Mapping):
        return _from_fields(inner)
    if isinstance(inner, str) and inner:
        return ApiError(message=inner)
    if body.get("object") == "error":
        return _from_fields(body)
    detail = body.get("detail")
    if isinstance(detail, str):
        return ApiError(message=detail)
    if isinstance(detail, list):
        return ApiError(message="; ".join(_validation_text(entry) for entry in detail))
    return None


def _from_fields(fields: Mapping[str, object]) -> ApiError:
    message = fields.get("message")
    return ApiError(
        message=message if isinstance(message, str) and message else json.dumps(fields),
        kind=_optional_text(fields.get("type")),
        code=_optional_text(fields.get("code")),
        param=_optional_text(fields.get("param")),
    )


def _optional_text(value: object) -> str | None:
    return None if value is None else str(value)


def _validation_text(entry: object) -> str:
    if not isinstance(entry, Mapping):
        return str(entry)
    location = entry.get("loc")
    place = ".".join(str(part) for part in location) if isinstance(location, list) else ""
    return f"{place}: {entry.get('msg')}" if place else str(entry.get("msg"))


def parse_error_body(body: bytes, content_type: str = "") -> ApiError:
    """The reason in the body of a 4xx or 5xx answer. Never fails: text that is no error object is the message itself,
    an HTML page is reduced to its words, and an empty body gives an empty message.
    """
    text = body.decode("utf-8", errors="replace").strip()
    try:
        parsed = parse_json(text)
    except ValueError:
        parsed = None
    if isinstance(parsed, Mapping):
        found = parse_error_object(parsed)
        if found is not None:
            return found
        message = parsed.get("message")
        return ApiError(message=message if isinstance(message, str) else text)
    if "html" in content_type.lower() or text[:15].lower().startswith(("<!doctype", "<html")):
        text = _visible_text(text)
    return ApiError(message=text)


def _visible_text(page: str) -> str:
    """The words of an HTML page: what a reader would see, on one line."""
    page = re.sub(r"(?is)<(script|style|head)\b.*?</\1\s*>", lambda match: _title(match[0]), page)
    words = re.sub(r"(?s)<[^>]*>", " ", page)
    return " ".join(html.unescape(words).split())


def _title(head: str) -> str:
    title = re.search(r"(?is)<title[^>]*>(.*?)</title\s*>", head)
    return f"{title[1]} " if title else " "
