"""Small bounded GETs to an engine on this machine. Proxies of the environment are not asked: it is this machine."""

import http.client
from dataclasses import dataclass

_LIMIT_BYTES = 16 * 2**20


@dataclass(frozen=True, slots=True)
class HttpAnswer:
    """Status and text of an answer."""

    status: int
    text: str


def fetch(host: str, port: int, path: str, timeout_s: float) -> HttpAnswer | None:
    """GET `path`; None when nobody answers in time or the answer is not HTTP."""
    connection = http.client.HTTPConnection(host, port, timeout=timeout_s)
    try:
        connection.request("GET", path, headers={"Connection": "close"})
        response = connection.getresponse()
        return HttpAnswer(response.status, response.read(_LIMIT_BYTES).decode("utf-8", "replace"))
    except (OSError, http.client.HTTPException):
        return None
    finally:
        connection.close()


def is_healthy(host: str, port: int, timeout_s: float) -> bool:
    """Whether `/health` answers 200: vLLM does so from the end of its start until its engine core dies."""
    answer = fetch(host, port, "/health", timeout_s)
    return answer is not None and answer.status == http.client.OK
