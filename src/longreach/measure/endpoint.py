"""Where a server is and who we are to it."""

import os
import re
from dataclasses import dataclass, field
from urllib.parse import urlsplit, urlunsplit

from longreach.errors import UsageError

_SHORTEST_SECRET = 4  # bytes; "EMPTY" and the like may be hidden, a lone letter would be found in every word


@dataclass(frozen=True, slots=True)
class Endpoint:
    """An OpenAI-compatible server. `root` is the address that `/v1`, `/metrics` and `/version` hang from."""

    root: str
    api_key: str | None = field(default=None, repr=False)

    @property
    def headers(self) -> dict[str, str]:
        """What every request carries."""
        return {} if self.api_key is None else {"Authorization": f"Bearer {self.api_key}"}

    def hide_key(self, said: bytes) -> bytes:
        """A server's words without our key, should they quote it."""
        key = (self.api_key or "").encode()
        return said.replace(key, b"***") if len(key) >= _SHORTEST_SECRET else said


def parse_root(url: str) -> str:
    """`http://host:8000` out of what people paste: with or without `/v1`, a slash or the whole path of a call.

    UsageError for anything that is not http or https, and for credentials in the address.
    """
    text = url.strip()
    parts = urlsplit(text if "://" in text else f"http://{text}")
    try:
        usable = parts.scheme in {"http", "https"} and bool(parts.hostname) and (parts.port or 1) > 0
    except ValueError:
        usable = False
    if not usable:
        raise UsageError(f"'{url}' is not the address of a server", "it has no usable host or port", "http://HOST:PORT")
    if parts.username is not None or parts.password is not None:
        raise UsageError(
            f"the address of '{parts.hostname}' holds credentials",
            "an address is printed in reports, a secret must not be",
            "put the key into an environment variable and name it with --api-key-env",
        )
    path = parts.path.partition("/v1")[0].rstrip("/")
    return urlunsplit((parts.scheme, parts.netloc, path, "", ""))


def read_endpoint(url: str, api_key_env: str | None = None) -> Endpoint:
    """The endpoint, its key taken from the environment variable named `api_key_env`; UsageError when that is not set."""
    return Endpoint(parse_root(url), None if api_key_env is None else _read_key(api_key_env))


def _read_key(name: str) -> str:
    if re.fullmatch(r"[A-Za-z_]\w*", name) is None:  # it may be the key: not to be repeated
        raise UsageError(
            "the API key's variable has a name that none can have",
            "a name is wanted there, not the key: everybody on this machine can read a command line",
            "export API_KEY=..., and --api-key-env API_KEY",
        )
    key = os.environ.get(name, "").strip()
    if not key:
        raise UsageError(
            f"environment variable '{name}' is not set",
            "the server's API key is read from there, never from the command line",
            f"export {name}=...",
        )
    if not key.isprintable():
        raise UsageError(
            f"environment variable '{name}' holds no key",
            "there are line ends or control characters in it",
            f"export {name}=...",
        )
    return key
