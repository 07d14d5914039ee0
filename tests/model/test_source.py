import json
from pathlib import Path

import pytest
from tests.model.configs import QWEN3_8B
from tests.model.test_checkpoint import write_safetensors

from longreach.errors import InputFileError, LongreachError, UsageError
from longreach.model.catalogue import catalogue_config, load_catalogue_model
from longreach.model.source import load_model
from longreach.model.spec import QuantizationName


def _folder(parent: Path, name: str, config: object, **files: str) -> Path:
    folder = parent / name
    folder.mkdir()
    if config is not None:
        (folder / "config.json").write_text(json.dumps(config))
    for file, text in files.items():
        (folder / file.replace("_dot_", ".")).write_text(text)
    return folder


def test_a_catalogue_name_needs_no_file() -> None:
    assert load_model("qwen3-32b") == load_catalogue_model("qwen3-32b")


def test_a_folder_and_its_config_give_the_same_layers(tmp_path: Path) -> None:
    folder = _folder(tmp_path, "my-model", QWEN3_8B)
    by_folder, by_file = load_model(str(folder)), load_model(str(folder / "config.json"))
    assert by_folder.layers == by_file.layers
    assert by_folder.name == by_file.name == "my-model"
    assert by_folder.sources == (str(folder / "config.json"),)


def test_a_json_file_of_any_name_is_a_config(tmp_path: Path) -> None:
    path = tmp_path / "qwen-like.json"
    path.write_text(json.dumps(QWEN3_8B))
    assert load_model(str(path)).name == "qwen-like"


def test_headers_give_exact_bytes_and_parameters(tmp_path: Path) -> None:
    folder = _folder(tmp_path, "m", QWEN3_8B)
    write_safetensors(folder / "model.safetensors", {"a": ("BF16", [1000, 1000], 2_000_000)})
    model = load_model(str(folder))
    assert model.weights.total_bytes == 2_000_000
    assert (model.parameters.total, model.parameters.certainty) == (1_000_000, "exact")
    assert model.sources[-1] == "headers of 1 safetensors file"


def test_packed_tensors_do_not_pass_for_parameters(tmp_path: Path) -> None:
    folder = _folder(tmp_path, "m", QWEN3_8B | {"quantization_config": {"quant_method": "awq", "bits": 4}})
    write_safetensors(folder / "model.safetensors", {"a.qweight": ("I32", [1000, 125], 500_000)})
    model = load_model(str(folder))
    assert (model.weights.total_bytes, model.weights.quantization) == (500_000, "w4a16")
    assert (model.parameters.total, model.parameters.certainty) == (8_190_735_360, "estimate")


def test_modelopt_keeps_its_quantization_beside_the_config(tmp_path: Path) -> None:
    quantized = {
        "producer": {"name": "modelopt"},
        "quantization": {"quant_algo": "NVFP4", "kv_cache_quant_algo": "FP8"},
    }
    folder = _folder(tmp_path, "m", QWEN3_8B, hf_quant_config_dot_json=json.dumps(quantized))
    model = load_model(str(folder))
    assert (model.weights.quantization, model.kv_cache_dtype_forced) == ("nvfp4", "fp8_e4m3")


def test_a_folder_of_the_hubs_cache_is_named_by_its_hub_id(tmp_path: Path) -> None:
    snapshot = tmp_path / "models--Qwen--Qwen3-8B" / "snapshots" / "abc"
    snapshot.mkdir(parents=True)
    (snapshot / "config.json").write_text(json.dumps(catalogue_config("qwen3-8b")))
    model = load_model(str(snapshot))
    assert model.name == "Qwen/Qwen3-8B"
    assert model.tool_call_parsers == ("hermes",)  # known by name, with the same layers
    assert model.yarn is not None


def test_a_local_folder_wins_over_the_catalogue_only_with_a_config(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    folder = _folder(tmp_path, "qwen3-32b", None)
    assert load_model("qwen3-32b").num_layers == 64
    (folder / "config.json").write_text(json.dumps(QWEN3_8B))
    assert load_model("qwen3-32b").num_layers == 36


def test_stated_weights_of_a_catalogue_model_take_its_published_checkpoint() -> None:
    model = load_model("qwen3.6-27b", "fp8")
    assert (model.weights.quantization, model.weights.total_bytes) == ("fp8", 31_138_512_896)
    assert load_model("Qwen/Qwen3.6-27B-FP8", "nvfp4").weights.quantization == "nvfp4"


def test_stated_weights_without_a_published_checkpoint_have_no_bytes() -> None:
    weights = load_model("qwen3-32b", "w4a8-int8").weights
    assert (weights.quantization, weights.total_bytes) == ("w4a8-int8", None)
    assert "no published bytes" in weights.source


@pytest.mark.parametrize(
    ("reference", "weights", "checkpoint", "differs"),
    [
        ("qwen3.6-27b", "w4a16", None, True),
        ("qwen3.6-27b", "fp8", "Qwen/Qwen3.6-27B-FP8", False),
        ("RedHatAI/Qwen3-32B-FP8-dynamic", None, "RedHatAI/Qwen3-32B-FP8-dynamic", False),
        ("RedHatAI/Qwen3-32B-FP8-dynamic", "none", "Qwen/Qwen3-32B", False),
        ("Qwen/Qwen3-32B", None, "Qwen/Qwen3-32B", False),
    ],
)
def test_the_checkpoint_is_the_one_that_was_typed_or_a_published_one_of_the_form(
    reference: str, weights: QuantizationName | None, checkpoint: str | None, *, differs: bool
) -> None:
    found = load_model(reference, weights).weights
    assert (found.checkpoint, found.differs) == (checkpoint, differs)


def test_weights_may_be_stated_where_the_config_is_plain(tmp_path: Path) -> None:
    folder = _folder(tmp_path, "m", QWEN3_8B)
    write_safetensors(folder / "model.safetensors", {"a": ("BF16", [8], 16)})
    assert load_model(str(folder), "none").weights.total_bytes == 16
    weights = load_model(str(folder), "fp8").weights
    assert (weights.quantization, weights.total_bytes) == ("fp8", None)


def test_weights_that_contradict_the_config_are_refused(tmp_path: Path) -> None:
    folder = _folder(tmp_path, "m", QWEN3_8B | {"quantization_config": {"quant_method": "fp8"}})
    assert load_model(str(folder), "fp8").weights.quantization == "fp8"
    with pytest.raises(UsageError, match="are not nvfp4"):
        load_model(str(folder), "nvfp4")


@pytest.mark.parametrize(
    ("files", "found"),
    [
        ({"model_dot_gguf": ""}, "GGUF files only"),
        ({"params_dot_json": "{}"}, "params.json only"),
        ({"readme_dot_md": ""}, "found readme.md"),
        ({}, "found nothing"),
    ],
    ids=["gguf", "mistral-format", "other", "empty"],
)
def test_a_folder_without_a_config_says_what_is_in_it(tmp_path: Path, files: dict[str, str], found: str) -> None:
    folder = _folder(tmp_path, "m", None, **files)
    with pytest.raises(InputFileError, match=r"no config\.json") as caught:
        load_model(str(folder))
    assert found in caught.value.why


@pytest.mark.parametrize("inside", [True, False], ids=["folder", "file"])
def test_an_adapter_names_its_base_model(tmp_path: Path, inside: bool) -> None:
    adapter = json.dumps({"base_model_name_or_path": "Qwen/Qwen3-8B"})
    folder = _folder(tmp_path, "lora", None, adapter_config_dot_json=adapter)
    with pytest.raises(InputFileError, match="adapter") as caught:
        load_model(str(folder if inside else folder / "adapter_config.json"))
    assert caught.value.fix == "longreach plan Qwen/Qwen3-8B"


def test_a_gguf_file_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "qwen.gguf"
    path.write_bytes(b"GGUF")
    with pytest.raises(InputFileError, match=r"no config\.json"):
        load_model(str(path))


@pytest.mark.parametrize("reference", ["./qwen3-33b", "/no/such/config.json", "a/b/c", "model.gguf"])
def test_a_missing_path_is_an_input_error(reference: str) -> None:
    with pytest.raises(InputFileError, match="no such file or folder"):
        load_model(reference)


def test_an_unknown_name_has_near_names() -> None:
    with pytest.raises(UsageError) as caught:
        load_model("qwen3-33b")
    assert "qwen3-32b" in caught.value.fix


@pytest.mark.parametrize("content", ["{", "[]", '"x"', "{}", "null"], ids=str)
def test_a_broken_config_is_refused_with_advice(tmp_path: Path, content: str) -> None:
    path = tmp_path / "config.json"
    path.write_text(content)
    with pytest.raises(LongreachError) as caught:
        load_model(str(path))
    assert caught.value.fix
