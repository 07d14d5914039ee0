"""Where a server is and who we are to it."""

import os
from dataclasses import dataclass, field
from urllib.parse import urlsplit, urlunsplit

from longreach.errors import UsageError


@dataclass(frozen=True, slots=True)
class Endpoint:
    """An OpenAI-compatible server. `root` is the address that `/v1`, `/metrics` and `/version` hang from."""

    root: str
    api_key: str | None = field(default=None, repr=False)

    @property
    def headers(self) -> dict[str, str]:
        """What every request carries."""
        return {} if self.api_key is None else {"Authorization": f"Bearer {self.api_key}"}


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
    key = os.environ.get(api_key_env) if api_key_env else None
    if api_key_env and not key:
        raise UsageError(
            f"environment variable '{api_key_env}' is not set",
            "the server's API key is read from there, never from the command line",
            f"export {api_key_env}=...",
        )
    return Endpoint(parse_root(url), key)
