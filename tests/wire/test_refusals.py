"""The reason inside an error body, in the shapes that servers use."""

import pytest

from longreach.wire.refusals import ApiError, parse_error_body

TOO_LONG = (
    b'{"error":{"message":"This model\'s maximum context length is 8192 tokens.","type":"BadRequestError",'
    b'"param":"input_tokens","code":400}}'
)
BODIES = {
    "vllm": (
        TOO_LONG,
        ApiError("This model's maximum context length is 8192 tokens.", "BadRequestError", "400", "input_tokens"),
    ),
    "old_vllm": (
        b'{"object":"error","message":"too long","type":"BadRequestError","param":null,"code":400}',
        ApiError("too long", "BadRequestError", "400"),
    ),
    "error_as_text": (b'{"error":"Unauthorized"}', ApiError("Unauthorized")),
    "error_without_message": (b'{"error":{"type":"busy"}}', ApiError('{"type": "busy"}', "busy")),
    "detail_text": (b'{"detail":"Not Found"}', ApiError("Not Found")),
    "detail_list": (
        b'{"detail":[{"loc":["body","max_tokens"],"msg":"must be positive"},"other",{"msg":"bare"}]}',
        ApiError("body.max_tokens: must be positive; other; bare"),
    ),
    "message_only": (b'{"message":"no Route matched"}', ApiError("no Route matched")),
    "unknown_object": (b'{"status":"bad"}', ApiError('{"status":"bad"}')),
    "plain_text": (b"upstream connect error\n", ApiError("upstream connect error")),
    "json_text": (b'"nope"', ApiError('"nope"')),
    "empty": (b"", ApiError("")),
    "html": (
        (
            b"<!DOCTYPE html><html><head><title>502 Bad Gateway</title><style>p{}</style></head>"
            b"<body><h1>Bad &amp; broken</h1>\n<script>1</script></body></html>"
        ),
        ApiError("502 Bad Gateway Bad & broken"),
    ),
}


@pytest.mark.parametrize(("body", "error"), BODIES.values(), ids=BODIES.keys())
def test_reason_is_found_in_every_shape(body: bytes, error: ApiError) -> None:
    assert parse_error_body(body) == error


def test_html_is_told_by_its_content_type() -> None:
    assert parse_error_body(b"<p>no <b>way</b></p>", "text/HTML; charset=utf-8").message == "no way"


@pytest.mark.parametrize(
    "body",
    [
        "%s",
        '{"message": "%s"}',
        '{"error": "%s"}',
        '{"error": {"message": "%s"}}',
        '{"error": {"reason": "%s"}}',
        '{"detail": "%s"}',
        '{"detail": [{"msg": "%s"}]}',
    ],
)
def test_whatever_a_server_says_is_cut(body: str) -> None:
    assert len(parse_error_body((body % ("x" * 100_000)).encode()).message) == 4000
    assert ApiError("no", "k" * 5000, None, "p" * 5000) == ApiError("no", "k" * 4000, None, "p" * 4000)


def test_a_body_that_nests_without_end_is_its_own_message() -> None:
    assert parse_error_body(b"[" * 100_000).message == "[" * 4000
