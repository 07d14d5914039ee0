"""Where a server listens and where a client on this machine finds it. Pure."""

_LOOPBACK_FOR = {"": "127.0.0.1", "0.0.0.0": "127.0.0.1", "::": "::1"}  # noqa: S104 - read, not bound


def connect_host(host: str) -> str:
    """`127.0.0.1` for `0.0.0.0`, `::1` for `::`: a wildcard is listened on, not connected to. Anything else as it is."""
    bare = host.strip("[]")
    return _LOOPBACK_FOR.get(bare, bare)


def is_local(host: str) -> bool:
    """Whether only this machine reaches a server on that address."""
    bare = host.strip("[]").lower()
    return bare in ("localhost", "::1") or bare.startswith("127.")


def base_url(host: str, port: int) -> str:
    """The URL that reaches a server which listens on `host`."""
    reachable = connect_host(host)
    return f"http://[{reachable}]:{port}" if ":" in reachable else f"http://{reachable}:{port}"
