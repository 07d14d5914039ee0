"""Edits for what the parser refuses: the finding is gone, and nothing else went with it."""

import shlex

import pytest
from tests.rules.commands import command, written

from longreach.engine.release import get_release
from longreach.lint.check import read_written
from longreach.lint.edits import apply_edit
from longreach.rules.finding import Finding
from longreach.rules.written_parser import RULES


def findings(line: str, version: str) -> list[Finding]:
    subject = written(line, version)
    return [finding for rule in RULES for finding in rule.check(subject)]


def mended(line: str, version: str = "0.32.0") -> str:
    """The line after the edit of each finding, one after the other."""
    words = command(line)
    for _ in range(9):
        subject = read_written(words, get_release(version))
        edit = next((found.edit for rule in RULES for found in rule.check(subject) if found.edit is not None), None)
        if edit is None:
            break
        words = apply_edit(words, subject.parsed, edit)
    return shlex.join([*(f"{name}={value}" for name, value in words.env), *words.argv[2:]])


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        ("m --swap-space 4 --port 1", "m --port 1"),
        ("m --disable-log-requests --port 1", "m --port 1"),
        ("m --tool-call-parser-plugin p.py", "m --tool-parser-plugin p.py"),
        ("m --guided-decoding-backend xgrammar", "m --structured-outputs-config.backend xgrammar"),
        ("m --disable-mm-preprocessor-cache", "m --mm-processor-cache-gb 0"),
        ("m --disable-prefix-caching", "m --no-enable-prefix-caching"),
        ("m --task embed", "m --runner pooling --convert embed"),
        ("m --max-modle-len 4096", "m --max-model-len 4096"),
        ("m -tp4 -language-model-only", "m --tensor-parallel-size 4 --language-model-only"),
        ("m '--host 127.0.0.1' --port 1", "m --port 1 --host 127.0.0.1"),
        ("m word --port 1", "m --port 1"),
        ("m --port 1 --seed", "m --port 1"),
        ("m --enforce-eager=false", "m --no-enforce-eager"),
        ("m --max-model-len 750,000", "m --max-model-len 750000"),
        ("m --kv-cache-memory-bytes 10GiB", "m --kv-cache-memory-bytes 10G"),
        ("m --port x --port 8000", "m --port 8000"),
        ("m --dtype bf16", "m --dtype bfloat16"),
        ("m --hf-overrides \"{'a': 1}\"", "m --hf-overrides '{\"a\": 1}'"),
        ("m --hf-overrides {a: b, c: 1} --port 1", 'm --hf-overrides \'{"a": "b", "c": 1}\' --port 1'),
        ('m -cc \'{"mode": 3, "use_inductor": true}\'', "m --compilation-config '{\"mode\":3}'"),
        ("m -cc.pass_config.fuse_act_qant=true", 'm --compilation-config \'{"pass_config":{"fuse_act_quant":true}}\''),
        (
            "m -cc.cudagraph_mode=PIECEWIS -cc.mode=3",
            'm --compilation-config \'{"cudagraph_mode":"PIECEWISE","mode":3}\'',
        ),
        (
            "m --kv-transfer-config.kv_connector OffloadingConnector",
            'm --kv-transfer-config \'{"kv_connector":"OffloadingConnector","kv_role":"kv_both"}\'',
        ),
        ('m --rope-scaling \'{"type": "yarn"}\'', 'm --hf-overrides \'{"rope_parameters":{"rope_type":"yarn"}}\''),
        (
            "m --rope-theta 1e6 --hf-overrides '{\"x\": 1}'",
            'm --hf-overrides \'{"x":1,"rope_parameters":{"rope_theta":1000000.0}}\'',
        ),
        ("m --max-num-seqs 8 --max-num-seqs 16", "m --max-num-seqs 16"),
        ("m --kv-cache-mem 10G", "m --kv-cache-memory-bytes 10G"),
        ("m --no-enable-prefix --help", "m --no-enable-prefix-caching"),
        ("m --config=c.yaml", "m --config c.yaml"),
        ("m --log-config-file c.json", "m --logging-config.pylogging_config_file c.json"),
    ],
)
def test_a_line_is_mended(line: str, expected: str) -> None:
    assert mended(line) == expected
    assert findings(expected, "0.32.0") == []


@pytest.mark.parametrize(
    ("line", "version", "expected"),
    [
        ("--port 1 --model m", "0.10.2", "m --port 1"),
        ("m --attention-backend FLASH_ATTN", "0.12.0", "VLLM_ATTENTION_BACKEND=FLASH_ATTN m"),
        (
            "m -cc.level=3 -cc.backend=eager",
            "0.11.2",
            "m --compilation-config.level 3 --compilation-config.backend eager",
        ),
        ("m -ep 1 -ep", "0.9.2", "m"),
        ("m --compilation-config.no_such_key 1", "0.12.0", "m --compilation-config '{}'"),
        (
            'm --rope-scaling \'{"rope_type": "yarn"}\'',
            "0.11.2",
            'm --hf-overrides \'{"rope_scaling":{"rope_type":"yarn"}}\'',
        ),
    ],
)
def test_a_line_is_mended_for_its_release(line: str, version: str, expected: str) -> None:
    assert mended(line, version) == expected


@pytest.mark.parametrize("line", ["m --max-num 8", "m --config c.json", "m --hf-overrides '{..}'", "m --lora-path x"])
def test_what_was_meant_is_not_guessed(line: str) -> None:
    assert [finding.edit for finding in findings(line, "0.32.0")] == [None]


_MODULE = "python3 -m vllm.entrypoints.openai.api_server"


@pytest.mark.parametrize(
    ("line", "version", "expected"),
    [
        (f"{_MODULE} --model m --tp 2", "0.8.5", "--model m --tensor-parallel-size 2"),
        (f"{_MODULE} --model m --tp 2 --pp=3", "0.33", "--model m --tensor-parallel-size 2 --pipeline-parallel-size 3"),
        (f"{_MODULE} --dp 2 --model m", "0.33", "--model m --data-parallel-size 2"),
        ("--tp 2 --dp 2 m", "0.33", "m --tensor-parallel-size 2 --data-parallel-size 2"),
        ("--tp 2 --model m", "0.33", "--model m --tensor-parallel-size 2"),
        ("--model m --ipc host", "0.10.2", "m"),
        (f"{_MODULE} --ipc host --model m", "0.11", "--model m"),
    ],
)
def test_a_word_behind_an_unknown_flag_goes_with_it(line: str, version: str, expected: str) -> None:
    module = "vllm.entrypoints.openai.api_server "
    assert mended(line, version) == (f"{module}{expected}" if module in line else expected)


@pytest.mark.parametrize(
    ("line", "version", "expected"),
    [
        ("m --enable-prefix-caching False", "0.33", "m --no-enable-prefix-caching"),
        ("m --enable-prefix-caching true --port 1", "0.33", "m --enable-prefix-caching --port 1"),
        ("m --no-enable-prefix-caching False", "0.33", "m --enable-prefix-caching"),
        ("m --no-enable-prefix-caching=true", "0.33", "m --no-enable-prefix-caching"),
        ("--enforce-eager 0 m", "0.33", "--no-enforce-eager m"),
        ("--enforce-eager True --port 1 m", "0.33", "--enforce-eager --port 1 m"),
        ("'$MODEL' --enforce-eager True", "0.33", "'$MODEL' --enforce-eager"),
        ("m --enforce-eager False", "0.8.5", "m"),
    ],
)
def test_a_word_behind_a_switch_turns_it_on_or_off(line: str, version: str, expected: str) -> None:
    assert mended(line, version) == expected


@pytest.mark.parametrize(
    ("line", "version", "expected"),
    [
        (
            "m --ngram-prompt-lookup-max 4 --num-speculative-tokens 3",
            "0.33",
            "m --speculative-config.prompt_lookup_max 4 --speculative-config.num_speculative_tokens 3",
        ),
        (
            'm --speculative-config \'{"method":"ngram"}\' --ngram-prompt-lookup-max 4',
            "0.33",
            'm --speculative-config \'{"method":"ngram","prompt_lookup_max":4}\'',
        ),
        (
            "m --speculative-model x --num-speculative-tokens 3",
            "0.8.5",
            'm --speculative-config \'{"model":"x","num_speculative_tokens":3}\'',
        ),
    ],
)
def test_a_flag_that_became_a_key_joins_the_object_that_stands(line: str, version: str, expected: str) -> None:
    assert mended(line, version) == expected


@pytest.mark.parametrize(
    ("flag", "meant"),
    [
        ("--gpu-mem-util", "--gpu-memory-utilization"),
        ("--gpu-memory-utilisation", "--gpu-memory-utilization"),
        ("--maxmodellen", "--max-model-len"),
        ("--tensor-parralel-size", "--tensor-parallel-size"),
        ("--tensor-parallelism", "--tensor-parallel-size"),
        ("--max-num-sequences", "--max-num-seqs"),
    ],
)
def test_a_misspelled_flag_is_put_right(flag: str, meant: str) -> None:
    assert mended(f"m {flag} 1", "0.33") == f"m {meant} 1"


@pytest.mark.parametrize("flag", ["--min-model-len", "--trust-code", "--max-len", "--kv-cache-data-type"])
def test_a_name_that_is_only_alike_is_told_and_not_written(flag: str) -> None:
    (found,) = findings(f"m {flag} 1", "0.33")
    assert found.fix.startswith("did you mean --")
    assert found.edit is None


def test_a_flag_of_another_release_is_no_misspelling() -> None:
    (found,) = findings("m --logits-processor-pattern x", "0.33")
    assert found.fix == "remove --logits-processor-pattern"
    assert mended("m --cudagraph-capture-sizes 8", "0.10.2") == "m --cuda-graph-sizes 8"


@pytest.mark.parametrize(("level", "has_edit"), [("3", True), ("32768", False), ("-1", False), ("true", False)])
def test_a_number_is_an_optimization_level_only_if_there_is_such_a_level(level: str, *, has_edit: bool) -> None:
    (found,) = findings(f"m --compilation-config={level}", "0.33")
    assert (found.edit is not None) is has_edit


@pytest.mark.parametrize(
    ("line", "what", "fix", "expected"),
    [
        (
            "m --gpu-memory-utilization -0.5 --port 1",
            "--gpu-memory-utilization -0.5 is read as two flags",
            "--gpu-memory-utilization=-0.5, if it may be negative",
            "m --port 1",
        ),
        (
            "m --max-num-seqs -5k",
            "--max-num-seqs -5k is read as two flags",
            "--max-num-seqs=-5k, if it may be negative",
            "m",
        ),
        ("m '' --port 1", "bare word '' in the command", "remove ''", "m --port 1"),
        (
            "m --worker-use-ray",
            "vLLM 0.32.0 has no --worker-use-ray",
            "use --distributed-executor-backend ray instead of --worker-use-ray",
            "m --distributed-executor-backend ray",
        ),
    ],
)
def test_a_refusal_is_told_in_the_words_that_were_written(line: str, what: str, fix: str, expected: str) -> None:
    assert [(found.what, found.fix) for found in findings(line, "0.32.0")] == [(what, fix)]
    assert mended(line) == expected


@pytest.mark.parametrize(
    ("line", "has_edit"),
    [
        ("m --kv-cache-dtype fp4", False),
        ("m --kv-cache-dtype FP8-E4M3", True),
        ("m --dtype bf16", True),
        ("m --dtype flaot16", True),
        ('m -cc \'{"cudagraph_mod": "NONE"}\'', True),
        ("m -cc '{\"cudagraphs\": true}'", False),
    ],
)
def test_a_value_or_key_is_guessed_only_where_it_can_be_no_other(line: str, *, has_edit: bool) -> None:
    assert [found.edit is not None for found in findings(line, "0.32.0")] == [has_edit]
