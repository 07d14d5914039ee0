"""The engine's own count of a KV cache, for plans given as JSON: runs under the engine's Python and imports vLLM only.

stdin: a list of plans (layers and request fields); stdout: one answer a plan, on the last line. Specs come from vLLM's layer
classes, block sizes from its platform code, groups, blocks, tokens and refusals from `get_kv_cache_configs`.
"""

import dataclasses
import json
import sys
from types import SimpleNamespace
from typing import Any

import torch
from sizing_oracle_states import MAMBA_TYPES, STATES  # type: ignore[import-not-found]  # beside this script
from vllm.config.speculative import SpeculativeConfig
from vllm.config.vllm import VllmConfig
from vllm.distributed.kv_transfer.kv_connector.v1.offloading.config import build_offloading_config
from vllm.distributed.utils import get_pp_indices
from vllm.model_executor.layers.attention.attention import Attention
from vllm.model_executor.layers.attention.chunked_local_attention import ChunkedLocalAttention
from vllm.model_executor.layers.attention.cross_attention import CrossAttention
from vllm.model_executor.layers.attention.mla_attention import MLAAttention, MLACommonBackend
from vllm.model_executor.layers.mamba.abstract import MambaBase
from vllm.model_executor.layers.mamba.mamba_mixer2 import MambaMixer2
from vllm.model_executor.layers.quantization.turboquant.config import TurboQuantConfig
from vllm.model_executor.models import ModelRegistry
from vllm.model_executor.models.deepseek_v2 import DeepseekV32IndexerCache
from vllm.platforms.interface import Platform
from vllm.utils.torch_utils import STR_DTYPE_TO_TORCH_DTYPE, nvfp4_kv_cache_full_dim
from vllm.v1.attention.backend import AttentionBackend, AttentionType, MultipleOf
from vllm.v1.attention.backends.registry import MambaAttentionBackendEnum
from vllm.v1.attention.backends.triton_attn import TritonAttentionBackend
from vllm.v1.attention.backends.turboquant_attn import TurboQuantAttentionBackend
from vllm.v1.core.kv_cache_utils import (
    generate_scheduler_kv_cache_config,
    get_kv_cache_capacity,
    get_kv_cache_configs,
)
from vllm.v1.kv_cache_interface import AttentionSpec, MLAAttentionSpec
from vllm.v1.kv_cache_layout import KVCacheLayout
from vllm.v1.kv_offload.cpu.spec import CPUOffloadingSpec
from vllm.v1.worker.utils import customize_attention_spec

LONGEST = 2**31 - 1

Json = dict[str, Any]


def make_backend(kernel: int, *, is_mla: bool = False) -> type[AttentionBackend]:
    """A backend with one kernel block; packing is done by the backend that really owns each format."""

    class Backend(AttentionBackend):  # type: ignore[misc]
        @staticmethod
        def get_name() -> str:
            return "TEST"

        @staticmethod
        def get_supported_kernel_block_sizes(kv_cache_spec: Any = None) -> list[MultipleOf]:  # noqa: ARG004 - vLLM's signature
            return [MultipleOf(kernel)]

        @classmethod
        def customize_spec(cls, spec: AttentionSpec) -> AttentionSpec:
            if is_mla or isinstance(spec, MLAAttentionSpec):
                return MLACommonBackend.customize_spec(spec)
            if spec.kv_quant_mode.is_nvfp4 and spec.state_content_bytes is None:  # as FlashInfer, which needs a GPU
                key, value = nvfp4_kv_cache_full_dim(spec.head_size), nvfp4_kv_cache_full_dim(spec.head_size_v)
                assert key == value
                return dataclasses.replace(spec, num_head_slots=2 * spec.num_kv_heads, state_content_bytes=key)
            return TritonAttentionBackend.customize_spec(spec)

    return Backend


class CpuTier(CPUOffloadingSpec):  # type: ignore[misc]
    """As on a CUDA machine, where replicated latents are stored once."""

    def _uses_shared_region(self) -> bool:
        return True


class Mixer2(MambaMixer2):  # type: ignore[misc]
    """Only its KV cache spec is wanted, not its weights."""

    mamba_type = MambaAttentionBackendEnum.MAMBA2
    is_kv_cache_tp_replicated = False

    def __init__(self, shapes: Any, dtypes: Any) -> None:
        self.__dict__.update(shapes=shapes, dtypes=dtypes)

    def get_state_shape(self) -> Any:
        return self.shapes

    def get_state_dtype(self) -> Any:
        return self.dtypes


class Engine:
    """One plan's configuration, as far as vLLM's planning code looks at it."""

    def __init__(self, plan: Json) -> None:
        self.plan = plan
        self.request = plan["request"]
        self.layers: list[Json] = plan["layers"] + (plan["draft_layers"] if self.request["use_draft_layers"] else [])
        self.is_mla = any(layer["kind"] == "MlaLayer" for layer in plan["layers"])
        dtype = self.request["kv_cache_dtype"]
        backend = TurboQuantAttentionBackend if dtype.startswith("turboquant") else make_backend(self.request["kernel"])
        self.backend: type[AttentionBackend] = backend
        self.plain_backend = make_backend(self.request["kernel"])
        self.config = self._config()

    def _config(self) -> Any:
        request, plan = self.request, self.plan
        latent = next((layer for layer in plan["layers"] if layer["kind"] == "MlaLayer"), None)
        kv_heads = 1 if latent else max(1, plan["num_kv_heads"] // request["tp_size"])
        head_size = latent["kv_lora_rank"] + latent["rope_head_dim"] if latent else plan["head_dim"]
        model = SimpleNamespace(
            max_model_len=request["max_model_len"],
            original_max_model_len=request["max_model_len"],
            dtype=torch.bfloat16,
            use_mla=self.is_mla,
            is_hybrid=plan["is_hybrid"],
            get_num_kv_heads=lambda _: kv_heads,
            get_head_size=lambda: head_size,
            get_total_num_kv_heads=lambda: plan["num_kv_heads"],
            model="any",
            architecture="Any",
            hf_text_config=SimpleNamespace(num_hidden_layers=plan["num_layers"]),
            hf_config=SimpleNamespace(model_type="any"),
        )
        skipped = list(request["kv_cache_dtype_skip_layers"])
        if request["kv_cache_dtype"].startswith("turboquant") and not plan["is_hybrid"]:
            skipped += TurboQuantConfig.get_boundary_skip_layers(model)
        cache = SimpleNamespace(
            cache_dtype=request["kv_cache_dtype"],
            block_size=request["block_size"] or 16,
            user_specified_block_size=request["block_size"] is not None,
            mamba_cache_mode="align" if request["prefix_caching"] else "none",
            mamba_block_size=request["block_size"] or 16 if request["prefix_caching"] else request["max_model_len"],
            mamba_page_size_padded=None,
            mamba_cache_dtype=request["mamba_cache_dtype"],
            mamba_ssm_cache_dtype=plan["ssm_state_dtype"] or "auto",
            kv_cache_dtype_skip_layers=skipped,
            skip_page_size_padded=None,
            use_replayssm=False,
            num_gpu_blocks_override=None,
            prefix_cache_retention_interval=None,
            enable_prefix_caching=request["prefix_caching"],
            prefix_match_unit=None,
            kv_cache_layout="LBNHC",
            get_resolved_kv_cache_layout=lambda: KVCacheLayout.LBNHC,
        )
        config = SimpleNamespace(
            model_config=model,
            cache_config=cache,
            parallel_config=SimpleNamespace(
                tensor_parallel_size=request["tp_size"],
                pipeline_parallel_size=request["pp_size"],
                decode_context_parallel_size=request["dcp_size"],
                prefill_context_parallel_size=1,
                world_size=request["tp_size"] * request["pp_size"],
                distributed_executor_backend="mp",
                nnodes_within_dp=1,
                rank=0,
                data_parallel_index=0,
                data_parallel_size=1,
                data_parallel_rank_local=0,
            ),
            kv_transfer_config=SimpleNamespace(
                engine_id="any",
                kv_connector_extra_config={
                    "cpu_bytes_to_use": plan["cpu_bytes"],
                    "blocks_per_chunk": plan["blocks_per_chunk"],
                },
            ),
            kv_events_config=None,
            scheduler_config=SimpleNamespace(
                max_num_batched_tokens=request["max_num_batched_tokens"],
                async_scheduling=request["async_scheduling"],
                disable_hybrid_kv_cache_manager=not request["hybrid_kv_cache_manager"],
                max_num_encoder_input_tokens=plan["max_encoder_tokens"],
            ),
            use_v2_model_runner=request["model_runner_v2"],
            num_speculative_tokens=request["num_speculative_tokens"],
            attention_config=SimpleNamespace(hisparse_config=None),
            device_config=SimpleNamespace(device_type="cuda"),
            speculative_config=self._speculative() if request["use_draft_layers"] else None,
        )
        config.max_concurrent_batches = VllmConfig.max_concurrent_batches.fget(config)
        config.max_in_flight_tokens = VllmConfig.max_in_flight_tokens.fget(config)
        config.num_prefill_lookahead_tokens = VllmConfig.num_prefill_lookahead_tokens.fget(config)
        return config

    def _speculative(self) -> Any:
        drafts = sum(layer["kind"] != "IndexerLayer" for layer in self.plan["draft_layers"])
        found = SimpleNamespace(
            method="mtp",
            num_speculative_tokens=self.request["num_speculative_tokens"],
            draft_model_config=SimpleNamespace(hf_config=SimpleNamespace(num_nextn_predict_layers=drafts)),
            use_eagle=lambda: True,
            use_eagle_block_drop=lambda: True,
        )
        found.use_multi_module_mtp = lambda: SpeculativeConfig.use_multi_module_mtp(found)
        return found

    def update_block_size(self) -> None:
        """vLLM's three phases, with this plan's backend and states."""
        backends = [make_backend(self.request["kernel"], is_mla=True) if self.is_mla else self.backend]
        states = [self.state(layer) for layer in self.layers if layer["kind"] in STATES]

        class Machine(Platform):  # type: ignore[misc]
            @classmethod
            def _find_non_ssm_backends(cls, _: Any) -> list[type[AttentionBackend]]:
                return backends

        class Model:
            @staticmethod
            def get_mamba_state_shape_from_config(_: Any) -> Any:
                return states[0][0]

            @staticmethod
            def get_mamba_state_dtype_from_config(_: Any) -> Any:
                return states[0][1]

        real = ModelRegistry.resolve_model_cls
        ModelRegistry.resolve_model_cls = lambda *_, **__: (Model, "Any")
        try:
            Machine.update_block_size_for_backend(self.config)
        finally:
            ModelRegistry.resolve_model_cls = real

    def state(self, layer: Json) -> Any:
        """(shapes, dtypes) from vLLM's calculators."""
        tp, drafts = self.request["tp_size"], self.request["num_speculative_tokens"]
        cache = self.config.cache_config
        types = (torch.bfloat16, cache.mamba_cache_dtype, cache.mamba_ssm_cache_dtype)
        return STATES[layer["kind"]](layer, tp, drafts, types)

    def specs(self) -> dict[str, Any]:
        """Every layer's spec, named by its place."""
        found = {}
        for position, layer in enumerate(self.layers):
            spec, backend = self.spec(layer, self.plan["places"][position])
            if isinstance(spec, AttentionSpec):
                spec = customize_attention_spec(backend, spec)
            found[f"layer.{position}"] = spec
        return found

    def spec(self, layer: Json, index: int) -> Any:
        kind, names = layer["kind"], self.config.cache_config.kv_cache_dtype_skip_layers
        skipped = str(index) in names or (layer.get("window_tokens") is not None and "sliding_window" in names)
        dtype = "auto" if skipped else self.config.cache_config.cache_dtype
        backend = self.plain_backend if skipped else self.backend
        torch_dtype = torch.bfloat16 if dtype == "auto" else STR_DTYPE_TO_TORCH_DTYPE[dtype]
        if kind in STATES:
            return self.state_spec(layer), backend
        if kind == "IndexerLayer":
            width = layer["head_dim"] + layer["head_dim"] // 128 * 4
            indexer = SimpleNamespace(cache_config=self.config.cache_config, head_dim=width, dtype=torch.uint8)
            return DeepseekV32IndexerCache.get_kv_cache_spec(indexer, self.config), self.plain_backend
        if kind == "MlaLayer":
            latent = SimpleNamespace(
                kv_cache_dtype=dtype,
                head_size=layer["kv_lora_rank"] + layer["rope_head_dim"],
                sliding_window=None,
                indexer=None,
                non_causal_multi_token_decode=False,
            )
            return MLAAttention.get_kv_cache_spec(latent, self.config), backend
        plain = SimpleNamespace(
            kv_cache_dtype=dtype,
            kv_cache_torch_dtype=torch_dtype,
            attn_type=AttentionType.DECODER,
            attn_backend=backend,
            sliding_window=layer.get("window_tokens"),
            attention_chunk_size=layer.get("chunk_tokens"),
            num_kv_heads=max(1, layer["num_kv_heads"] // self.request["tp_size"]),
            head_size=layer["head_dim"],
            head_size_v=layer.get("v_head_dim", layer["head_dim"]),
        )
        if kind == "CrossAttentionLayer":
            return CrossAttention.get_kv_cache_spec(plain, self.config), backend
        if layer["chunk_tokens"] is not None:
            return ChunkedLocalAttention.get_kv_cache_spec(plain, self.config), backend
        return Attention.get_kv_cache_spec(plain, self.config), backend

    def state_spec(self, layer: Json) -> Any:
        shapes, dtypes = self.state(layer)
        if layer["kind"] == "Mamba2Layer":
            return MambaMixer2.get_kv_cache_spec(Mixer2(shapes, dtypes), self.config)
        mixer = SimpleNamespace(
            get_state_shape=lambda: shapes,
            get_state_dtype=lambda: dtypes,
            mamba_type=MambaAttentionBackendEnum[MAMBA_TYPES[layer["kind"]]],
            is_kv_cache_tp_replicated=False,
        )
        spec = MambaBase.get_kv_cache_spec(mixer, self.config)
        if layer.get("checkpoints_prefill"):  # as Kimi-K3's layer, whose kernels need a GPU to import
            return dataclasses.replace(spec, num_prefill_checkpoint_blocks=1, prefill_checkpoint_alignment=64)
        return spec


def answer(plan: Json) -> Json:
    """What vLLM makes of the plan: counts, or the error it stops with."""
    engine = Engine(plan)
    request = plan["request"]
    try:
        engine.update_block_size()
        specs = engine.specs()
        stages = _stages(plan, specs)
        available = [request["available_bytes_per_gpu"]] * len(stages)
        found = _count(engine, stages, available)
        found["largest_max_model_len"] = _largest(engine, stages, available)
    except (AssertionError, ValueError, NotImplementedError, ZeroDivisionError) as error:
        return {"error": str(error), "type": type(error).__name__}
    return found


def _stages(plan: Json, specs: dict[str, Any]) -> list[dict[str, Any]]:
    pp_size = plan["request"]["pp_size"]
    stages = []
    for rank in range(pp_size):
        start, end = get_pp_indices(plan["num_layers"], rank, pp_size)
        last = rank == pp_size - 1
        places = plan["places"]
        stages.append(
            {
                name: spec
                for position, (name, spec) in enumerate(specs.items())
                if start <= places[position] and (places[position] < end or last)
            }
        )
    return stages


def _count(engine: Engine, stages: list[dict[str, Any]], available: list[int]) -> Json:
    try:
        configs = get_kv_cache_configs(engine.config, stages, available)
    except ValueError as error:
        if str(error).startswith(("To serve at least one request", "No available memory")):
            return {"refusal": str(error)}
        raise
    scheduler = generate_scheduler_kv_cache_config(configs)
    engine.config.cache_config.block_size = min(group.kv_cache_spec.block_size for group in scheduler.kv_cache_groups)
    tokens, concurrency = get_kv_cache_capacity(engine.config, scheduler)
    return {
        "num_blocks": scheduler.num_blocks,
        "kv_capacity_tokens": tokens,
        "max_concurrency": concurrency,
        "block_size": engine.config.cache_config.block_size,
        "cpu_tier": _cpu_tier(engine, scheduler) if engine.request["pp_size"] == 1 else None,
        "group_layers": [
            sum(len(config.kv_cache_groups[index].layer_names) for config in configs)
            for index in range(len(scheduler.kv_cache_groups))
        ],
    }


def _cpu_tier(engine: Engine, scheduler: Any) -> Json:
    """Chunks of the CPU tier; with a pipeline each worker counts its own, which nobody adds up."""
    try:
        tier = CpuTier(build_offloading_config(engine.config, scheduler))
    except AssertionError as error:
        return {"error": str(error)}
    return {"num_chunks": tier.num_chunks, "chunk_bytes": tier.kv_bytes_per_chunk}


def _largest(engine: Engine, stages: list[dict[str, Any]], available: list[int]) -> int:
    """What `--max-model-len auto` would settle on, were the model's own length no limit."""
    model = engine.config.model_config
    model.max_model_len, model.original_max_model_len = LONGEST, -1
    try:
        get_kv_cache_configs(engine.config, stages, available)
    except ValueError:
        return 0
    return int(model.max_model_len)


def main() -> None:
    plans = json.load(sys.stdin)
    print(json.dumps([answer(plan) for plan in plans]))  # noqa: T201 - the answer's way out


main()
