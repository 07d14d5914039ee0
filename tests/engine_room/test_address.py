import pytest

from longreach.engine.address import base_url, is_local


@pytest.mark.parametrize(
    ("host", "url"),
    [
        ("127.0.0.1", "http://127.0.0.1:8000"),
        ("0.0.0.0", "http://127.0.0.1:8000"),
        ("::", "http://[::1]:8000"),
        ("[::1]", "http://[::1]:8000"),
        ("box.lan", "http://box.lan:8000"),
    ],
)
def test_a_client_finds_the_server_however_it_listens(host: str, url: str) -> None:
    assert base_url(host, 8000) == url


@pytest.mark.parametrize(
    ("host", "local"),
    [
        ("127.0.0.1", True),
        ("127.8.8.8", True),
        ("localhost", True),
        ("[::1]", True),
        ("0.0.0.0", False),
        ("::", False),
        ("box", False),
    ],
)
def test_only_loopback_addresses_are_local(host: str, local: bool) -> None:
    assert is_local(host) is local
