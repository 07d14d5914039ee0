"""Lines that vLLM's parser refuses or takes without a word, and near ones."""

from tests.rules.case import Case
from tests.rules.commands import written

from longreach.rules import written_parser
from longreach.rules.written import WrittenCommand

_TRANSFER = '{"kv_connector": "OffloadingConnector", "kv_role": "kv_both"}'
_RULES = {rule.kind.code: rule for rule in written_parser.RULES}


def _case(code: str, fires: WrittenCommand, *silent: WrittenCommand) -> Case[WrittenCommand]:
    return Case(_RULES[code], fires, silent)


CASES: tuple[Case[WrittenCommand], ...] = (
    _case("LR900", written("m --help"), written("m --headless")),
    _case(
        "LR901",
        written("m --swap-spaces 4"),
        written("m --swap-space 4"),
        written("m --swap-space 4", "0.17.1"),
        written("m --$EXTRA 4"),
        written("m --gpu_memory_util 0.9"),
    ),
    _case("LR902", written("m --max-num 8"), written("m --max-num-b 8192")),
    _case("LR903", written("m --port 8000 extra"), written("m $EXTRA"), written("$MODEL --port 80 $EXTRA more")),
    _case("LR936", written("m --swap-space 4"), written("m --swap-space 4", "0.17.1"), written("m --swap-spaces 4")),
    _case(
        "LR937",
        written("m --attention-backend FLASHINFER", "0.12.0"),
        written("m --attention-backend FLASHINFER", "0.13.0"),
        written("m --swap-space 4"),
    ),
    _case("LR938", written("m -language-model-only"), written("m --language-model-only"), written("m -tp 2")),
    _case("LR939", written("m '--host 127.0.0.1'"), written("m --host 127.0.0.1"), written("m 'a b'")),
    _case("LR904", written("m --port"), written("m --hf-token"), written("m --port=")),
    _case("LR905", written("m --enforce-eager=true"), written("m --enforce-eager"), written("m --hf-token=x")),
    _case(
        "LR906",
        written("m --max-model-len 750,000"),
        written("m --max-model-len 750k"),
        written("m --max-model-len auto"),
        written("m --port $PORT"),
        written("m --max-log-len None"),
    ),
    _case("LR907", written("m --dtype bf16"), written("m --dtype bfloat16"), written("m --moe-backend DEEP-GEMM")),
    _case(
        "LR908",
        written("m --kv-transfer-config \"{'kv_connector': 'X', 'kv_role': 'kv_both'}\""),
        written(f"m --kv-transfer-config '{_TRANSFER}'"),
        written("m --hf-overrides my_package.override"),
        written('m --kv-transfer-config \'{"kv_connector_extra_config": {"cpu_bytes_to_use": $BYTES}}\''),
    ),
    _case(
        "LR909",
        written("m -cc.use_inductor=true"),
        written("m -cc.use_inductor=true", "0.11.0"),
        written("m --speculative-config.no_such_key 3"),
    ),
    _case("LR910", written("m -cc.cudagraph_mode=PIECEWIS"), written("m -cc.cudagraph_mode=piecewise")),
    _case(
        "LR911",
        written("m --kv-transfer-config.kv_connector OffloadingConnector"),
        written(f"m --kv-transfer-config '{_TRANSFER}'"),
    ),
    _case("LR912", written("--model m", "0.10.2"), written("--model m"), written("m", "0.10.2")),
    _case(
        "LR913",
        written("m --config settings.json"),
        written("m --config settings.yaml", config={}),
        written("m --config $FILE"),
    ),
    _case(
        "LR914",
        written("m --compilation-config.no_such_key=1", "0.11.2"),
        written("m --compilation-config.level=3", "0.11.2"),
        written("m", "0.11.2"),
    ),
    _case(
        "LR915",
        written("m --config c.yaml", config={"enable-prefix-caching": False}),
        written("m --config c.yaml", config={"enable-prefix-caching": True, "enforce-eager": False}),
    ),
    _case(
        "LR916",
        written("m --max-num-seqs 8 --max-num-seqs 16"),
        written("m --max-num-seqs 8"),
        written("m --middleware a --middleware b"),
        written("m -cc.mode=3 -cc.cudagraph_mode=NONE"),
    ),
    _case("LR917", written("m --kv-cache-memory 10G"), written("m --kv_cache_memory_bytes 10G"), written("m -tp 2")),
    _case(
        "LR918",
        written("m --log-config-file log.json"),
        written("m"),
        written("m --log-config-file log.json", "0.28.0"),
    ),
    _case("LR919", written("m --disable-cascade-attn"), written("m --disable-cascade-attn", "0.20.2")),
)
