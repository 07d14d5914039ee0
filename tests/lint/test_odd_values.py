"""No value, however odd, breaks lint or makes it slow: what cannot be is a finding."""

import random
import time
from collections.abc import Iterator

import pytest

from longreach.cli.planning import find_machine
from longreach.engine.options import ServeCommand
from longreach.engine.parsing.ranges import RANGES
from longreach.engine.registry import get_registry
from longreach.engine.release import get_release
from longreach.lint.check import Surroundings, lint_command
from longreach.lint.fix import fix_command
from longreach.model.source import load_model

_WORDS = (
    "0 -1 3 7 131072 100000000 2147483648 nan inf -inf 1e9 1e-300 -0.5 1.5 auto None true 10G 1.5G $X -- - -5k int4"
)
VALUES = (
    *_WORDS.split(),
    *("", "\x00", "9" * 20, "9" * 400, "9" * 300 + ".5k", "[" * 5000, '{"a":' * 300 + "1" + "}" * 300),
    *("{}", "[]", "{", '"a"', "null", '{"max_position_embeddings":0}'),
    '{"rope_parameters":{"rope_type":"yarn","factor":1e400,"original_max_position_embeddings":0}}',
    '{"rope_scaling":{"rope_type":"yarn","factor":NaN}}',
    '{"method":"ngram","num_speculative_tokens":99999999999999999999,"prompt_lookup_max":-3}',
    '{"kv_connector":"OffloadingConnector","kv_role":"kv_both","kv_connector_extra_config":{"cpu_bytes_to_use":-5}}',
    '{"text_config":{"num_attention_heads":0,"num_key_value_heads":-1,"head_dim":1e9}}',
)
JSON_FLAGS = (
    "--hf-overrides",
    "--speculative-config",
    "--kv-transfer-config",
    "--compilation-config",
    "--rope-scaling",
)
OTHERS = ("--dtype", "--kv-cache-dtype", "--quantization", "--rope-theta", "-tp", "-c", "--tp", "--additional-config.a")


def odd_lines(version: str, number: int) -> Iterator[ServeCommand]:
    """`number` commands of one to four flags, half of them from all that the release has."""
    chance = random.Random(version)
    usual, every = (*RANGES, *JSON_FLAGS, *OTHERS), tuple(get_registry(get_release(version).version).flags)
    for _ in range(number):
        words = ["vllm", "serve", "m"]
        for _ in range(chance.randint(1, 4)):
            flag, value = chance.choice(chance.choice((usual, every))), chance.choice(VALUES)
            words += [f"{flag}={value}"] if chance.random() < 0.3 else [flag, value]
        yield ServeCommand(tuple(words), ())


@pytest.mark.parametrize("version", ["0.8.5", "0.10.2", "0.11.2", "0.14.1", "0.26.0", "0.33.0"])
def test_odd_values_end_in_findings_and_soon(version: str) -> None:
    release = get_release(version)
    machines = [find_machine(gpus=gpus, link=None, ram=None, numa=None) for gpus in ("2xRTX4090", "8xH100")]
    models = [load_model(name) for name in ("llama-3.3-70b", "deepseek-v3", "qwen3-next-80b-a3b")]
    for index, command in enumerate(odd_lines(version, 60)):
        around = Surroundings(models[index % 3], machines[index % 2] if index % 5 else None)
        started = time.monotonic()
        report = lint_command(command, release, around)
        assert time.monotonic() - started < 1, command
        if index % 10 == 0:
            assert len(fix_command(command, release, around).left) <= len(report.findings), command
