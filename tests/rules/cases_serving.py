"""Deployments on which the rules of `multimodal`, `parsers` and `speed` speak, and near ones on which they stay silent."""

from dataclasses import replace

from tests.rules.case import Case
from tests.rules.deployments import DENSE, HYBRID, SPEED_750K, with_model, with_options

from longreach.forecast.values import Span
from longreach.rules import multimodal, network, parsers, speed

_IMAGES = {"limit_mm_per_prompt": (("image", 4),), "mm_processor_kwargs": (("max_pixels", 1_000_000),)}
_UNKNOWN_PARSERS = with_model(HYBRID, tool_call_parsers=(), reasoning_parsers=())
_AUTO = {"enable_auto_tool_choice": True, "tool_call_parser": "qwen3_coder"}
_SHORT = replace(
    SPEED_750K,
    prompt_tokens=32_768,
    num_prefill_chunks=4,
    work=replace(SPEED_750K.work, linear_flops=1.6e15, attention_flops=0.21e15),
    ttft_cold_s=Span(9, 14, lower_bound=6),
)
_SLOW = replace(SPEED_750K, decode_tokens_per_s=Span(3, 6, upper_bound=8))

CASES = (
    Case(multimodal.mm_options_on_text_model, with_options(DENSE, **_IMAGES), (DENSE, with_options(HYBRID, **_IMAGES))),
    Case(
        multimodal.mm_ipc_taken_from_kv,
        with_options(HYBRID, mm_ipc_gpu_memory_gb=1.5),
        (HYBRID, with_options(HYBRID, mm_ipc_gpu_memory_gb=0.0), with_options(DENSE, mm_ipc_gpu_memory_gb=1.5)),
    ),
    Case(
        multimodal.mm_limits_unset,
        HYBRID,
        (DENSE, with_options(HYBRID, **_IMAGES), with_options(HYBRID, language_model_only=True)),
    ),
    Case(
        network.open_to_network,
        with_options(HYBRID, host="0.0.0.0"),
        (
            HYBRID,
            with_options(HYBRID, host="localhost"),
            with_options(HYBRID, host="[::1]"),
            with_options(HYBRID, host="::", env=(("VLLM_API_KEY", "from a secret store"),)),
            with_options(HYBRID, host="10.0.0.5", extra_args=("--api-key", "sesame")),
        ),
    ),
    Case(
        parsers.parser_without_auto_tool,
        with_options(HYBRID, tool_call_parser="qwen3_coder"),
        (HYBRID, with_options(HYBRID, **_AUTO)),
    ),
    Case(
        parsers.auto_tool_choice_without_parser,
        with_options(HYBRID, enable_auto_tool_choice=True),
        (HYBRID, with_options(HYBRID, **_AUTO)),
    ),
    Case(parsers.tool_parser_unset, HYBRID, (_UNKNOWN_PARSERS, with_options(HYBRID, **_AUTO))),
    Case(parsers.reasoning_parser_missing, HYBRID, (_UNKNOWN_PARSERS, with_options(HYBRID, reasoning_parser="qwen3"))),
    Case(
        parsers.parser_wrong_family,
        with_options(HYBRID, enable_auto_tool_choice=True, tool_call_parser="hermes"),
        (HYBRID, with_options(HYBRID, **_AUTO), with_options(_UNKNOWN_PARSERS, tool_call_parser="hermes")),
    ),
    Case(
        parsers.prompt_tokens_details_off,
        HYBRID,
        (with_options(HYBRID, enable_prompt_tokens_details=True), with_options(HYBRID, enable_prefix_caching=False)),
    ),
    Case(
        speed.ttft_wish_below_bound,
        replace(HYBRID, ttft_wish_s=60),
        (HYBRID, replace(HYBRID, ttft_wish_s=300), replace(DENSE, ttft_wish_s=60)),
    ),
    Case(
        speed.ttft_wish_unlikely,
        replace(HYBRID, ttft_wish_s=300),
        (HYBRID, replace(HYBRID, ttft_wish_s=60), replace(HYBRID, ttft_wish_s=500), replace(DENSE, ttft_wish_s=300)),
    ),
    Case(speed.client_times_out, HYBRID, (DENSE, replace(HYBRID, speed=(_SHORT,)))),
    Case(
        speed.decode_slower_than_reading,
        replace(HYBRID, speed=(_SLOW, _SHORT)),
        (HYBRID, DENSE, replace(HYBRID, speed=(replace(SPEED_750K, decode_tokens_per_s=Span(None, None)),))),
    ),
    Case(
        speed.attention_outgrows_weights,
        HYBRID,
        (
            DENSE,
            replace(HYBRID, speed=(_SHORT,)),
            replace(HYBRID, speed=(replace(SPEED_750K, work=replace(SPEED_750K.work, linear_flops=None)),)),
        ),
    ),
)
