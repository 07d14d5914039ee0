import pytest

from longreach.errors import UsageError
from longreach.rules.explain import explain


@pytest.mark.parametrize("code", ["LR103", "lr103", " LR103 "])
def test_page_is_found_whatever_the_case(code: str) -> None:
    assert explain(code).startswith("# LR103: max-model-len does not fit the KV cache\n")


def test_unknown_code_names_near_ones() -> None:
    with pytest.raises(UsageError) as caught:
        explain("LR1O3")
    assert caught.value.what == "unknown code 'LR1O3'"
    assert caught.value.fix.startswith("did you mean 'LR")


def test_code_unlike_any_other_gets_a_command_that_works() -> None:
    with pytest.raises(UsageError, match="unknown code 'hello'") as caught:
        explain("hello")
    assert caught.value.fix == "longreach explain LR101"


def test_a_number_between_two_others_is_told_to_be_gone() -> None:
    with pytest.raises(UsageError, match="unknown code 'LR213'") as caught:
        explain("LR213")
    assert "does not exist any more" in caught.value.why
    assert caught.value.fix == "the codes beside it are LR212 and LR214"
