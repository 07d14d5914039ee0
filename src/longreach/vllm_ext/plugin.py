"""A vLLM general plugin: on the CPU platform the engine's own names for offloading specs lead to ours.

So the same --kv-transfer-config works on a CPU and on a GPU box. vLLM calls `register` at the start of each of its processes,
whether or not anything is offloaded: nothing here may fail for an engine without an offload connector.
"""

from functools import partial
from importlib import import_module

from vllm.platforms import current_platform
from vllm.v1.kv_offload.base import OffloadingSpec
from vllm.v1.kv_offload.factory import OffloadingSpecFactory

from longreach.vllm_ext.refusal import check_release

_OURS = {
    "CPUOffloadingSpec": "CPUOffloadingSpecOnCpu",
    "TieringOffloadingSpec": "TieringOffloadingSpecOnCpu",
}


def register() -> None:
    """Put our specs under the engine's names. Repeating it changes nothing."""
    if not current_platform.is_cpu():
        return
    for name, class_name in _OURS.items():
        # register_spec refuses a name that is taken, and the engine's own registration took these
        OffloadingSpecFactory._registry[name] = partial(_load, class_name)  # noqa: SLF001


def _load(class_name: str) -> type[OffloadingSpec]:
    check_release()
    spec: type[OffloadingSpec] = getattr(import_module("longreach.vllm_ext.specs"), class_name)
    return spec
