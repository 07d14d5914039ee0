import os
import socket

import pytest

from longreach.errors import UsageError
from longreach.host.ports import PortHolder, port_is_free, read_port_holders


def test_a_listened_port_is_not_free_and_its_holder_is_named() -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]
        assert not port_is_free("127.0.0.1", port)
        assert [holder.pid for holder in read_port_holders(port)] == [os.getpid()]
    assert port_is_free("127.0.0.1", port)
    assert read_port_holders(port) == ()


def test_a_foreign_address_is_wrong_usage() -> None:
    with pytest.raises(UsageError, match=r"cannot listen on 192\.0\.2\.1:8000"):
        port_is_free("192.0.2.1", 8000)


def test_an_unreadable_holder_is_said_to_be_so() -> None:
    assert str(PortHolder(None, None)) == "a process of another user"
    assert str(PortHolder(7, "nginx")) == "pid 7 (nginx)"
