"""The Hub client against a small Hub on this machine, in a process of its own: it reads its settings when imported."""

import json
import os
import subprocess
import sys
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest
from tests.model.configs import QWEN3_8B

CONFIG = json.dumps(QWEN3_8B).encode()
COMMIT = "0123456789abcdef0123456789abcdef01234567"
ASK = """
import json, sys
from longreach.errors import LongreachError
from longreach.model.source import load_model

def ask(reference):
    try:
        model = load_model(reference)
    except LongreachError as error:
        return {"error": type(error).__name__, "what": error.what, "why": error.why, "fix": error.fix}
    return {"name": model.name, "hf_id": model.hf_id, "layers": len(model.layers), "bytes": model.weights.total_bytes}

print(json.dumps({reference: ask(reference) for reference in sys.argv[1:]}))
"""


class SmallHub(BaseHTTPRequestHandler):
    """Answers as the Hub does for `org/<case>`."""

    def do_GET(self) -> None:
        self._answer()

    def do_HEAD(self) -> None:
        self._answer()

    def log_message(self, format: str, *args: object) -> None:  # noqa: A002 (its name in the base class)
        pass

    def _answer(self) -> None:
        path, _, _ = self.path.partition("?")
        is_api = path.startswith("/api/models/")
        case = path.split("/")[4 if is_api else 2]
        refusals = {"missing": (404, "RepoNotFound"), "gated": (403, "GatedRepo")}
        if case in refusals:
            self._send(refusals[case][0], b"{}", {"X-Error-Code": refusals[case][1]})
        elif is_api and case == "mirror":
            self._send(501, b"{}", {})
        elif is_api:
            counts = {"parameters": {"BF16": 1000, "F32": 10}, "total": 1010}
            self._send(200, json.dumps({"id": f"org/{case}", "safetensors": counts}).encode(), {})
        elif case == "bare":
            self._send(404, b"", {"X-Error-Code": "EntryNotFound"})
        else:
            self._send(200, CONFIG, {"ETag": '"one"', "X-Repo-Commit": COMMIT})

    def _send(self, status: int, body: bytes, headers: dict[str, str]) -> None:
        self.send_response(status)
        for name, value in {**headers, "Content-Length": str(len(body)), "Content-Type": "application/json"}.items():
            self.send_header(name, value)
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(body)


@pytest.fixture(scope="module")
def endpoint() -> Iterator[str]:
    server = ThreadingHTTPServer(("127.0.0.1", 0), SmallHub)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    yield f"http://127.0.0.1:{server.server_port}"
    server.shutdown()
    server.server_close()


Answers = dict[str, dict[str, object]]


def _ask(home: Path, references: list[str], **settings: str) -> Answers:
    kept = {
        name: value for name, value in os.environ.items() if not name.startswith("HF_") and "proxy" not in name.lower()
    }
    run = subprocess.run(
        [sys.executable, "-c", ASK, *references],
        env={**kept, "HF_HOME": str(home), "HF_HUB_DISABLE_TELEMETRY": "1", **settings},
        capture_output=True,
        text=True,
        timeout=120,
        check=True,
    )
    found: Answers = json.loads(run.stdout)
    return found


@pytest.fixture(scope="module")
def online(endpoint: str, tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Answers]:
    home = tmp_path_factory.mktemp("hub")
    cases = ["org/plain", "org/mirror", "org/missing", "org/gated", "org/bare"]
    return home, _ask(home, cases, HF_ENDPOINT=endpoint)


def test_a_hub_model_is_read_with_the_bytes_the_hub_counts(online: tuple[Path, Answers]) -> None:
    assert online[1]["org/plain"] == {"name": "org/plain", "hf_id": "org/plain", "layers": 36, "bytes": 2040}


def test_a_mirror_without_the_api_still_gives_the_config(online: tuple[Path, Answers]) -> None:
    assert online[1]["org/mirror"] == {"name": "org/mirror", "hf_id": "org/mirror", "layers": 36, "bytes": None}


@pytest.mark.parametrize(
    ("case", "error", "what", "fix"),
    [
        ("org/missing", "UsageError", "no model 'org/missing' on the Hub", "HF_TOKEN"),
        ("org/gated", "ServerError", "'org/gated' is gated on the Hub", "HF_TOKEN"),
        ("org/bare", "InputFileError", "'org/bare' has no config.json", "full model"),
    ],
)
def test_each_refusal_of_the_hub_says_what_to_do(
    online: tuple[Path, Answers], case: str, error: str, what: str, fix: str
) -> None:
    answer = online[1][case]
    assert (answer["error"], answer["what"]) == (error, what)
    assert fix in str(answer["fix"])


def test_offline_the_cache_answers_and_the_rest_says_what_to_do(online: tuple[Path, Answers]) -> None:
    answers = _ask(online[0], ["org/plain", "org/qwen3-33b"], HF_HUB_OFFLINE="1")
    assert answers["org/plain"]["layers"] == 36
    refused = answers["org/qwen3-33b"]
    assert (refused["error"], refused["what"]) == ("ServerError", "cannot reach the Hub for 'org/qwen3-33b'")
    assert "HF_HUB_OFFLINE" in str(refused["fix"])
    assert "qwen3-32b" in str(refused["fix"])
