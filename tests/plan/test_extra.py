import pytest
from tests.plan.test_choices import plan_for

from longreach.engine.release import get_release
from longreach.errors import UsageError
from longreach.plan.extra import read_extra
from longreach.plan.goal import Goal

RELEASE = get_release("0.32.0")


@pytest.mark.parametrize(
    ("words", "fields", "rest"),
    [
        ("", {}, ""),
        ("--dtype half --trust-remote-code", {"dtype": "half", "trust_remote_code": True}, ""),
        ("--no-async-scheduling", {"async_scheduling": False}, ""),
        ("-cc.mode=3", {"cudagraph_mode": None, "compilation_extra": (("mode", 3),)}, ""),
        ("--enable-lora --max-lora-rank 64", {}, "--enable-lora --max-lora-rank 64"),
        ('--hf-overrides {"architectures":["A"]}', {}, '--hf-overrides {"architectures":["A"]}'),
        (
            '--kv-transfer-config {"kv_connector":"X","kv_role":"kv_both"}',
            {},
            '--kv-transfer-config {"kv_connector":"X","kv_role":"kv_both"}',
        ),
    ],
    ids=["nothing", "fields", "off", "dotted", "unknown", "another override", "another connector"],
)
def test_known_flags_fill_fields_and_others_travel_untouched(words: str, fields: dict[str, object], rest: str) -> None:
    extra = read_extra(words.split(), RELEASE)
    assert (dict(extra.fields), extra.rest) == (fields, tuple(rest.split()))


@pytest.mark.parametrize(
    ("words", "what", "fix"),
    [
        ("--max-model-len 5", "--max-model-len stands after --", "give --max-model-len before"),
        ("-tp 4", "--tensor-parallel-size", "give --tp before"),
        ("--spec-tokens 3", "--spec-tokens", "give --spec before"),
        ("--api-key sesame", "--api-key", "VLLM_API_KEY"),
        ("--hf_token=sesame", "--hf-token", "HF_TOKEN"),
        ("stray", "'stray' stands after --", "remove 'stray'"),
        ("--model other", "--model stands after --", "name it before the dashes"),
        ("--foo 5", "vLLM 0.32.0 has no --foo", "remove --foo"),
        ("--config x.yaml", "--config stands after --", "one by one after the dashes"),
        ("--num_gpu_blocks_override 10", "--num-gpu-blocks-override", "give --kv-cache-memory-bytes before"),
        ("--hf-overrides={", "--hf-overrides after -- is no JSON object", "leave it out"),
        ('--hf-overrides={"num_hidden_layers":1}', "sets num_hidden_layers", "config.json"),
        ("--hf-overrides.text_config.num_hidden_layers 1", "sets text_config", "config.json"),
        ('--hf-overrides={"rope_parameters":{"rope_type":"linear"}}', "sets rope_parameters", "--yarn"),
        ("--mamba-block-size 64", "--mamba-block-size", "plan.yaml"),
        ("--limit-mm-per-prompt {", "--limit-mm-per-prompt", "--limit-mm-per-prompt '{}'"),
    ],
)
def test_what_a_plan_decides_and_secrets_are_sent_back(words: str, what: str, fix: str) -> None:
    with pytest.raises(UsageError) as caught:
        read_extra(words.split(), RELEASE)
    assert what in caught.value.what
    assert fix in caught.value.fix
    assert "sesame" not in str(caught.value)


def test_a_wider_dtype_takes_twice_the_bytes() -> None:
    plain, wide = (plan_for("qwen3-8b", "1xH100", Goal(extra_args=words)) for words in ((), ("--dtype", "float32")))
    narrow_cache, wide_cache = plain.instances[0].kv_cache, wide.instances[0].kv_cache
    assert narrow_cache is not None
    assert wide_cache is not None
    assert wide_cache.bytes_per_block == 2 * narrow_cache.bytes_per_block
    assert wide.instances[0].memory is not None
    assert wide.instances[0].memory.weights_source.endswith("as float32")
    assert "--dtype" in wide.instances[0].argv


def test_an_unknown_dtype_is_named() -> None:
    with pytest.raises(UsageError, match="--dtype 'floot16'") as caught:
        plan_for("qwen3-8b", "1xH100", Goal(extra_args=("--dtype", "floot16")))
    assert "float16" in caught.value.fix


def test_flags_that_change_the_layout_are_counted() -> None:
    def tokens(*words: str) -> int:
        cache = plan_for("gemma-3-27b", "2xH100", Goal(extra_args=words)).instances[0].kv_cache
        assert cache is not None
        return cache.kv_capacity_tokens

    assert tokens("--disable-hybrid-kv-cache-manager") < tokens() < tokens("--no-async-scheduling")


@pytest.mark.parametrize(("model", "dtype"), [("qwen3-0.6b", "float16"), ("gemma-3-1b", "float32")])
def test_a_card_without_bfloat16_runs_and_counts_another_type(model: str, dtype: str) -> None:
    old, new = (plan_for(model, gpus, Goal(max_model_len=4096)) for gpus in ("1xT4", "1xL4"))
    assert (old.verdict, new.verdict) == ("fits", "fits")
    (finding,) = (finding for finding in old.findings if finding.cause == "dtype_falls_back")
    assert f"runs as {dtype}" in finding.what
    old_cache, new_cache = old.instances[0].kv_cache, new.instances[0].kv_cache
    assert old_cache is not None
    assert new_cache is not None
    assert old_cache.bytes_per_block == new_cache.bytes_per_block * (2 if dtype == "float32" else 1)


@pytest.mark.parametrize(
    ("words", "eager", "text_only"),
    [
        ((), False, False),
        (("--enforce-eager",), True, False),
        (("--language-model-only",), False, True),
        (("--limit-mm-per-prompt", '{"image": 0, "video": 0}'), False, True),
        (("--limit-mm-per-prompt", '{"image": 0}'), False, False),
    ],
    ids=["plain", "eager", "text alone", "no image and no video", "video remains"],
)
def test_what_profiling_leaves_out_is_known(words: tuple[str, ...], eager: bool, text_only: bool) -> None:
    extra = read_extra(words, RELEASE)
    assert (extra.enforce_eager, extra.text_only) == (eager, text_only)


def test_a_text_model_leaves_more_to_kv() -> None:
    both = [plan_for("qwen3.6-27b", "1xH100", Goal(extra_args=words)) for words in ((), ("--language-model-only",))]
    whole, text = (plan.instances[0].memory for plan in both)
    assert whole is not None
    assert text is not None
    assert text.weights_bytes is not None
    assert whole.weights_bytes is not None
    assert text.weights_bytes[0] < whole.weights_bytes[0]


@pytest.mark.parametrize(
    ("goal", "clash"),
    [
        (Goal(images_per_prompt=1, extra_args=("--limit-mm-per-prompt", '{"image":2}')), "with --images-per-prompt"),
        (Goal(cudagraph_mode="NONE", extra_args=("-cc.mode=3",)), "--compilation-config after -- clashes"),
        (
            Goal(cpu_tier_bytes=2**30, extra_args=('--kv-transfer-config={"kv_connector":"X","kv_role":"kv_both"}',)),
            "with --cpu-tier",
        ),
        (Goal(extra_args=("--quantization", "fp8")), "--quantization fp8 stands after --"),
    ],
    ids=["images", "graphs", "connector", "quantization"],
)
def test_what_says_otherwise_than_the_plan_counts_is_refused(goal: Goal, clash: str) -> None:
    with pytest.raises(UsageError) as caught:
        plan_for("qwen3-8b", "1xH100", goal)
    assert clash in caught.value.what
    assert "--" in caught.value.fix


@pytest.mark.parametrize(
    ("model", "words"),
    [
        ("qwen3-32b", ("--kv-cache-dtype-skip-layers", "0", "1", "2", "3")),
        ("qwen3.6-27b", ("--mamba-ssm-cache-dtype", "bfloat16")),
        ("granite-4.0-h-small", ("--mamba-ssm-cache-dtype=float32",)),
    ],
    ids=["layers left at the model's dtype", "state of a delta net", "state of Mamba"],
)
def test_flags_that_change_what_is_stored_are_counted(model: str, words: tuple[str, ...]) -> None:
    plain, changed = (
        plan_for(model, "2xH100", Goal(kv_cache_dtype="fp8_e4m3", kv_cache_memory_bytes=2**34, extra_args=extra))
        for extra in ((), words)
    )
    before, after = plain.instances[0].kv_cache, changed.instances[0].kv_cache
    assert before is not None
    assert after is not None
    assert after.kv_capacity_tokens != before.kv_capacity_tokens
