"""What `launch` and `measure` are told, taken from a plan."""

from longreach.launch.spec import ExpectedEngine, LaunchSpec
from longreach.measure.target import ExpectedServer, ExpectedSpeed, VerifyTarget
from longreach.plan.values import InstancePlan, Plan


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
        kv_cache_dtype=options.kv_cache_dtype,
        tensor_parallel_size=options.tensor_parallel_size,
        pipeline_parallel_size=options.pipeline_parallel_size,
        data_parallel_size=options.data_parallel_size,
        release=plan.release,
    )


def verify_target(plan: Plan, instance: InstancePlan, tokenizer: str | None, api_key_env: str | None) -> VerifyTarget:
    """The running instance with everything the plan promises of it."""
    cache, options = instance.kv_cache, instance.options
    speed = instance.speed[0] if instance.speed else None
    expected = ExpectedServer(
        release=plan.release,
        max_model_len=instance.max_model_len,
        kv_capacity_tokens=cache.kv_capacity_tokens if cache else None,
        max_concurrency=cache.max_concurrency if cache else None,
        block_size=cache.block_size if cache else None,
        num_blocks=cache.num_blocks if cache else None,
        kv_cache_dtype=options.kv_cache_dtype,
        capacity_is_exact=cache is not None and cache.certainty == "exact",
        prefix_caching=options.enable_prefix_caching is not False,
        speculation=options.speculative is not None,
        is_hybrid=plan.model.is_hybrid,
        is_deterministic=plan.machine.device_type == "cpu",
        speed=ExpectedSpeed(speed.prompt_tokens, speed.ttft_cold_s, speed.ttft_warm_s, speed.decode_tokens_per_s)
        if speed
        else None,
    )
    return VerifyTarget(
        base_url=instance.base_url,
        model=options.served_model_name or options.model,
        api_key_env=api_key_env,
        tokenizer=tokenizer or options.model,
        expected=expected,
    )
