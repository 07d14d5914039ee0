"""Addresses as people paste them, keys as environments hold them."""

import pytest

from longreach.errors import UsageError
from longreach.measure.endpoint import parse_root, read_endpoint


@pytest.mark.parametrize(
    ("url", "root"),
    [
        ("http://localhost:8000", "http://localhost:8000"),
        ("http://localhost:8000/", "http://localhost:8000"),
        ("http://localhost:8000/v1/", "http://localhost:8000"),
        ("https://api.example.com/openai/v1/chat/completions?x=1", "https://api.example.com/openai"),
        ("127.0.0.1:8000", "http://127.0.0.1:8000"),
        ("http://[::1]:8000/v1", "http://[::1]:8000"),
    ],
)
def test_root_is_found_in_any_spelling(url: str, root: str) -> None:
    assert parse_root(url) == root


@pytest.mark.parametrize("url", ["ftp://host", "http://", "http://host:99999", "", "http://host:x"])
def test_what_is_no_address_is_refused(url: str) -> None:
    with pytest.raises(UsageError, match="is not the address of a server"):
        parse_root(url)


def test_credentials_in_an_address_are_refused_and_not_repeated() -> None:
    with pytest.raises(UsageError) as caught:
        parse_root("http://user:hunter2@host:1")
    assert "hunter2" not in str(caught.value)


def test_key_comes_from_the_named_variable_and_is_never_shown(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SOME_KEY", "sk-secret")
    endpoint = read_endpoint("http://h:1", "SOME_KEY")
    assert endpoint.headers == {"Authorization": "Bearer sk-secret"}
    assert "sk-secret" not in repr(endpoint)
    assert read_endpoint("http://h:1").headers == {}


def test_unset_variable_is_a_usage_error(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("SOME_KEY", raising=False)
    with pytest.raises(UsageError, match="'SOME_KEY' is not set"):
        read_endpoint("http://h:1", "SOME_KEY")


@pytest.mark.parametrize(
    ("name", "held", "what"),
    [
        ("SOME_KEY", "sk-sec\nret", "holds no key"),
        ("SOME_KEY", " \r\n", "is not set"),
        ("sk-secret-1", "", "a name that none can have"),
    ],
    ids=["two lines", "blank", "the key itself"],
)
def test_what_holds_no_key_is_refused_and_not_repeated(
    monkeypatch: pytest.MonkeyPatch, name: str, held: str, what: str
) -> None:
    monkeypatch.setenv("SOME_KEY", held)
    with pytest.raises(UsageError, match=what) as caught:
        read_endpoint("http://h:1", name)
    assert "sk-sec" not in str(caught.value)


def test_a_line_end_after_the_key_is_not_part_of_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SOME_KEY", "sk-secret\r\n")
    assert read_endpoint("http://h:1", "SOME_KEY").headers == {"Authorization": "Bearer sk-secret"}
