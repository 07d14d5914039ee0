import csv
import re
from collections import Counter
from pathlib import Path

import pytest

from longreach.errors import LongreachError, UnknownModelError, UsageError
from longreach.model.catalogue import (
    CatalogueMatch,
    architecture_releases,
    catalogue_config,
    catalogue_names,
    checkpoint_bytes,
    find_catalogue_model,
    load_catalogue_model,
    with_known_facts,
)
from longreach.model.config import parse_model_config
from longreach.model.spec import AttentionLayer, GatedDeltaNetLayer, IndexerLayer, MlaLayer, ModelSpec

CORPUS = Path(__file__).parents[1] / "corpus" / "configs"
REFUSED = {"ring-mini-linear-2.0": UnknownModelError}
ESTIMATED = {
    "deepseek-v4-flash": "compressed attention",
    "deepseek-v4-pro": "compressed attention",
    "glm-5.3-flash": "open pool",
    "lfm2-24b-a2b": "order of its layers",
    "ling-2.6-flash": "linear attention",
    "minimax-m3": "index keys",
    "qwen2.5-14b-1m": "dual-chunk attention",
    "qwen2.5-7b-1m": "dual-chunk attention",
    "qwen3.8-flash-next": "index keys",
}


def _kv_rows() -> dict[str, tuple[int, ...]]:
    lines = (CORPUS / "kv_bytes_per_token.csv").read_text().splitlines()
    rows = csv.reader(line for line in lines if not line.startswith("#"))
    next(rows)
    return {name: tuple(int(number) for number in numbers) for name, *numbers in rows}


KV_ROWS = _kv_rows()


def _kv_row(model: ModelSpec) -> tuple[int, ...]:
    """Bytes of one token in growing layers at two bytes a value, and layers that grow, slide, are chunked, recur."""
    kinds: Counter[str] = Counter()
    token_bytes = 0
    for layer in model.layers:
        match layer:
            case AttentionLayer(chunk_tokens=int()):
                kinds["chunked"] += 1
            case AttentionLayer(window_tokens=int() as window) if window < model.max_position_embeddings:
                kinds["sliding"] += 1
            case AttentionLayer():
                kinds["growing"] += 1
                token_bytes += layer.num_kv_heads * (layer.head_dim + layer.v_head_dim) * 2
            case MlaLayer():
                kinds["growing"] += 1
                token_bytes += (layer.kv_lora_rank + layer.rope_head_dim) * 2
            case IndexerLayer(head_dim=head_dim):
                token_bytes += head_dim + head_dim // 128 * 4
            case _:
                kinds["recurrent"] += 1
    return token_bytes, kinds["growing"], kinds["sliding"], kinds["chunked"], kinds["recurrent"]


@pytest.mark.parametrize("name", catalogue_names())
def test_every_model_parses_is_estimated_or_is_refused_for_a_listed_reason(name: str) -> None:
    if name in REFUSED:
        with pytest.raises(REFUSED[name]):
            load_catalogue_model(name)
        return
    reason = load_catalogue_model(name).kv_estimate_reason
    assert (reason is not None) == (name in ESTIMATED)
    assert reason is None or ESTIMATED[name] in reason


@pytest.mark.parametrize("name", [name for name in KV_ROWS if name not in REFUSED])
def test_bytes_per_token_and_layers_by_kind_are_the_published_ones(name: str) -> None:
    assert _kv_row(load_catalogue_model(name)) == KV_ROWS[name]


def test_the_table_covers_all_but_the_models_whose_bytes_are_not_known() -> None:
    assert set(catalogue_names()) - set(KV_ROWS) == {"deepseek-v4-flash", "deepseek-v4-pro", "glm-5.3-flash"}


def test_qwen3_32b_is_a_dense_model_of_64_layers() -> None:
    model = load_catalogue_model("qwen3-32b")
    assert model.layers == (AttentionLayer(num_heads=64, num_kv_heads=8, head_dim=128, v_head_dim=128),) * 64
    assert (model.parameters.total, model.parameters.certainty) == (32_762_123_264, "exact")
    assert model.hf_id == "Qwen/Qwen3-32B"
    assert model.tool_call_parsers == ("hermes",)


def test_qwen3_6_27b_is_a_hybrid_with_one_mtp_layer() -> None:
    model = load_catalogue_model("qwen3.6-27b")
    full = [layer for layer in model.layers if isinstance(layer, AttentionLayer)]
    delta = [layer for layer in model.layers if isinstance(layer, GatedDeltaNetLayer)]
    assert (len(full), len(delta), len(model.draft_layers)) == (16, 48, 1)
    assert full[0] == model.draft_layers[0] == AttentionLayer(24, 4, 256, 256)
    assert model.ssm_state_dtype == "float32"
    assert model.is_hybrid


def test_the_publishers_word_on_yarn_is_kept() -> None:
    yarn = load_catalogue_model("qwen3-32b").yarn
    assert yarn is not None
    assert (yarn.factor, yarn.original_max_position_embeddings, yarn.target_tokens) == (4.0, 32768, 131072)


def test_sources_say_how_sure_each_field_is() -> None:
    sources = load_catalogue_model("glm-4.5").sources
    assert "public catalogue" in sources[0]
    assert any(line.startswith("unverified: ") or ": unverified" in line for line in sources)


@pytest.mark.parametrize(
    ("reference", "match"),
    [
        ("qwen3-32b", CatalogueMatch("qwen3-32b", None)),
        ("Qwen3-32B", CatalogueMatch("qwen3-32b", None)),
        ("Qwen/Qwen3-32B", CatalogueMatch("qwen3-32b", None)),
        ("anyone/qwen3-32b", CatalogueMatch("qwen3-32b", None)),
        ("google/gemma-4-E2B-it", CatalogueMatch("gemma-4-e2b", None)),
        ("deepseek-ai/DeepSeek-R1-0528", CatalogueMatch("deepseek-r1", "fp8")),
        ("deepseek-ai/DeepSeek-V3-0324", CatalogueMatch("deepseek-v3", None)),
        ("Qwen/Qwen3.6-27B-FP8", CatalogueMatch("qwen3.6-27b", "fp8")),
        ("a/b/qwen3-32b", None),
        ("/qwen3-32b", None),
        ("../qwen3-32b", None),
        ("qwen3-33b", None),
        ("", None),
    ],
)
def test_a_name_a_hub_id_or_a_published_checkpoint_is_found(reference: str, match: CatalogueMatch | None) -> None:
    assert find_catalogue_model(reference) == match


def test_a_published_checkpoint_brings_its_bytes() -> None:
    model = load_catalogue_model("Qwen/Qwen3.6-27B-FP8")
    assert (model.weights.quantization, model.weights.total_bytes) == ("fp8", 31_138_512_896)
    assert "rounded" in model.weights.source


@pytest.mark.parametrize(
    ("name", "quantization", "total_bytes"),
    [
        ("qwen3-32b", "none", 65_524_246_528),
        ("deepseek-v3", "fp8", None),
        ("deepseek-v3.1", "fp8", None),
        ("gpt-oss-120b", "mxfp4", 65_283_502_899),
        ("kimi-k2.6", "w4a16", 595_000_000_000),
        ("qwen3.8-27b", "none", 55_563_006_776),
    ],
)
def test_the_weights_have_the_form_the_publisher_gives(name: str, quantization: str, total_bytes: int | None) -> None:
    weights = load_catalogue_model(name).weights
    assert (weights.quantization, weights.total_bytes) == (quantization, total_bytes)


def test_bytes_are_none_where_no_checkpoint_is_known() -> None:
    assert checkpoint_bytes("qwen3-32b", "mxfp4") is None
    assert checkpoint_bytes("no-such-model", "none") is None


def test_an_unknown_name_is_a_usage_error_with_near_names() -> None:
    with pytest.raises(UsageError) as caught:
        load_catalogue_model("qwen3.6-72b")
    assert "qwen3.6-27b" in caught.value.fix


def test_every_checkpoint_of_the_index_leads_to_a_model() -> None:
    for name in catalogue_names():
        try:
            hub_id = load_catalogue_model(name).hf_id
        except LongreachError:
            assert name in REFUSED
            continue
        match = find_catalogue_model(str(hub_id))
        assert match is not None
        assert catalogue_config(match.name).get("architectures") == catalogue_config(name).get("architectures")


def test_every_served_architecture_has_its_releases() -> None:
    for name in set(catalogue_names()) - set(REFUSED):
        first, last = load_catalogue_model(name).architecture_releases or ("", "")
        assert re.fullmatch(r"0\.\d+\.\d+(\.\d|\.post\d)?", first), name
        assert re.fullmatch(r"0\.\d+\.\d+(\.\d|\.post\d)?", last), name


def test_an_architecture_that_was_dropped_says_when() -> None:
    assert architecture_releases("MiniMaxText01ForCausalLM") == ("0.8.5.post1", "0.23.0")


def test_a_config_of_the_same_name_and_layers_borrows_what_the_catalogue_knows() -> None:
    config = {key: value for key, value in catalogue_config("qwen3-32b").items() if key != "rope_theta"}
    model = with_known_facts(parse_model_config(config, "Qwen3-32B"))
    assert model.yarn == load_catalogue_model("qwen3-32b").yarn
    assert model.hf_id is None


def test_a_config_of_the_same_name_and_other_layers_borrows_nothing() -> None:
    config = {**catalogue_config("qwen3-32b"), "num_hidden_layers": 2}
    assert with_known_facts(parse_model_config(config, "Qwen3-32B")).yarn is None
