import re

import pytest
from tests.model.configs import QWEN3_8B, without

from longreach.model.catalogue import catalogue_config, catalogue_names, load_catalogue_model, published_sizes
from longreach.model.config import parse_model_config
from longreach.model.spec import ModelSpec

# why the count differs from the published number of tensor elements, the largest share it may differ by, and where
DIFFERENCES: dict[str, tuple[float, str]] = {
    "quantization scales are counted among the published elements": (
        0.001,
        "deepseek-v3 deepseek-v3.1 glm-5.2 kimi-k2 kimi-k2-0905 minimax-m2.1 minimax-m2.5 devstral-small-2-24b",
    ),
    "the router's bias is not saved": (0.001, "lfm2-8b-a1b minimax-m2.7"),
    "the output head is saved though tied": (
        0.26,
        "gemma-4-26b-a4b gemma-4-31b qwen3-0.6b qwen3-1.7b jamba-reasoning-3b qwen1.5-0.5b granite-3.0-2b",
    ),
    "rotary tables are saved": (
        0.00001,
        "llama-7b llama-13b llama-30b llama-65b llama-2-7b llama-2-13b llama-2-70b",
    ),
    "towers are not described": (
        0.32,
        (
            "apriel-1.6-15b ernie-4.5-vl-28b-a3b gemma-3n-e2b gemma-3n-e4b gemma-4-12b gemma-4-e2b gemma-4-e4b kimi-k2.5 "
            "kimi-k2.6 kimi-k2.7-code kimi-vl-a3b llama-4-maverick llama-4-scout minimax-m3 mistral-medium-3.5-128b "
            "mistral-small-4-119b phi-4-multimodal step-3.7-flash step3-vl-10b "
            "llava-1.5-7b llava-1.5-13b nemotron-3-nano-omni-30b-a3b"
        ),
    ),
    "MTP layers: not announced, announced but not published, or with shared embeddings": (
        0.045,
        (
            "glm-4.6 glm-5 glm-5.1 hy3 ling-3.0-flash longcat-flash-chat mimo-v2-flash mimo-v2.5 mimo-v2.5-pro mimo-v2.6-flash "
            "nemotron-3.5-lightning-30b-a3b step-3.5-flash"
        ),
    ),
    "sizes that are not published": (0.04, "ling-2.6-flash mistral-large-3-675b step3"),
    "parts that are not described": (0.3, "deepseek-v4-flash deepseek-v4-pro glm-5.3-flash qwen3.8-flash-next"),
}
# fmt: off
NO_TRAITS = (  # families whose weights are not described, and one whose experts are not known
    "ernie-4.5-vl-424b-a47b", "falcon-7b", "falcon-40b", "gpt2", "gpt2-medium", "minicpm-v-2.6", "minicpm-v-4",
    "minicpm-v-4.5", "opt-125m", "opt-350m", "opt-1.3b", "opt-2.7b", "opt-6.7b", "opt-13b", "opt-30b", "phi-2", "phi-3.5-moe",
    "phi-3.5-vision", "starcoder2-3b", "starcoder2-7b", "starcoder2-15b",
)
# fmt: on
NOT_COUNTED = frozenset(("ring-mini-linear-2.0", *NO_TRAITS))
SHARE = {name: share for share, names in DIFFERENCES.values() for name in names.split()}


def _published() -> dict[str, int]:
    found: dict[str, int] = {}
    for name in catalogue_names():
        total = published_sizes(name).total_parameters
        if total is not None and name not in NOT_COUNTED:
            found[name] = total
    return found


PUBLISHED = _published()


def _counted(name: str) -> ModelSpec:
    return parse_model_config(catalogue_config(name), name)


@pytest.mark.parametrize("name", [name for name in PUBLISHED if name not in SHARE])
def test_the_count_equals_the_published_total_to_the_unit(name: str) -> None:
    assert _counted(name).parameters.total == PUBLISHED[name]


@pytest.mark.parametrize("name", sorted(SHARE))
def test_the_count_differs_for_a_listed_reason_and_within_its_bound(name: str) -> None:
    total = _counted(name).parameters.total
    assert total is not None
    assert 0 < abs(PUBLISHED[name] - total) <= SHARE[name] * PUBLISHED[name]


def test_at_least_200_totals_are_met_to_the_unit() -> None:
    assert len(PUBLISHED) - len(SHARE) >= 200


@pytest.mark.parametrize("name", ["gemma-4-31b", "qwen3-0.6b", "jamba-reasoning-3b", "granite-3.0-2b"])
def test_a_saved_tied_head_is_the_whole_difference(name: str) -> None:
    model = _counted(name)
    assert model.parameters.total is not None
    assert PUBLISHED[name] - model.parameters.total == model.vocab_size * model.hidden_size


@pytest.mark.parametrize("name", NO_TRAITS)
def test_a_published_total_stands_in_where_nothing_is_counted(name: str) -> None:
    assert _counted(name).parameters.total is None
    assert load_catalogue_model(name).parameters.total == published_sizes(name).total_parameters


ACTIVE = {name: text for name in PUBLISHED if (text := published_sizes(name).active_parameters) is not None}


@pytest.mark.parametrize("name", [name for name, text in ACTIVE.items() if re.fullmatch(r"[\d.]+B", text)])
def test_active_parameters_are_near_the_published_figure(name: str) -> None:
    """Publishers round, and some count the embeddings."""
    model = _counted(name)
    number = ACTIVE[name].removesuffix("B")
    published, half_step = float(number) * 1e9, 0.5e9 if "." not in number else 0.05e9
    assert model.parameters.active is not None
    assert 0.75 * (published - half_step) <= model.parameters.active + model.parameters.embedding
    assert model.parameters.active <= (published + half_step) * (1.5 if name == "mistral-large-3-675b" else 1.1)


def test_a_dense_model_uses_every_parameter_but_its_embeddings() -> None:
    parameters = _counted("qwen3-32b").parameters
    assert parameters.total is not None
    assert parameters.active == parameters.total - parameters.embedding


def test_tied_embeddings_are_counted_once() -> None:
    tied = parse_model_config(QWEN3_8B | {"tie_word_embeddings": True}, "m").parameters
    untied = parse_model_config(QWEN3_8B, "m").parameters
    assert untied.embedding == 2 * tied.embedding == 2 * 151936 * 4096


def test_without_a_width_there_is_no_count() -> None:
    parameters = parse_model_config(without(QWEN3_8B, "intermediate_size"), "m").parameters
    assert (parameters.total, parameters.active, parameters.certainty) == (None, None, "estimate")
    assert parameters.embedding == 2 * 151936 * 4096


@pytest.mark.parametrize(
    ("name", "field"),
    [
        ("gemma-4-31b", "intermediate_size"),
        ("gemma-4-26b-a4b", "moe_intermediate_size"),
        ("gemma-3n-e4b", "intermediate_size"),
        ("longcat-flash-chat", "ffn_hidden_size"),
        ("nemotron-3-nano-30b-a3b", "num_experts_per_tok"),
        ("qwen3-30b-a3b", "num_experts_per_tok"),
    ],
)
def test_every_layout_says_when_a_size_is_missing(name: str, field: str) -> None:
    config = dict(catalogue_config(name))
    text = config.get("text_config", config)
    assert isinstance(text, dict)
    fewer = {key: value for key, value in text.items() if key not in (field, "intermediate_size")}
    config = {**config, "text_config": fewer} if "text_config" in config else fewer
    assert parse_model_config(config, "m").parameters.total is None


def test_a_list_of_numbers_may_name_the_expert_layers() -> None:
    step = catalogue_config("step-3.5-flash")
    few = parse_model_config({**step, "moe_layers_enum": "3,4"}, "m").parameters.total
    many = _counted("step-3.5-flash").parameters.total
    assert few is not None
    assert many is not None
    assert few < many


def test_a_family_whose_weights_are_not_described_has_no_count() -> None:
    parameters = parse_model_config(QWEN3_8B | {"model_type": "stablelm", "architectures": []}, "m").parameters
    assert parameters.total is None


def test_experts_beyond_the_top_k_are_not_active() -> None:
    parameters = _counted("qwen3-30b-a3b").parameters
    assert parameters.total is not None
    assert parameters.active is not None
    assert parameters.total / parameters.active > 10
