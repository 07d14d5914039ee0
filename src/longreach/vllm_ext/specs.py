"""The engine's offloading specs with another copy worker. Scheduler, eviction, tiers, metrics and log lines stay the engine's."""

from collections.abc import Callable

from longreach.vllm_ext.refusal import OffloadRefusedError, check_release

check_release()  # before the imports below, which fail in their own words where the internals differ

from vllm.v1.kv_offload.base import CanonicalKVCaches, OffloadingWorker  # noqa: E402 - see above
from vllm.v1.kv_offload.cpu.shared_offload_region import SharedOffloadRegion  # noqa: E402
from vllm.v1.kv_offload.cpu.spec import CPUOffloadingSpec, _all_workers_barrier  # noqa: E402
from vllm.v1.kv_offload.tiering.spec import TieringOffloadingSpec  # noqa: E402

from longreach.vllm_ext.worker import CpuCopyWorker  # noqa: E402


class TieringOffloadingSpecOnCpu(TieringOffloadingSpec):
    """CPU tier with secondary tiers. Their manager maps the region too, at a time of its own, so the file keeps its name."""

    def get_worker(self, kv_caches: CanonicalKVCaches) -> OffloadingWorker:
        """The copy worker of this rank, made once."""
        if self._worker is None:
            self._worker = _make_worker(self, kv_caches, barrier=None)
        return self._worker


class CPUOffloadingSpecOnCpu(CPUOffloadingSpec):
    """CPU tier alone, in the shared region that a CUDA GPU's worker uses; the file's name goes once all ranks have mapped it."""

    def _uses_shared_region(self) -> bool:
        return True

    def get_worker(self, kv_caches: CanonicalKVCaches) -> OffloadingWorker:
        """The copy worker of this rank, made once."""
        if self._worker is None:
            self._worker = _make_worker(self, kv_caches, barrier=_all_workers_barrier)
        return self._worker


def _make_worker(
    spec: CPUOffloadingSpec, kv_caches: CanonicalKVCaches, barrier: Callable[[], None] | None
) -> CpuCopyWorker:
    """Map the region where this rank's slot of each chunk is, and hand it over."""
    refuse_unsupported(spec, kv_caches)
    region = SharedOffloadRegion(
        engine_id=spec.config.engine_id,
        num_chunks=spec.num_chunks,
        rank=0 if spec.replicated_layout else spec.config.parallel.rank,  # a replicated latent rests once, in slot 0
        kv_bytes_per_chunk=spec.kv_bytes_per_chunk,
        cpu_page_size=spec.cpu_page_size_per_worker,
        barrier=barrier,
    )
    try:
        return CpuCopyWorker(kv_caches, spec.blocks_per_chunk, region)
    except Exception:  # any failure must release the region, which is a file; it is raised again
        region.cleanup()
        raise


def refuse_unsupported(spec: CPUOffloadingSpec, kv_caches: CanonicalKVCaches) -> None:
    """OffloadRefusedError for what the copy worker cannot do."""
    devices = {str(one.tensor.device) for one in kv_caches.tensors}
    if devices != {"cpu"}:
        raise OffloadRefusedError(
            f"the KV cache is on {', '.join(sorted(devices)) or 'no device'}",
            "this copy worker copies within host memory only",
            "on a GPU leave spec_module_path out: the engine has its own worker",
        )
    if spec.config.canonical_layout:
        raise OffloadRefusedError(
            "canonical_layout is not supported on the CPU engine",
            "the copy worker keeps each rank's pages as they are",
            "remove canonical_layout from kv_connector_extra_config",
        )
    if spec.num_chunks == 0:
        raise OffloadRefusedError(
            f"cpu_bytes_to_use {spec.extra_config['cpu_bytes_to_use']} holds no chunk",
            f"a chunk takes {spec.kv_bytes_per_chunk} bytes",
            "make cpu_bytes_to_use larger",
        )
