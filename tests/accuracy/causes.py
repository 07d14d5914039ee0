"""Which of our causes say what went wrong with a line of the corpus, by the corpus's label. Checked by reading every line.

A cause of the same name as the label is right as well.
"""

RIGHT_CAUSES: dict[str, frozenset[str]] = {
    label: frozenset(causes.split())
    for label, causes in {
        # What the parser refuses
        "plugin_flag": "unknown_flag",
        "device_flag": "unknown_flag removed_flag ambiguous_flag weight_offload_on_cpu",
        "stray_serve_in_image_args": "serve_after_unknown_image stray_word",
        "json_quoting": "quotes_inside_quotes",
        "compilation_config_number": "json_quoting",
        "mm_limit_not_json": "json_quoting",
        "unknown_reasoning_parser": "unknown_reasoning_parser value_not_a_choice",
        # What fails at start
        "pp_with_spec": "pp_with_old_spec_flags",
        "pp_unsupported_arch": "pp_with_spec pp_unsupported_arch",
        "offload_hybrid_no_hma": "hybrid_offload_needs_hybrid_manager",
        "model_too_new": "architecture_not_in_release",
        "quantization_mismatch": "quantization_mismatch quantization_contradicts_name gguf_beside_quantized_config",
        "batched_tokens_below_block": "batched_tokens_below_block default_batch_may_be_below_block",
        "hf_override_wrong_level": "hf_override_maybe_wrong_level yarn_override_misplaced",
        "dcp_needs_tp_over_kv_heads": "dcp_impossible",
        "kv_too_small_for_max_len": "memory_cannot_tell",
        "backend_eats_kv": "kv_too_small_for_max_len memory_cannot_tell",
        "graph_capture_oom": "graphs_outside_profile",
        "nvfp4_kv_consumer": "nvfp4_kv_consumer no_backend_for_kv_dtype",
        "fp8_kv_unsupported": "no_backend_for_kv_dtype backend_refuses_kv_dtype sparse_kv_dtype_on_other_model "
        "sparse_kv_dtype_model_unknown fp8_kv_needs_fa3 fp8_kv_unsupported kv_dtype_on_forced_backend value_not_a_choice",
        "rocm_consumer": "backend_not_on_platform unknown_attention_backend",
        # What starts and does not do what it says
        "wrong_tool_parser": "parser_wrong_family",
        "partial_prefills_ignored": "removed_flag",
        "prefix_cache_block_too_big": "hybrid_hits_are_coarse",
        "fp8_kv_ignored": "fp8_kv_needs_fa3",
    }.items()
}
