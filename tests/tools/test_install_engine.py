import subprocess

import pytest
from tools.install_engine import explain


@pytest.mark.parametrize(
    ("stderr", "fix"),
    [
        ("error: No solution found\n  cause: there is no version of torch==2.13.0+cpu", "LONGREACH_ENGINE_INDEX="),
        ("error: Failed to fetch\n  cause: dns error", "see the lines above"),
        ("", "see the lines above"),
    ],
    ids=["no CPU torch", "no network", "silent"],
)
def test_failed_installation_says_what_why_and_how_to_go_on(stderr: str, fix: str) -> None:
    text = explain(subprocess.CalledProcessError(2, ["uv"], stderr=stderr))
    what, _, rest = text.partition("\n  why: ")
    why, _, last = rest.partition("\n  fix: ")
    assert what == "error: the CPU engine cannot be installed"
    assert all(line.strip() in why for line in stderr.splitlines() or ["ended with status 2"])
    assert fix in last
