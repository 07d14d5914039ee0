"""Names that vLLM looks up after parsing: what is proposed instead, and what is not."""

import pytest
from tests.rules.commands import written

from longreach.rules.written_names import quantization_not_in_release, unknown_connector, unknown_reasoning_parser


def test_a_connector_of_the_old_engine_is_answered_with_its_successor() -> None:
    line = 'm --kv-transfer-config \'{"kv_connector":"LMCacheConnector","kv_role":"kv_both"}\''
    (found,) = unknown_connector.check(written(line, "0.33.0"))
    assert found.fix == '"kv_connector": "LMCacheConnectorV1"'
    assert found.edit is not None


@pytest.mark.parametrize("name", ["int4", "int8"])
def test_a_method_unlike_all_others_is_answered_with_none(name: str) -> None:
    (found,) = quantization_not_in_release.check(written(f"m --quantization {name}", "0.33.0"))
    assert found.fix == "take --quantization out: a quantized checkpoint names its own method"


@pytest.mark.parametrize(("name", "meant"), [("qwen33", "qwen3"), ("qwen5", None)])
def test_a_name_with_other_digits_is_another_name(name: str, meant: str | None) -> None:
    (found,) = unknown_reasoning_parser.check(written(f"m --reasoning-parser {name}"))
    assert (found.edit is not None) is (meant is not None)
