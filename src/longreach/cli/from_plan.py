"""What `launch` and `measure` are told, taken from a plan."""

from dataclasses import replace

from longreach.engine.attention import expected_attention_backends
from longreach.forecast.values import Span
from longreach.hardware.catalogue import find_gpu
from longreach.launch.spec import ExpectedEngine, LaunchSpec
from longreach.measure.target import ExpectedServer, ExpectedSpeed, VerifyTarget
from longreach.plan.values import InstancePlan, Plan

_NEAR_ENOUGH = 0.9
_ONE_BACKEND_KINDS = frozenset({"full_attention", "mla", "gated_delta", "kda", "mamba2", "mamba1", "short_conv"})


def launch_specs(plan: Plan) -> tuple[LaunchSpec, ...]:
    """One spec an instance, in the plan's order."""
    return tuple(
        LaunchSpec(
            name=instance.name,
            argv=instance.argv,
            host=instance.host,
            port=instance.port,
            env=instance.env,
            expected=_expected_engine(plan, instance),
        )
        for instance in plan.instances
    )


def _expected_engine(plan: Plan, instance: InstancePlan) -> ExpectedEngine:
    cache, options = instance.kv_cache, instance.options
    return ExpectedEngine(
        kv_certainty=cache.certainty if cache else "exact",
        kv_estimate_reason=cache.estimate_reason if cache else None,
        kv_capacity_tokens=cache.kv_capacity_tokens if cache else None,
        max_concurrency=cache.max_concurrency if cache else None,
        num_blocks=cache.num_blocks if cache else None,
        block_size=cache.block_size if cache else None,
        max_model_len=instance.max_model_len,
        kv_cache_dtype=options.kv_cache_dtype or "auto",
        attention_backend=_attention_backend(plan, instance),
        tensor_parallel_size=options.tensor_parallel_size,
        pipeline_parallel_size=options.pipeline_parallel_size,
        data_parallel_size=options.data_parallel_size,
        release=plan.release,
    )


def _attention_backend(plan: Plan, instance: InstancePlan) -> str | None:
    """What vLLM is expected to choose on these cards; None where that is not known, or the model narrows the choice."""
    kinds = plan.model.layer_kinds
    if plan.machine.gpu is None or not kinds.keys() <= _ONE_BACKEND_KINDS:
        return None
    gpu = find_gpu(plan.machine.gpu)
    dtype = instance.options.kv_cache_dtype or "auto"
    backends = expected_attention_backends(gpu.compute_capability, dtype, is_mla="mla" in kinds)
    return backends[0] if backends else None


def verify_target(plan: Plan, instance: InstancePlan, prompt_tokens: int) -> VerifyTarget:
    """The running instance with everything the plan promises of it; `prompt_tokens` is how long a prompt will be sent."""
    cache, options = instance.kv_cache, instance.options
    expected = ExpectedServer(
        release=plan.release,
        max_model_len=instance.max_model_len,
        kv_capacity_tokens=cache.kv_capacity_tokens if cache else None,
        max_concurrency=cache.max_concurrency if cache else None,
        block_size=cache.block_size if cache else None,
        num_blocks=cache.num_blocks if cache else None,
        kv_cache_dtype=options.kv_cache_dtype or "auto",
        capacity_is_exact=cache is not None and cache.certainty == "exact",
        prefix_caching=options.enable_prefix_caching is not False,
        speculation=options.speculative is not None,
        is_hybrid=plan.model.is_hybrid,
        is_deterministic=plan.machine.device_type == "cpu",
        speed=expected_speed(instance, prompt_tokens),
    )
    return VerifyTarget(
        base_url=instance.base_url,
        model=options.served_model_name or options.model,
        tokenizer=options.model,
        expected=expected,
    )


def expected_speed(instance: InstancePlan, prompt_tokens: int) -> ExpectedSpeed | None:
    """The forecast for a prompt of this length, from the nearest longer one; None when that is far longer.

    Prefill grows at most with the square of the length, and decode slows at most in proportion to it: so the forecast of a
    prompt 1/r as long, times r^2 (or over r), still bounds this one.
    """
    longer = [speed for speed in instance.speed if prompt_tokens <= speed.prompt_tokens]
    if not longer:
        return None
    nearest = min(longer, key=lambda speed: speed.prompt_tokens)
    ratio = prompt_tokens / nearest.prompt_tokens
    if ratio < _NEAR_ENOUGH:
        return None
    return ExpectedSpeed(
        prompt_tokens,
        _scaled(nearest.ttft_cold_s, ratio**2, 1),
        _scaled(nearest.ttft_warm_s, ratio, 1),
        _scaled(nearest.decode_tokens_per_s, 1, 1 / ratio),
    )


def _scaled(span: Span, least: float, most: float) -> Span:
    def times(value: float | None, factor: float) -> float | None:
        return None if value is None else value * factor

    return replace(
        span,
        lower_bound=times(span.lower_bound, least),
        low=times(span.low, least),
        high=times(span.high, most),
        upper_bound=times(span.upper_bound, most),
    )
