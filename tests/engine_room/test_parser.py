"""What vLLM's parser makes of foreign commands, release by release; docs of each kind of refusal by example."""

import shlex

import pytest

from longreach.engine.parser import ParsedCommand, parse_arguments
from longreach.engine.parsing.successors import SUCCESSORS, Successor
from longreach.engine.registry import REGISTRY_VERSIONS, get_registry, releases_with_flag
from longreach.errors import UsageError


def parse(line: str, version: str = "0.32.0", config: dict[str, object] | None = None) -> ParsedCommand:
    words = shlex.split(line)
    head = [] if words[0] in ("vllm", "python") else ["vllm", "serve"]
    return parse_arguments([*head, *words], get_registry(version), config)


def kinds(line: str, version: str = "0.32.0") -> list[str]:
    return [problem.kind for problem in parse(line, version).problems]


@pytest.mark.parametrize(
    ("line", "name", "value"),
    [
        ("m --tensor_parallel_size 4", "--tensor-parallel-size", "4"),
        ("m --tensor-parallel=4", "--tensor-parallel-size", "4"),
        ("m -tp 4", "--tensor-parallel-size", "4"),
        ("m -tp=4", "--tensor-parallel-size", "4"),
        ("m -t 4", "--tensor-parallel-size", "4"),
        ("m -n4", "--nnodes", "4"),
        ("m --port 1 --port 2", "--port", "2"),
        ("m --seed -1", "--seed", "-1"),
        ("m -O3", "--optimization-level", "3"),
        ("m -O=2", "--optimization-level", "2"),
        ("m -O 1", "--optimization-level", "1"),
        ("m --max-model-len ' 160K '", "--max-model-len", " 160K "),
        ("m --device-memory-utilization .9", "--gpu-memory-utilization", ".9"),
    ],
)
def test_a_value_is_found_under_the_flag_s_own_name(line: str, name: str, value: str) -> None:
    parsed = parse(line)
    assert (parsed.value(name), parsed.model, parsed.problems) == (value, "m", ())


@pytest.mark.parametrize(
    ("line", "version", "kind"),
    [
        ("m --swap-space 4", "0.32.0", "unknown_flag"),
        ("m --attention-backend X", "0.12.0", "unknown_flag"),
        ("m -tp4", "0.32.0", "unknown_flag"),
        ("m --max-num 4", "0.32.0", "ambiguous_flag"),
        ("m word", "0.32.0", "stray_word"),
        ("m -5", "0.32.0", "stray_word"),
        ("m --port", "0.32.0", "missing_value"),
        ("m --served-model-name --port 1", "0.32.0", "missing_value"),
        ("m -cc.mode", "0.32.0", "missing_value"),
        ("m --enforce-eager=true", "0.32.0", "unwanted_value"),
        ("m --max-num-seqs 4k", "0.32.0", "wrong_value"),
        ("m --max-model-len 1.5M", "0.32.0", "wrong_value"),
        ("m --max-model-len auto", "0.13.0", "wrong_value"),
        ("m --lora-modules name", "0.32.0", "wrong_value"),
        ("m --kv-cache-dtype nvfp4", "0.19.1", "wrong_choice"),
        ("m --hf-overrides '{a}'", "0.32.0", "bad_json"),
        ("m --kv-transfer-config '[]'", "0.32.0", "bad_json"),
        ("m --limit-mm-per-prompt image=4", "0.10.0", "bad_json"),
        ("m -cc.use_inductor=true", "0.32.0", "unknown_key"),
        ("m -cc.pass_config.no_such=true", "0.32.0", "unknown_key"),
        ("m -cc.cudagraph_mode=FULLL", "0.32.0", "wrong_key_value"),
        ("m -cc.cudagraph_capture_sizes+=a,b", "0.32.0", "wrong_key_value"),
        ("m --eplb-config.window_size 0", "0.32.0", "wrong_key_value"),
        ("m --kv-transfer-config.kv_connector X", "0.32.0", "rejected_settings"),
        ("--model m", "0.11.0", "model_option"),
        ("--served-model-name x --port 1", "0.17.1", "no_model"),
        ("m --config c.json", "0.32.0", "bad_config"),
        ("m --config a.yaml --config b.yaml", "0.32.0", "bad_config"),
        ("m --help", "0.32.0", "help"),
    ],
)
def test_each_refusal_is_told_by_its_kind(line: str, version: str, kind: str) -> None:
    assert kinds(line, version) == [kind]


@pytest.mark.parametrize(
    ("line", "version"),
    [
        ("m --swap-space 4", "0.17.1"),
        ("m --disable-log-requests --disable-prefix-caching --enable-cascade-attn", "0.33.0"),
        ("m --kv-cache-memory 10G", "0.10.2"),
        ("--model m --port 1", "0.11.2"),
        ("--served-model-name x --port 1", "0.16.0"),
        ("m --limit-mm-per-prompt image=4,video=1", "0.9.2"),
        ("m -O3", "0.8.5.post1"),
        ("m -O3", "0.11.2"),
        ("m -O.mode=3", "0.11.2"),
        ("m -cc.no_such_key=3", "0.12.0"),
        ("m --compilation-config \"{'level': 3}\"", "0.8.5.post1"),
        ("m --moe-backend DEEP-GEMM", "0.32.0"),
        ("m --speculative-config.no_such_key 3", "0.32.0"),
        ("m --kv-cache-memory-bytes None", "0.32.0"),
        ("m --kv-transfer-config '{\"kv_port\": 1k}'", "0.32.0"),
        ("m --eplb-config.window_size '\"4\"'", "0.32.0"),
        ("m --attention-config.backend auto --ir-op-priority.rms_norm a,b", "0.32.0"),
        ("python -m vllm.entrypoints.openai.api_server --model m", "0.8.5.post1"),
        ("python -m vllm.entrypoints.openai.api_server word", "0.32.0"),
    ],
)
def test_what_a_release_takes_is_no_problem(line: str, version: str) -> None:
    assert kinds(line, version) == []


@pytest.mark.parametrize(
    "line",
    [
        "$MODEL --port $PORT -tp ${TP} --max-num-seqs $(nproc)",
        "m $EXTRA_ARGS more",
        "m --$NAME 3",
        "m --hf-overrides '{\"a\": $N}'",
        'm --kv-transfer-config \'{"kv_port": "$P", "$KEY": 1}\'',
        "m -cc.mode=$MODE --dtype `cat dtype`",
        "m --config $FILE",
    ],
)
def test_an_open_variable_is_never_a_problem(line: str) -> None:
    words = ["vllm", "serve", *shlex.split(line)]
    for version in REGISTRY_VERSIONS[-3:]:
        assert parse_arguments(words, get_registry(version)).problems == ()


@pytest.mark.parametrize(
    ("line", "fix"),
    [
        ("m --kv-cache-memory-bytes 10GiB", "10G"),
        ("m --kv-cache-memory-bytes '10 GB'", "10g"),
        ("m --max-model-len 750,000", "750000"),
        ("m --max-num-batched-tokens 1.5K", "1.5k"),
        ("m --max-num-seqs 4k", "4000"),
        ("m --port 8000.0", "8000"),
        ("m --gpu-memory-utilization 90%", "0.9"),
        ("m --dtype BF16", "bfloat16"),
        ("m --kv-cache-dtype fp8-e4m3", "fp8_e4m3"),
        ("m --max-modle-len 4096", "--max-model-len"),
        ("m -max-model-len 4096", "--max-model-len"),
        ("m -tp4", "-tp=4"),
        ("m --disable-prefix-caching", "--no-enable-prefix-caching"),
        ("m --tool-call-parser-plugin p.py", "--tool-parser-plugin"),
        ("m --enforce-eager=false", "--no-enforce-eager"),
        ("m -cc.cudagraph_mod=NONE", "cudagraph_mode"),
        ("m --compilation-config 3", '{"mode": 3}'),
        ("m --limit-mm-per-prompt image=4", '{"image": 4}'),
        ("m --hf-overrides \"{'a': True,}\"", '{"a": true}'),
        ("m --hf-overrides '{{\"a\": 1}}'", '{"a": 1}'),
        ('m --hf-overrides \'{\\"a\\": {\\"b\\": 1}\'', '{"a": {"b": 1}}'),
        ("m --speculative-config '{method: mtp}'", '{"method": "mtp"}'),
        ("m --speculative-config {method: mtp, n: 1}", '{"method": "mtp", "n": 1}'),
    ],
)
def test_what_was_meant_is_proposed(line: str, fix: str) -> None:
    (problem,) = parse(line).problems
    assert problem.suggestion[0] == fix
    assert fix in problem.fix


def test_a_flag_says_in_which_releases_it_exists() -> None:
    (problem,) = parse("m --rope-scaling '{}'").problems
    assert "from 0.8.5.post1 to 0.11.0" in problem.why
    assert problem.suggestion == ("--hf-overrides",)


def test_from_0_33_on_enable_and_disable_are_halves_of_one_flag() -> None:
    parsed = parse("m --disable-log-requests --enable-prefix-caching --disable-prefix", "0.33.0")
    assert (parsed.is_on("--enable-log-requests"), parsed.is_on("--enable-prefix-caching")) == (False, False)
    (problem,) = parse("m --disable-log-requests").problems
    assert "from 0.8.5.post1 to 0.16.0 and in 0.33.0" in problem.why


def test_dotted_keys_merge_into_one_object_and_win_over_a_whole_one() -> None:
    parsed = parse("m --hf-overrides '{\"z\": 1}' --hf-overrides.a.b 3.0 --hf-overrides.a.c+ x,y --hf-overrides.a.c+=z")
    assert parsed.json("--hf-overrides") == {"a": {"b": 3.0, "c": ["x", "y", "z"]}}
    assert [use.path for use in parsed.named("--hf-overrides")] == [(), ("a", "b"), ("a", "c"), ("a", "c")]


def test_dotted_keys_of_two_spellings_do_not_meet() -> None:
    assert parse("m -cc.mode=3 --compilation-config.backend=inductor").json("--compilation-config") == {
        "backend": "inductor"
    }


def test_suffixes_of_dotted_values_are_numbers_from_0_20_on() -> None:
    line = "m --mm-processor-kwargs.max_pixels 80k"
    assert parse(line).json("--mm-processor-kwargs") == {"max_pixels": 80_000}
    assert parse(line, "0.19.1").json("--mm-processor-kwargs") == {"max_pixels": "80k"}


def test_the_command_line_wins_over_the_config_file() -> None:
    config: dict[str, object] = {
        "port": 1,
        "max-num-seqs": 8,
        "served-model-name": ["a", "b"],
        "hf-overrides": {"x": 1},
    }
    parsed = parse("m --port 2 --config c.yaml", config=config)
    assert (parsed.value("--port"), parsed.value("--max-num-seqs"), parsed.problems) == ("2", "8", ())
    assert parsed.values("--served-model-name") == ("a", "b")
    assert parsed.json("--hf-overrides") == {"x": 1}
    assert {use.name for use in parsed.uses if use.from_config} == {f"--{key}" for key in config}


@pytest.mark.parametrize(
    ("config", "version", "problems"),
    [
        ({"prot": 1}, "0.32.0", ["unknown_flag"]),
        ({"port": "x"}, "0.32.0", ["wrong_value"]),
        ({"hf-overrides": {"x": 1}}, "0.15.1", ["bad_json"]),  # Python's text of a dict
        ({"hf-overrides": {"x": 1}}, "0.16.0", []),
        ({"speculative-config": {"method": "mtp"}}, "0.15.1", ["bad_json"]),
        ({"served-model-name": ["a", "b"]}, "0.10.2", []),
        ({"model": "n"}, "0.32.0", []),
    ],
)
def test_the_config_file_is_checked_as_the_command_is(
    config: dict[str, object], version: str, problems: list[str]
) -> None:
    assert [problem.kind for problem in parse("m --config c.yaml", version, config).problems] == problems


def test_a_model_may_stand_in_the_config_file() -> None:
    assert parse("--config c.yaml", config={"model": "n"}).problems == ()
    assert [problem.kind for problem in parse("--config c.yaml", config={"port": 1}).problems] == ["no_model"]


def test_what_the_config_file_turns_off_is_dropped_by_serve_alone() -> None:
    config: dict[str, object] = {"enable-prefix-caching": False, "enforce-eager": False}
    assert parse("m --config c.yaml", config=config).dropped == ("enable-prefix-caching",)
    module = parse("python -m vllm.entrypoints.openai.api_server --config c.yaml", config=config)
    assert (module.dropped, module.is_on("--enable-prefix-caching")) == ((), False)


def test_an_unknown_flag_leaves_the_model_alone() -> None:
    assert parse("--no-such-flag m").model == "m"
    assert parse("--no-such-flag 4 m").model == "m"
    assert parse("--swap-space 4 m").model == "m"
    assert parse("--disable-log-requests m").model == "m"


def test_all_problems_are_told_with_the_words_they_stand_for() -> None:
    parsed = parse("m --port x word --dtype bf16 --swap-space 4")
    assert [problem.kind for problem in parsed.problems] == [
        "stray_word",
        "unknown_flag",
        "wrong_value",
        "wrong_choice",
    ]
    assert parsed.problems[0].positions == (5,)
    assert [problem.use.tokens for problem in parsed.problems if problem.use] == [
        ("--swap-space", "4"),
        ("--port", "x"),
        ("--dtype", "bf16"),
    ]


def test_words_behind_two_dashes_are_no_flags() -> None:
    parsed = parse("--port 1 -- m")
    assert (parsed.model, parsed.problems) == ("m", ())
    assert kinds("m --port 1 -- --dtype") == ["stray_word"]


@pytest.mark.parametrize("argv", [(), ("vllm", "bench"), ("serve", "m"), ("python", "server.py")])
def test_what_starts_no_server_is_told(argv: tuple[str, ...]) -> None:
    with pytest.raises(UsageError, match="does not start a vLLM server"):
        parse_arguments(argv, get_registry("0.32.0"))


@pytest.mark.parametrize("row", SUCCESSORS, ids=lambda row: row.old)
def test_a_successor_is_a_flag_or_a_key_of_some_release(row: Successor) -> None:
    if row.name is None:
        assert row.remark
        return
    flag, _, key = row.name.partition(".")
    releases = [get_registry(version) for version in releases_with_flag(flag)]
    settings = {registry.flags[flag].settings for registry in releases} - {None}
    assert releases
    assert not key or any(key in registry.settings.get(name or "", {}) for registry in releases for name in settings)
