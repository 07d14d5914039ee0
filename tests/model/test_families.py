import re
from pathlib import Path

from longreach.model.catalogue import catalogue_config, catalogue_names
from longreach.model.decoder import read_decoder
from longreach.model.families import FAMILIES, REFUSED, find_family
from longreach.model.weight_traits import TRAITS

PAGE = (Path(__file__).parents[2] / "docs" / "model.md").read_text(encoding="utf-8")


def test_no_name_belongs_to_two_families() -> None:
    names = [name for family in FAMILIES for name in family.names]
    assert len(names) == len(set(names))


def test_no_name_has_two_sets_of_weight_traits() -> None:
    names = [name for traits in TRAITS for name in traits.names]
    assert len(names) == len(set(names))


def test_every_family_stands_on_the_page_of_the_room() -> None:
    words = set(re.findall(r"[\w-]+", PAGE))
    assert [name for family in FAMILIES for name in family.names if name not in words] == []
    assert words >= set(REFUSED)


def test_every_catalogue_model_belongs_to_a_family_or_is_refused() -> None:
    for name in catalogue_names():
        decoder = read_decoder(catalogue_config(name), name)
        assert find_family(decoder) is not None or decoder.architecture in REFUSED, name


def test_the_architecture_decides_before_the_model_type() -> None:
    kimi_k3 = read_decoder(catalogue_config("kimi-k3"), "kimi-k3")
    kimi_linear = read_decoder(catalogue_config("kimi-linear-48b-a3b"), "kimi-linear-48b-a3b")
    assert kimi_k3.model_type == kimi_linear.model_type == "kimi_linear"
    assert find_family(kimi_k3) is not find_family(kimi_linear)
