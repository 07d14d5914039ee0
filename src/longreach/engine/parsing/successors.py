"""What stands in the place of flags that are gone, or that people write and no release ever had. Pure.

Read in the release notes and deprecation warnings of vLLM, and in the registry.
"""

from dataclasses import dataclass

from longreach.engine.registry import Registry


@dataclass(frozen=True, slots=True)
class Successor:
    """A flag that is gone, and what to do about it."""

    old: str
    name: str | None  # the flag to use instead, or a key of one; None: drop it
    remark: str
    keeps_value: bool = False  # the same value goes with the new name
    value: str | None = None  # this value goes with the new name
    variable: str | None = None  # the value goes into this environment variable
    by_hand: bool = False  # what to write cannot be told from the flag alone


_SPECULATIVE_KEY = "it is a key of --speculative-config"

SUCCESSORS: tuple[Successor, ...] = (
    Successor(
        "--rope-scaling",
        "--hf-overrides",
        "the rope settings go into --hf-overrides '{\"rope_parameters\": {...}}'",
        by_hand=True,
    ),
    Successor(
        "--rope-theta",
        "--hf-overrides",
        'the base goes into --hf-overrides \'{"rope_parameters": {"rope_theta": ...}}\'',
        by_hand=True,
    ),
    Successor(
        "--guided-decoding-backend",
        "--structured-outputs-config.backend",
        "the backend is a key of --structured-outputs-config",
        keeps_value=True,
    ),
    Successor(
        "--guided-decoding-disable-any-whitespace",
        "--structured-outputs-config.disable_any_whitespace",
        "it is a key of --structured-outputs-config",
        value="true",
    ),
    Successor(
        "--guided-decoding-disable-additional-properties",
        "--structured-outputs-config.disable_additional_properties",
        "it is a key of --structured-outputs-config",
        value="true",
    ),
    Successor("--guided-decoding-disable-fallback", None, "there is no fallback any more"),
    Successor("--disable-log-requests", None, "requests are logged only with --enable-log-requests"),
    Successor("--no-disable-log-requests", "--enable-log-requests", "requests are logged only when asked for"),
    Successor("--swap-space", None, "the V1 engine swaps nothing to the CPU; preempted requests are computed again"),
    Successor("--preemption-mode", None, "the V1 engine always computes preempted requests again"),
    Successor("--num-scheduler-steps", None, "multi-step scheduling went with the V0 engine"),
    Successor("--multi-step-stream-outputs", None, "multi-step scheduling went with the V0 engine"),
    Successor("--num-lookahead-slots", None, "the V1 engine reserves the slots by itself"),
    Successor("--use-v2-block-manager", None, "it had been without effect"),
    Successor("--scheduler-delay-factor", None, "it went with the V0 engine"),
    Successor(
        "--max-seq-len-to-capture",
        None,
        "CUDA graphs are captured by batch size (--cudagraph-capture-sizes), not by length",
    ),
    Successor("--cuda-graph-sizes", "--cudagraph-capture-sizes", "it was renamed", keeps_value=True),
    Successor("--cudagraph-capture-sizes", "--cuda-graph-sizes", "it was renamed in 0.12", keeps_value=True),
    Successor("--override-pooler-config", "--pooler-config", "it was renamed", keeps_value=True),
    Successor("--pooler-config", "--override-pooler-config", "it was renamed", keeps_value=True),
    Successor("--dcp-kv-cache-interleave-size", "--cp-kv-cache-interleave-size", "it was renamed", keeps_value=True),
    Successor("--cp-kv-cache-interleave-size", "--dcp-kv-cache-interleave-size", "it was renamed", keeps_value=True),
    Successor("--task", "--runner", "--runner says generate or pooling, --convert says into what", by_hand=True),
    Successor("--enable-reasoning", None, "--reasoning-parser alone turns it on"),
    Successor("--tool-call-parser-plugin", "--tool-parser-plugin", "that is its name", keeps_value=True),
    Successor("--disable-frontend-multiprocessing", None, "the API server always runs in a process of its own"),
    Successor("--disable-mm-preprocessor-cache", "--mm-processor-cache-gb", "a cache of 0 GB is none", value="0"),
    Successor("--max-num-partial-prefills", None, "the V1 scheduler had ignored it"),
    Successor("--max-long-partial-prefills", None, "the V1 scheduler had ignored it"),
    Successor("--calculate-kv-scales", None, "scales come with the checkpoint"),
    Successor("--enable-chunked-mm-input", None, "--disable-chunked-mm-input is the switch; chunking is the default"),
    Successor("--speculative-model", "--speculative-config.model", _SPECULATIVE_KEY, keeps_value=True),
    Successor(
        "--num-speculative-tokens",
        "--speculative-config.num_speculative_tokens",
        _SPECULATIVE_KEY,
        keeps_value=True,
    ),
    Successor(
        "--ngram-prompt-lookup-max", "--speculative-config.prompt_lookup_max", _SPECULATIVE_KEY, keeps_value=True
    ),
    Successor(
        "--ngram-prompt-lookup-min", "--speculative-config.prompt_lookup_min", _SPECULATIVE_KEY, keeps_value=True
    ),
    Successor(
        "--speculative-model-quantization", "--speculative-config.quantization", _SPECULATIVE_KEY, keeps_value=True
    ),
    Successor("--speculative-max-model-len", "--speculative-config.max_model_len", _SPECULATIVE_KEY, keeps_value=True),
    Successor(
        "--speculative-draft-tensor-parallel-size",
        "--speculative-config.draft_tensor_parallel_size",
        _SPECULATIVE_KEY,
        keeps_value=True,
    ),
    Successor(
        "--speculative-disable-by-batch-size",
        "--speculative-config.disable_by_batch_size",
        _SPECULATIVE_KEY,
        keeps_value=True,
    ),
    Successor("--override-neuron-config", "--additional-config", "platform settings go there", keeps_value=True),
    Successor("--device", None, "the platform of the installed vLLM decides it"),
    Successor("--worker-use-ray", "--distributed-executor-backend", "it is named ray there", value="ray"),
    Successor("--engine-use-ray", "--distributed-executor-backend", "it is named ray there", value="ray"),
    Successor("--enable-lora-bias", None, "biases of LoRA adapters are no longer taken"),
    Successor(
        "--max-context-len-to-capture",
        None,
        "CUDA graphs are captured by batch size (--cudagraph-capture-sizes), not by length",
    ),
    Successor("--attention-backend", None, "before 0.13 the variable says it", variable="VLLM_ATTENTION_BACKEND"),
    Successor(
        "--kv-cache-memory",
        "--gpu-memory-utilization",
        "before 0.10.2 only the share of the memory can be given",
        by_hand=True,
    ),
    Successor(
        "--kv-cache-memory-bytes",
        "--gpu-memory-utilization",
        "before 0.10.2 only the share of the memory can be given",
        by_hand=True,
    ),
    Successor("--runner", "--task", "before 0.10 --task says it", by_hand=True),
    Successor("--enable-log-requests", None, "before 0.10 requests are logged unless --disable-log-requests is given"),
    Successor("--spec-method", "--speculative-config.method", _SPECULATIVE_KEY, keeps_value=True),
    Successor("--spec-model", "--speculative-config.model", _SPECULATIVE_KEY, keeps_value=True),
    Successor(
        "--spec-tokens",
        "--speculative-config.num_speculative_tokens",
        _SPECULATIVE_KEY,
        keeps_value=True,
    ),
    Successor("--all2all-backend", None, "before 0.12 the variable says it", variable="VLLM_ALL2ALL_BACKEND"),
    Successor("--lora-path", "--lora-modules", "adapters are given as NAME=PATH, with --enable-lora", by_hand=True),
    Successor("--enable-metrics", None, "metrics are always on"),
    Successor("--omni", None, "it belongs to the package vllm-omni"),
    Successor("--stage-configs-path", None, "it belongs to the package vllm-omni"),
    Successor(
        "--log-config-file",
        "--logging-config.pylogging_config_file",
        "it is a key of --logging-config",
        keeps_value=True,
    ),
    Successor("-cc", "--compilation-config", "the short name came with 0.12", keeps_value=True),
    Successor("--context-length", "--max-model-len", "that is its name in vLLM", keeps_value=True),
    Successor("--max-seq-len", "--max-model-len", "that is its name in vLLM", keeps_value=True),
    Successor("--tp-size", "--tensor-parallel-size", "that is its name in vLLM", keeps_value=True),
    Successor("--tp", "--tensor-parallel-size", "that is its name in vLLM", keeps_value=True),
    Successor("--pp", "--pipeline-parallel-size", "that is its name in vLLM", keeps_value=True),
    Successor("--dp", "--data-parallel-size", "that is its name in vLLM", keeps_value=True),
    Successor("--ep", "--enable-expert-parallel", "that is its name in vLLM"),
    Successor("--model-path", "--model", "that is its name in vLLM", keeps_value=True),
    Successor("--gpu-memory-fraction", "--gpu-memory-utilization", "that is its name in vLLM", keeps_value=True),
    Successor("--mem-fraction-static", "--gpu-memory-utilization", "that is its name in vLLM", keeps_value=True),
)
_BY_NAME = {successor.old: successor for successor in SUCCESSORS}


def find_successor(name: str, registry: Registry) -> Successor | None:
    """What replaces an unknown flag in this release: nothing that the release lacks, too."""
    successor = _BY_NAME.get(name)
    if successor is None or (successor.name is not None and registry.find(successor.name.partition(".")[0]) is None):
        return None
    return successor
