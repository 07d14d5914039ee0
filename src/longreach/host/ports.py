"""Is a TCP port free, and who holds it."""

import errno
import socket
from dataclasses import dataclass

import psutil

from longreach.errors import UsageError


@dataclass(frozen=True, slots=True)
class PortHolder:
    """The process that listens. Both fields are None when the system does not tell (another user's process)."""

    pid: int | None
    command: str | None

    def __str__(self) -> str:
        if self.pid is None:
            return "a process of another user"
        return f"pid {self.pid}" + (f" ({self.command})" if self.command else "")


def port_is_free(host: str, port: int) -> bool:
    """Whether a server could listen on `host:port` now. UsageError when the address is not this machine's."""
    try:
        family, kind, protocol, _, address = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)[0]
        with socket.socket(family, kind, protocol) as probe:
            probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)  # as servers do: TIME_WAIT is no obstacle
            probe.bind(address)
    except OSError as error:
        if error.errno == errno.EADDRINUSE:
            return False
        why = error.strerror or str(error)
        fix = "use 127.0.0.1 or 0.0.0.0 and a port from 1024 to 65535"
        raise UsageError(f"cannot listen on {host}:{port}", why, fix) from error
    return True


def choose_free_port(host: str = "127.0.0.1") -> int:
    """A TCP port nobody listens on at this moment, chosen by the system."""
    with socket.socket(socket.AF_INET, socket.SOCK_STREAM) as probe:
        probe.bind((host, 0))
        return int(probe.getsockname()[1])


def read_port_holders(port: int) -> tuple[PortHolder, ...]:
    """Who listens on `port`, on any address of this machine; empty when nobody is seen to. Those with a pid come first."""
    try:
        connections = psutil.net_connections(kind="tcp")
    except (psutil.AccessDenied, OSError):
        return ()
    pids = {
        connection.pid
        for connection in connections
        if connection.status == psutil.CONN_LISTEN and connection.laddr and connection.laddr.port == port
    }
    known = tuple(PortHolder(pid, _read_command(pid)) for pid in sorted(pid for pid in pids if pid is not None))
    return (*known, PortHolder(None, None)) if None in pids else known


def _read_command(pid: int) -> str | None:
    try:
        return " ".join(psutil.Process(pid).cmdline())[:120] or None
    except psutil.Error:
        return None
