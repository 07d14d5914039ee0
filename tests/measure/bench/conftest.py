import socket

import pytest


@pytest.fixture
def unused_tcp_port_url() -> str:
    """An address where nothing answers."""
    with socket.create_server(("127.0.0.1", 0)) as probe:
        return f"http://127.0.0.1:{probe.getsockname()[1]}"
