import json
from collections.abc import Callable

Longreach = Callable[..., tuple[int, str, str]]


def test_explain_prints_the_page_of_a_code(longreach: Longreach) -> None:
    code, out, _ = longreach("explain", "lr103")
    assert code == 0
    assert out.startswith("# LR103")


def test_explain_without_a_code_lists_them_all(longreach: Longreach) -> None:
    _, out, _ = longreach("explain")
    _, as_json, _ = longreach("explain", "--json")
    codes = [kind["code"] for kind in json.loads(as_json)["codes"]]
    assert [line.split()[0] for line in out.splitlines()] == codes
    assert "LR103" in codes


def test_an_unknown_code_is_wrong_usage(longreach: Longreach) -> None:
    code, _, err = longreach("explain", "LR000")
    assert code == 2
    assert "fix:" in err
