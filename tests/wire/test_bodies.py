"""Requests as bytes, small answers as values."""

import json

import pytest

from longreach.errors import ServerError, UsageError
from longreach.wire.bodies import (
    ServedModel,
    check_extra_fields,
    parse_models,
    parse_token_ids,
    parse_version,
    render_chat_body,
    render_completion_body,
)


def test_chat_request_streams_with_usage_and_passes_sampling_through() -> None:
    body = json.loads(render_chat_body("m", "hi", 5, {"temperature": 0, "chat_template_kwargs": {"x": True}}))
    assert body == {
        "model": "m",
        "messages": [{"role": "user", "content": "hi"}],
        "max_tokens": 5,
        "stream": True,
        "stream_options": {"include_usage": True},
        "temperature": 0,
        "chat_template_kwargs": {"x": True},
    }


@pytest.mark.parametrize("prompt", ["text", [1, 2, 3]], ids=["text", "token_ids"])
def test_completion_request_keeps_its_prompt(prompt: str | list[int]) -> None:
    assert json.loads(render_completion_body("m", prompt, 5, {}))["prompt"] == prompt


def test_fields_that_are_measured_cannot_be_overridden() -> None:
    with pytest.raises(UsageError, match="'max_tokens' cannot be passed through"):
        render_chat_body("m", "hi", 5, {"stream": False, "max_tokens": 7, "top_p": 1})


def test_a_number_that_no_server_can_read_is_refused_before_it_is_sent() -> None:
    with pytest.raises(UsageError, match="cannot be sent") as caught:
        check_extra_fields({"seed": 2**70})
    assert "64" in caught.value.why


def test_models_are_read_with_vllms_length() -> None:
    body = b'{"object":"list","data":[{"id":"a","max_model_len":750000,"root":"/m"},{"id":"b"}]}'
    assert parse_models(body) == (ServedModel("a", 750_000, "/m"), ServedModel("b", None))


def test_version_and_token_ids_are_read() -> None:
    assert parse_version(b'{"version":"0.32.0+cpu"}') == "0.32.0+cpu"
    assert parse_token_ids(b'{"count":2,"max_model_len":9,"tokens":[5,6]}') == (5, 6)


@pytest.mark.parametrize("body", [b"<html>", b"[]", b"{}"], ids=["html", "list", "empty"])
def test_unexpected_answer_is_a_server_error(body: bytes) -> None:
    for parse in (parse_models, parse_version, parse_token_ids):
        with pytest.raises(ServerError, match="is not understood"):
            parse(body)


@pytest.mark.parametrize(
    ("body", "words"),
    [
        (b"<html><title>Welcome</title><h1>nginx</h1></html>", "it is not JSON but: Welcome nginx"),
        (b"[" * 100_000, "it is not JSON but: [["),
        (b"", "it is empty"),
        (b"[1]", "it is a list, not an object"),
    ],
    ids=["web page", "bottomless", "empty", "list"],
)
def test_an_answer_of_something_else_is_quoted(body: bytes, words: str) -> None:
    with pytest.raises(ServerError) as caught:
        parse_models(body)
    assert caught.value.why.startswith(words)
    assert len(caught.value.why) < 300
