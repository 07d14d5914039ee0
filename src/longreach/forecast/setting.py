"""A request resolved against its machine: what the formulas of this room need, or why they cannot be used."""

from dataclasses import dataclass

from longreach.forecast.rates import ComputeRates, compute_rates
from longreach.forecast.traffic import active_weight_bytes
from longreach.forecast.values import PrefillWork, Span, SpeedRequest
from longreach.forecast.work import prefill_work
from longreach.hardware.links import link_of_group
from longreach.hardware.spec import GpuSpec, LinkSpec


@dataclass(frozen=True, slots=True)
class Unknown:
    """No figure can be given, and why."""

    reason: str

    def span(self) -> Span:
        """The same as a forecast quantity."""
        return Span(None, None, certainty="unknown", reason=self.reason)


@dataclass(frozen=True, slots=True)
class Setting:
    """One instance's GPUs with their rates. `link` is None for a single GPU, and where none is known."""

    request: SpeedRequest
    gpu: GpuSpec
    link: LinkSpec | None
    rates: ComputeRates
    work: PrefillWork
    weight_bytes: tuple[float, float]  # active, whole model, least and most
    kv_cache_dtype: str  # with `auto` resolved to what the checkpoint forces

    @property
    def num_gpus(self) -> int:
        """GPUs of the instance."""
        return self.request.tp_size * self.request.pp_size

    @property
    def has_unknown_link(self) -> bool:
        """All-reduces run over a link without figures."""
        return self.request.tp_size > 1 and self.link is None


def resolve(request: SpeedRequest) -> Setting | Unknown:
    """Look up the rates that hold for this request."""
    machine, model = request.machine, request.model
    if machine.gpu is None:
        on_cpu = machine.device_type == "cpu"
        reason = (
            "speed on a CPU is not forecast" if on_cpu else "the GPU is not in the catalogue, so its rates are unknown"
        )
        return Unknown(reason)
    weight_bytes = active_weight_bytes(model)
    if weight_bytes is None:
        return Unknown(f"the config of {model.name} does not tell how many parameters a token meets")
    dtype = request.kv_cache_dtype
    if dtype == "auto" and model.kv_cache_dtype_forced is not None:
        dtype = model.kv_cache_dtype_forced
    group = machine.link and link_of_group(machine.link, machine.gpu, request.tp_size) if request.tp_size > 1 else None
    return Setting(
        request=request,
        gpu=machine.gpu,
        link=group,
        rates=compute_rates(machine.gpu, model, dtype),
        work=prefill_work(
            model, request.prompt_tokens, request.tp_size, request.max_num_batched_tokens, request.pp_size
        ),
        weight_bytes=weight_bytes,
        kv_cache_dtype=dtype,
    )
