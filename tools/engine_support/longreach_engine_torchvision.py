"""Runs at every start of the CPU engine's Python: lets a CUDA build of torchvision be imported beside a CPU torch.

The package index holds torchvision built for CUDA only. Its compiled operators need CUDA libraries, so they do not load,
and its Python part then fails to import ("operator torchvision::nms does not exist"). The engine needs only the Python
part (image resizing for the vision models' processors). Declaring the two operators that it describes at import is
enough; calling them still fails, as it should. A torchvision whose operators do load is left alone.
"""

import os
import sys
from collections.abc import Sequence
from importlib.abc import MetaPathFinder
from importlib.machinery import ModuleSpec, PathFinder
from types import ModuleType


class _OperatorsBeforeTorchvision(MetaPathFinder):
    """Declares the operators just before torchvision is first imported, then steps aside."""

    def __init__(self) -> None:
        self._declared: object = None  # torch forgets a library's declarations when the object goes

    def find_spec(
        self, fullname: str, path: Sequence[str] | None = None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        if fullname != "torchvision" or self._declared is not None:
            return None
        spec = PathFinder.find_spec(fullname, path, target)
        if spec is not None and spec.origin is not None:
            self._declared = _declare_missing_operators(os.path.join(os.path.dirname(spec.origin), "_C.so"))  # noqa: PTH118, PTH120 - pathlib at each interpreter start costs more
        return spec


def _declare_missing_operators(compiled: str) -> object:
    import torch

    try:
        torch.ops.load_library(compiled)
    except OSError:
        library = torch.library.Library("torchvision", "DEF")
        library.define("nms(Tensor dets, Tensor scores, float iou_threshold) -> Tensor")
        library.define("qnms(Tensor dets, Tensor scores, float iou_threshold) -> Tensor")
        return library
    return torch.ops


sys.meta_path.insert(0, _OperatorsBeforeTorchvision())
