"""From the words of a foreign command to the deployment that the rules of plans look at. Pure.

Nothing is assumed that the command and its surroundings do not say: without a GPU no memory is counted, and a refusal for want
of memory is only said where it is sure.
"""

from collections.abc import Mapping
from dataclasses import replace

from longreach.engine.defaults import default_max_num_batched_tokens, default_max_num_seqs, device_defaults
from longreach.engine.options import EngineOptions, OffloadOptions
from longreach.errors import LongreachError
from longreach.hardware.spec import Machine
from longreach.lint.drafter import brings_layers, find_drafter
from longreach.lint.in_force import changes_layers, model_in_force, rope_in_force
from longreach.model.spec import ModelSpec
from longreach.rules.connectors import hybrid_manager_is_off
from longreach.rules.deployment import Deployment
from longreach.rules.overrides import overrides_of
from longreach.rules.parallel import experts_stay_whole
from longreach.rules.written import WrittenCommand
from longreach.sizing.kernels import kernel_block_sizes, prefills_on_flashinfer
from longreach.sizing.kv_cache import size_kv_cache
from longreach.sizing.memory import MemoryRequest, budget_memory
from longreach.sizing.offload import size_cpu_tier
from longreach.sizing.overrides import TEXT_KEYS, RopeInForce
from longreach.sizing.rope import plan_rope, rope_table_bytes
from longreach.sizing.values import KvCacheRequest, KvCapacity, MemoryBudget, RopePlan
from longreach.units import GIB, format_bytes

_SIZES = (
    "--tensor-parallel-size",
    "--pipeline-parallel-size",
    "--data-parallel-size",
    "--decode-context-parallel-size",
)
_COUNTED_WITH = (
    "--max-model-len",
    "--kv-cache-dtype",
    "--kv-cache-memory-bytes",
    "--gpu-memory-utilization",
    "--block-size",
    "--max-num-batched-tokens",
    "--max-num-seqs",
    "--speculative-config",
    "--hf-overrides",
    "--dtype",
    "--prefill-context-parallel-size",
    "--kv-cache-dtype-skip-layers",
    "--num-gpu-blocks-override",
)
"""Flags whose value decides the KV cache: where a shell variable stands for one, nothing is counted."""

_NOT_COUNTED = (
    "--mamba-block-size",
    "--disable-sliding-window",
    "--additional-config",
)
_MOVES_WEIGHTS = ("--cpu-offload-gb", "--offload-backend", "--load-format", "--enable-lora", "--offload-group-size")
_HOST_DRAFTS = ("ngram", "suffix", "medusa", "mlp_speculator")
_WHOLE_EXPERTS = "--enable-expert-parallel"
_POOL = "--num-gpu-blocks-override"
_OVERRIDE_IS_CHECKED_SINCE = (0, 20)  # before, the length is checked against what was measured
_LARGE_CHUNK_SINCE = (0, 28)  # 16384 tokens on cards of 160 GiB and more


def deployment_of(written: WrittenCommand) -> Deployment | None:
    """The deployment of a command whose model is known; None where it is not, or where sizes stand in shell variables."""
    if written.model is None or any(_is_open(written, name) for name in _SIZES):
        return None
    rope = rope_in_force(written, written.model)
    model = model_in_force(written, written.model, rope)
    options = _options(written, model, rope)
    machine = written.machine or _unknown_machine(options)
    max_model_len = options.max_model_len or (
        rope.default_tokens if rope is not None else model.max_position_embeddings
    )
    batch, seqs = _batch_limits(options, machine, max_model_len, written)
    deployment = Deployment(
        model=model,
        machine=machine,
        release=written.release,
        options=options,
        max_model_len=max_model_len,
        max_num_batched_tokens=batch,
        max_num_seqs=seqs,
        rope=_rope_plan(written, written.model, options, max_model_len),
        rope_is_overridden=_overrides_rope(written),
        is_foreign=True,
    )
    return _counted(deployment, written)


def _is_open(written: WrittenCommand, name: str) -> bool:
    """Whether a shell variable stands where a value should."""
    return any(use.is_open for use in written.parsed.named(name))


def _options(written: WrittenCommand, model: ModelSpec, rope: RopeInForce | None) -> EngineOptions:
    """The command's own options, with what they cannot express put into the fields that rules read."""
    options = written.options
    offload = options.offload or _offloading_size(written)
    path = model.rope.override_path if model.rope is not None else ()
    words = options.extra_args
    if written.parsed.is_on(_WHOLE_EXPERTS) and not experts_stay_whole(options):  # abbreviated, or in the config file
        words = (*words, _WHOLE_EXPERTS)
    yarn = None if rope is None else rope.yarn(path)
    return replace(options, offload=offload, yarn=yarn, extra_args=words)


def _offloading_size(written: WrittenCommand) -> OffloadOptions | None:
    """`--kv-offloading-size GIB`: the connector by another name, unless another backend is asked for."""
    size = written.value("--kv-offloading-size")
    if size is None or (written.value("--kv-offloading-backend") or "native") != "native":
        return None
    try:
        return OffloadOptions(cpu_bytes=int(float(size) * GIB))
    except ValueError:
        return None


def _unknown_machine(options: EngineOptions) -> Machine:
    num_gpus = options.tensor_parallel_size * options.pipeline_parallel_size * options.data_parallel_size
    return Machine(gpu=None, num_gpus=num_gpus, link=None)


def _batch_limits(
    options: EngineOptions, machine: Machine, max_model_len: int, written: WrittenCommand
) -> tuple[int, int]:
    """(max_num_batched_tokens, max_num_seqs) as vLLM resolves them; those of small cards where the card is not known."""
    gpu, world_size = machine.gpu, options.tensor_parallel_size * options.pipeline_parallel_size
    memory = None if gpu is None else (gpu.cuda_memory_bytes or (gpu.memory_bytes,))[0]
    name = "" if gpu is None else gpu.name
    asked = {"device_type": machine.device_type, "world_size": world_size}
    seqs = options.max_num_seqs or default_max_num_seqs(memory, name, **asked) or 256  # type: ignore[arg-type] # two kinds of value
    batch = options.max_num_batched_tokens
    if batch is None:
        batch = default_max_num_batched_tokens(memory, name, **asked) or 2048  # type: ignore[arg-type] # as above
        if written.release.number < _LARGE_CHUNK_SINCE:
            batch = min(batch, 8192)
        if options.enable_chunked_prefill is False:
            batch = max(batch, max_model_len)
        batch = max(batch, options.max_num_seqs or 1)
    return batch, seqs if options.max_num_seqs is not None else min(seqs, batch)


def _overrides_rope(written: WrittenCommand) -> bool:
    overrides = overrides_of(written)
    if overrides is None or any(written.parsed.named(name) for name in ("--rope-scaling", "--rope-theta")):
        return True
    return any(
        key in part for part in (overrides, *overrides.values()) if isinstance(part, Mapping) for key in TEXT_KEYS
    )


def _rope_plan(
    written: WrittenCommand, model: ModelSpec, options: EngineOptions, max_model_len: int
) -> RopePlan | None:
    """What the command's YaRN costs; where it overrides nothing and needs more than the model has, the YaRN that would do."""
    if options.yarn is None:
        wanted = plan_rope(model, max_model_len) if not _overrides_rope(written) else None
        return (
            wanted if wanted is not None and wanted.options is not None and not wanted.beyond_recommendation else None
        )
    return RopePlan(
        native_tokens=model.max_position_embeddings,
        wanted_tokens=max_model_len,
        factor=options.yarn.factor,
        table_bytes_per_gpu=rope_table_bytes(model, options.yarn),
        options=options.yarn,
        reachable=True,
        reason="as the command overrides it",
    )


def _counted(deployment: Deployment, written: WrittenCommand) -> Deployment:
    """The same with memory and KV capacity, as far as the command lets them be counted."""
    memory = _memory(deployment, written)
    deployment = replace(deployment, memory=memory)
    if _cannot_be_counted(written, deployment.model):
        return deployment
    asked, most = deployment.options.kv_cache_memory_bytes, deployment.kv_most_bytes
    ipc_bytes = int((deployment.options.mm_ipc_gpu_memory_gb or 0) * GIB)
    try:
        request = _request(deployment, written, max((most or 0) - ipc_bytes, 0))
        capacity = size_kv_cache(request)
    except LongreachError:
        return deployment
    if deployment.pool_blocks is not None:
        request = replace(request, available_bytes_per_gpu=deployment.pool_blocks * capacity.bytes_per_block)
        return _with_tiers(replace(deployment, kv_request=request, capacity=size_kv_cache(request)))
    if most is None:
        return replace(deployment, kv_request=request)
    if deployment.options.max_model_len_auto:
        return _fitted_to_memory(deployment, request, capacity)
    if asked is None and capacity.starts:
        request, capacity = _expected(request, capacity, memory)
    return _with_tiers(replace(deployment, kv_request=request, capacity=_labelled(capacity, asked, memory, written)))


def _is_fragment(written: WrittenCommand) -> bool:
    """Arguments that name no model leave out more than that: what they do not say need not be vLLM's default."""
    return written.parsed.model is None


def _cannot_be_counted(written: WrittenCommand, model: ModelSpec) -> bool:
    given = {use.name for use in written.parsed.uses}
    return (
        not given.isdisjoint(_NOT_COUNTED)
        or _is_fragment(written)
        or (_POOL in given and written.release.number < _OVERRIDE_IS_CHECKED_SINCE)
        or any(_is_open(written, name) for name in _COUNTED_WITH)
        or changes_layers(written, model)
    )


def _memory(deployment: Deployment, written: WrittenCommand) -> MemoryBudget | None:
    """None where the card is not known, or where weights are kept elsewhere."""
    given = {use.name for use in written.parsed.uses}
    if deployment.machine.gpu is None or _is_fragment(written) or not given.isdisjoint(_MOVES_WEIGHTS):
        return None
    if any(
        _is_open(written, name) for name in ("--quantization", "--gpu-memory-utilization", "--kv-cache-memory-bytes")
    ):
        return None
    options, spec = deployment.options, deployment.options.speculative
    return budget_memory(
        MemoryRequest(
            model=deployment.model,
            machine=deployment.machine,
            tp_size=options.tensor_parallel_size * _expert_ways(deployment),
            pp_size=options.pipeline_parallel_size,
            max_num_batched_tokens=deployment.max_num_batched_tokens,
            max_num_seqs=deployment.max_num_seqs,
            rope_table_bytes=deployment.rope.table_bytes_per_gpu if deployment.rope is not None else 0,
            gpu_memory_utilization=options.gpu_memory_utilization or deployment.release.default_gpu_memory_utilization,
            kv_cache_memory_bytes=options.kv_cache_memory_bytes,
            mm_ipc_gpu_memory_bytes=int((options.mm_ipc_gpu_memory_gb or 0) * GIB),
            use_draft_layers=spec is not None and spec.method == "mtp",
            release=deployment.release,
            enforce_eager=bool(options.enforce_eager),
            text_only=bool(options.language_model_only),
        )
    )


def _expert_ways(deployment: Deployment) -> int:
    """Data-parallel engines share the experts of a mixture among them: the least that a GPU can hold."""
    return deployment.options.data_parallel_size if deployment.model.is_moe else 1


def _request(deployment: Deployment, written: WrittenCommand, available_bytes: int) -> KvCacheRequest:
    model, machine, options = deployment.model, deployment.machine, deployment.options
    device, spec = device_defaults(machine.device_type), options.speculative
    assert device is not None, machine.device_type
    dtype = options.kv_cache_dtype or "auto"
    block_size, kernel_block_size = kernel_block_sizes(model, machine, device, dtype)
    return KvCacheRequest(
        model=model,
        release=deployment.release,
        max_model_len=deployment.max_model_len,
        available_bytes_per_gpu=available_bytes,
        tp_size=options.tensor_parallel_size,
        pp_size=options.pipeline_parallel_size,
        dcp_size=options.decode_context_parallel_size,
        pcp_size=int(written.value("--prefill-context-parallel-size") or 1),
        kv_cache_dtype=dtype,
        max_num_batched_tokens=deployment.max_num_batched_tokens,
        num_speculative_tokens=spec.num_speculative_tokens if spec else 0,
        use_draft_layers=spec is not None and spec.method == "mtp",
        draft_model=find_drafter(spec),
        has_unknown_drafter=brings_layers(spec) and find_drafter(spec) is None,
        prefix_caching=deployment.prefix_caching,
        async_scheduling=device.async_scheduling
        and options.async_scheduling is not False
        and (spec is None or spec.method not in _HOST_DRAFTS),
        hybrid_kv_cache_manager=hybrid_manager_is_off(written) is not True,
        block_size=options.block_size,
        default_block_size=block_size,
        min_kernel_block_size=kernel_block_size,
        mamba_cache_mode=written.value("--mamba-cache-mode"),
        mamba_cache_dtype=written.value("--mamba-cache-dtype") or "auto",
        mamba_ssm_cache_dtype=written.value("--mamba-ssm-cache-dtype") or "auto",
        force_fp32_state=machine.device_type == "cpu",
        gdn_flashinfer_prefill=prefills_on_flashinfer(model, machine.gpu),
        kv_cache_dtype_skip_layers=_skipped_layers(written),
    )


def _skipped_layers(written: WrittenCommand) -> tuple[str, ...]:
    """Of repeated flags the last holds."""
    given = [use.values for use in written.parsed.uses if use.name == "--kv-cache-dtype-skip-layers"]
    return tuple(given[-1]) if given else ()


def _expected(
    request: KvCacheRequest, most: KvCapacity, memory: MemoryBudget | None
) -> tuple[KvCacheRequest, KvCapacity]:
    """Counted at the middle of what is left, where that starts; the refusal of a guess is none."""
    middle = memory.kv_middle_bytes if memory is not None else None
    if middle is None or middle >= request.available_bytes_per_gpu:
        return request, most
    guess = replace(request, available_bytes_per_gpu=max(middle, 0))
    capacity = size_kv_cache(guess)
    return (guess, capacity) if capacity.starts else (request, most)


def _labelled(
    capacity: KvCapacity, asked: int | None, memory: MemoryBudget | None, written: WrittenCommand
) -> KvCapacity:
    reason = None
    if asked is None and memory is not None and memory.kv_bytes is not None:
        low, high = (format_bytes(max(end, 0)) for end in memory.kv_bytes)
        reason = f"under --gpu-memory-utilization {low} to {high} are expected to be left to KV"
    elif written.speculative and written.options.speculative is None:
        reason = "the layers of the draft model are not counted"
    return capacity if reason is None else replace(capacity, certainty="estimate", estimate_reason=reason)


def _fitted_to_memory(deployment: Deployment, request: KvCacheRequest, capacity: KvCapacity) -> Deployment:
    """`--max-model-len auto`: the engine takes the largest length that fits."""
    length = min(capacity.largest_max_model_len, deployment.max_model_len)
    if deployment.options.kv_cache_memory_bytes is None or length == 0:
        return deployment  # no more than a guess
    request = replace(request, max_model_len=length)
    return _with_tiers(replace(deployment, max_model_len=length, kv_request=request, capacity=size_kv_cache(request)))


def _with_tiers(deployment: Deployment) -> Deployment:
    offload, request, capacity = deployment.options.offload, deployment.kv_request, deployment.capacity
    if offload is None or request is None or capacity is None:
        return deployment
    try:
        return replace(deployment, tiers=(size_cpu_tier(capacity, request, offload.cpu_bytes),))
    except LongreachError:  # without prefix caching a hybrid's states are in no block that could be kept
        return deployment
