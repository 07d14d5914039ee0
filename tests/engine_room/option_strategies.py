"""Any options that hold together by themselves, drawn at random."""

from hypothesis import strategies as st

from longreach.engine.options import EngineOptions, OffloadOptions, SpeculativeOptions, YarnOptions

texts = st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0"), min_size=1).filter(
    lambda text: not text.startswith("-") and text != "None"
)
counts = st.integers(1, 2**50)
json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | texts,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(texts, inner, max_size=3),
    max_leaves=6,
)


def pairs(values: st.SearchStrategy[object], *reserved: str) -> st.SearchStrategy[tuple[tuple[str, object], ...]]:
    keys = texts.filter(lambda key: key not in reserved)
    return st.dictionaries(keys, values, max_size=3).map(lambda items: tuple(items.items()))


@st.composite
def speculations(draw: st.DrawFn) -> SpeculativeOptions:
    written = ("method", "num_speculative_tokens", "use_local_argmax_reduction", "prompt_lookup_max")
    method = draw(st.sampled_from(["mtp", "ngram", "eagle3", "draft_model"]))
    return SpeculativeOptions(
        method,
        draw(counts),
        use_local_argmax_reduction=draw(st.booleans()),
        prompt_lookup_max=draw(st.none() | counts),
        extra=draw(pairs(json_values, *written)),
    )


@st.composite
def offloads(draw: st.DrawFn) -> OffloadOptions:
    disk = draw(st.none() | texts)
    threads = st.none() if disk is None else st.none() | counts
    own_spec = draw(st.none() | st.tuples(st.just("package.module"), st.just("Spec")))
    return OffloadOptions(
        draw(counts),
        disk_path=disk,
        eviction_policy=draw(st.sampled_from(["lru", "arc"])),
        num_disk_read_threads=draw(threads),
        num_disk_write_threads=draw(threads),
        offload_prompt_only=draw(st.none() | st.booleans()),
        blocks_per_chunk=draw(st.none() | counts),
        spec_module_path=own_spec and own_spec[0],
        spec_name=own_spec and own_spec[1],
        extra=draw(st.sampled_from([(), (("max_tracker_size", 5), ("n_read_threads", 4))])),
    )


@st.composite
def yarns(draw: st.DrawFn) -> YarnOptions:
    return YarnOptions(
        draw(st.floats(1, 64) | st.integers(1, 64).map(float)),
        draw(st.integers(1, 2**24)),
        draw(st.sampled_from([(), ("text_config",), ("thinker_config", "text_config")])),
        draw(pairs(json_values)),
    )


@st.composite
def engine_options(draw: st.DrawFn) -> EngineOptions:
    """Any options that hold together by themselves."""
    tp, pp, seqs = draw(st.integers(1, 16)), draw(st.integers(1, 8)), draw(st.none() | st.integers(1, 4096))
    length = draw(st.none() | counts)
    flag = st.none() | st.booleans()
    tool_parser = draw(st.none() | texts)
    numa_nodes = draw(st.none() | st.lists(st.integers(0, 7), min_size=tp * pp, max_size=tp * pp).map(tuple))
    kv_bytes = draw(st.none() | counts)
    batch = draw(st.none() | st.integers(seqs or 1, 2**30))
    chunked = flag if batch is None or length is None or batch >= length else st.none() | st.just(True)
    return EngineOptions(
        model=draw(texts),
        served_model_name=draw(st.none() | texts),
        host=draw(texts),
        port=draw(st.integers(1, 65535)),
        tensor_parallel_size=tp,
        pipeline_parallel_size=pp,
        data_parallel_size=draw(st.integers(1, 8)),
        decode_context_parallel_size=draw(st.sampled_from([n for n in range(1, tp + 1) if tp % n == 0])),
        max_model_len=length,
        max_model_len_auto=length is None and draw(st.booleans()),
        dtype=draw(st.none() | st.sampled_from(["auto", "bfloat16"])),
        quantization=draw(st.none() | texts),
        kv_cache_dtype=draw(st.none() | st.sampled_from(["auto", "fp8_e4m3", "nvfp4", "turboquant_k8v4"])),
        kv_cache_memory_bytes=kv_bytes,
        gpu_memory_utilization=draw(st.none() | st.floats(0.01, 1)) if kv_bytes is None else None,
        block_size=draw(st.none() | counts),
        enable_prefix_caching=draw(flag),
        enable_chunked_prefill=draw(chunked),
        max_num_batched_tokens=batch,
        max_num_seqs=seqs,
        scheduler_reserve_full_isl=draw(flag),
        async_scheduling=draw(flag),
        speculative=draw(st.none() | speculations()),
        offload=draw(st.none() | offloads()),
        yarn=draw(st.none() | yarns()),
        limit_mm_per_prompt=draw(st.none() | pairs(st.integers(0, 99))),  # type: ignore[arg-type] # values are integers
        mm_processor_kwargs=draw(st.none() | pairs(json_values)),
        mm_ipc_gpu_memory_gb=draw(st.none() | st.floats(0, 1e4)),
        language_model_only=draw(flag),
        cudagraph_mode=draw(st.none() | st.sampled_from(["NONE", "PIECEWISE", "FULL_AND_PIECEWISE"])),
        compilation_extra=draw(st.sampled_from([(), (("mode", 3), ("custom_ops", ["+rms_norm"]))])),
        enforce_eager=draw(flag),
        disable_custom_all_reduce=draw(flag),
        disable_hybrid_kv_cache_manager=draw(flag),
        numa_bind=True if numa_nodes is not None else draw(flag),
        numa_bind_nodes=numa_nodes,
        reasoning_parser=draw(st.none() | texts),
        tool_call_parser=tool_parser,
        enable_auto_tool_choice=draw(flag) if tool_parser is not None else draw(st.none() | st.just(False)),
        enable_prompt_tokens_details=draw(flag),
        trust_remote_code=draw(flag),
        extra_args=draw(
            st.sampled_from(
                [(), ("--seed", "1"), ("--cudagraph-capture-sizes", "1", "2", "--enable-lora", "-asc", "2")]
            )
        ),
        env=draw(st.sampled_from([(), (("VLLM_X", "a b"), ("Y", ""))])),
    )
