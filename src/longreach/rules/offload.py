"""How the offload connector must be set up: LR308 to LR316. Pure."""

from collections.abc import Iterator
from dataclasses import replace

from longreach.rules.deployment import Deployment
from longreach.rules.remedy import set_option
from longreach.rules.rule import Diagnosis, HasOptions, Rule, rule

CPU_PLUGIN_RELEASE = "0.32.0"  # what `vllm_ext` is written for: the offload internals change with every minor release
_ALLOCATOR_VARIABLES = ("PYTORCH_CUDA_ALLOC_CONF", "PYTORCH_ALLOC_CONF")
_CUMEM_FLAGS = (
    "--enable-sleep-mode",
    "--enable-cumem-allocator",
)  # their allocator switches the segments off around the pool


@rule(
    "LR308",
    "error",
    "expandable_segments_conflict",
    "offload does not work with expandable segments",
    first="0.21.0",
    outcome="refused_at_start",
)
def expandable_segments_conflict(deployment: HasOptions) -> Iterator[Diagnosis]:
    """The connector registers KV memory with the driver; expandable segments move under it."""
    options = deployment.options
    if options.offload is None or any(word.startswith(_CUMEM_FLAGS) for word in options.extra_args):
        return
    guilty = [
        (name, value)
        for name, value in options.env
        if name in _ALLOCATOR_VARIABLES and "expandable_segments:True" in value
    ]
    for name, value in guilty:
        yield Diagnosis(
            f"the offload connector does not start with {name}={value}",
            "vLLM refuses since 0.21: 'KV connector ... is incompatible with ... expandable_segments:True'",
            f"unset {name}",
            set_option("env", tuple(pair for pair in options.env if pair[0] != name)),
        )


@rule("LR309", "advice", "answers_not_offloaded", "generated tokens are not offloaded", first="0.24.0")
def answers_not_offloaded(deployment: HasOptions) -> Iterator[Diagnosis]:
    """`offload_prompt_only` is true by default."""
    offload = deployment.options.offload
    if offload is None or offload.offload_prompt_only is not None:
        return
    yield Diagnosis(
        "--kv-transfer-config does not say offload_prompt_only, so generated tokens are not offloaded",
        "its default is true from 0.24 on: the next turn of a conversation computes the last answer again",
        'add "offload_prompt_only": false where answers are long and come back as prompts; none needed otherwise',
        set_option("offload", replace(offload, offload_prompt_only=False)),
    )


@rule(
    "LR310",
    "error",
    "hybrid_offload_needs_prefix_caching",
    "offload on a hybrid model needs prefix caching",
    outcome="refused_at_start",
)
def hybrid_offload_needs_prefix_caching(deployment: Deployment) -> Iterator[Diagnosis]:
    """State and attention blocks share one size only with the prefix cache on."""
    options, model = deployment.options, deployment.model
    if options.offload is None or not model.is_hybrid or deployment.prefix_caching:
        return
    if deployment.is_foreign and options.enable_prefix_caching is not False:
        return
    yield Diagnosis(
        f"offload on the hybrid '{model.name}' fails with --no-enable-prefix-caching",
        f"without the prefix cache its {deployment.num_recurrent_layers} recurrent layers get one block of max-model-len "
        "tokens, and the connector asserts that block sizes divide",
        "leave --no-enable-prefix-caching out",
        set_option("enable_prefix_caching", None),
    )


@rule("LR311", "advice", "disk_threads_inside_tier", "disk threads belong inside the tier's entry")
def disk_threads_inside_tier(deployment: Deployment) -> Iterator[Diagnosis]:
    """Unknown top-level keys of the connector are ignored silently."""
    offload = deployment.options.offload
    if offload is None or deployment.is_foreign:
        return
    threads = {"n_read_threads": offload.num_disk_read_threads, "n_write_threads": offload.num_disk_write_threads}
    given = ", ".join(f"{key} {count}" for key, count in threads.items() if count is not None)
    if not given:
        return
    yield Diagnosis(
        f"{given} must stand inside the fs tier's entry",
        "at the top level of kv_connector_extra_config the keys are ignored without a message and 16 threads run",
        "none needed in the planned command, which puts them there",
    )


@rule("LR313", "advice", "hybrid_hits_are_coarse", "prefix hits on hybrid models come in large steps")
def hybrid_hits_are_coarse(deployment: Deployment) -> Iterator[Diagnosis]:
    """A hit needs the recurrent state at the same boundary, which is kept at few places."""
    block_size, model = deployment.block_size, deployment.model
    if block_size is None or not model.is_hybrid or not deployment.prefix_caching:
        return
    yield Diagnosis(
        f"prefix hits of '{model.name}' come in multiples of {block_size} tokens",
        f"a prompt below {block_size} tokens never hits; state is kept at few boundaries, so the second identical "
        "prompt may miss and the third hit (seen on 0.32: 0, 0, then 3840 of 4000 tokens)",
        "none needed; send a prompt three times before you conclude that the cache does not work",
    )


@rule(
    "LR314",
    "error",
    "offload_on_cpu_platform",
    "the CPU build refuses the offload connector",
    outcome="refused_at_start",
)
def offload_on_cpu_platform(deployment: Deployment) -> Iterator[Diagnosis]:
    """Only an out-of-tree spec brings a worker for the CPU."""
    if not _wants_offload_on_cpu(deployment):
        return
    if deployment.release.version == CPU_PLUGIN_RELEASE and not deployment.is_foreign:
        return  # LR319
    yield Diagnosis(
        f"vLLM {deployment.release.version} refuses --kv-transfer-config OffloadingConnector on a CPU",
        "'CPU Offloading is currently only supported on CUDA-alike and XPU GPUs'; the KV cache is in host memory anyway",
        f"leave the tiers out, or use vLLM {CPU_PLUGIN_RELEASE} whose environment holds longreach, which brings a copy worker",
        set_option("offload", None),
    )


@rule("LR315", "advice", "arc_no_better_than_lru", "ARC is not known to beat LRU")
def arc_no_better_than_lru(deployment: HasOptions) -> Iterator[Diagnosis]:
    """Measured by replaying public traces through the engine's own offload manager."""
    offload = deployment.options.offload
    if offload is None or offload.eviction_policy != "arc":
        return
    yield Diagnosis(
        "--kv-transfer-config sets eviction policy 'arc', which is no sure gain over 'lru'",
        "vLLM's own manager, driven with two public traces: hit rate 2.4 points lower to 1.8 points higher than LRU, lower "
        "in every conversation case but the smallest tier",
        'leave eviction_policy out ("lru"), or measure on your own traffic',
        set_option("offload", replace(offload, eviction_policy="lru")),
    )


@rule(
    "LR316",
    "error",
    "hybrid_offload_needs_hybrid_manager",
    "offload on a hybrid model needs the hybrid KV cache manager",
    outcome="refused_at_start",
)
def hybrid_offload_needs_hybrid_manager(deployment: Deployment) -> Iterator[Diagnosis]:
    """Recurrent layers cannot be counted as full attention."""
    options = deployment.options
    if options.offload is None or not options.disable_hybrid_kv_cache_manager or deployment.num_recurrent_layers == 0:
        return
    if deployment.is_foreign:
        return  # LR970
    yield Diagnosis(
        "--disable-hybrid-kv-cache-manager does not go with recurrent layers and offload",
        f"{deployment.num_recurrent_layers} recurrent layers need block tables of their own; the connector handles them "
        "from 0.21 on, with the hybrid manager only",
        "leave --disable-hybrid-kv-cache-manager out",
        set_option("disable_hybrid_kv_cache_manager", None),
    )


@rule(
    "LR319",
    "warning",
    "offload_on_cpu_needs_plugin",
    "offload on a CPU needs longreach beside the engine",
    first=CPU_PLUGIN_RELEASE,
    last=CPU_PLUGIN_RELEASE,
)
def offload_on_cpu_needs_plugin(deployment: Deployment) -> Iterator[Diagnosis]:
    """A plan cannot see into the engine's environment."""
    if not _wants_offload_on_cpu(deployment) or deployment.is_foreign:
        return
    yield Diagnosis(
        f"on a CPU, vLLM {deployment.release.version} offloads only where its environment holds longreach",
        "vLLM's own worker copies between a GPU and host memory; longreach.vllm_ext has one for the CPU, in a plugin that vLLM "
        "finds by itself",
        "pip install --no-deps longreach, in the engine's environment",
    )


def _wants_offload_on_cpu(deployment: Deployment) -> bool:
    offload = deployment.options.offload
    return offload is not None and offload.spec_module_path is None and deployment.machine.device_type == "cpu"


RULES: tuple[Rule, ...] = (
    expandable_segments_conflict,
    answers_not_offloaded,
    hybrid_offload_needs_prefix_caching,
    disk_threads_inside_tier,
    hybrid_hits_are_coarse,
    offload_on_cpu_platform,
    offload_on_cpu_needs_plugin,
    arc_no_better_than_lru,
    hybrid_offload_needs_hybrid_manager,
)
