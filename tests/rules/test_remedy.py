import pytest
from tests.rules.deployments import OPTIONS

from longreach.rules.remedy import Remedy, add_environment, apply_remedy, set_option


def test_remedy_changes_only_what_it_names() -> None:
    changed = apply_remedy(OPTIONS, set_option("max_model_len", 327_664))
    assert changed.max_model_len == 327_664
    assert apply_remedy(changed, set_option("max_model_len", OPTIONS.max_model_len)) == OPTIONS


def test_environment_keeps_other_variables_and_replaces_its_own() -> None:
    options = apply_remedy(OPTIONS, Remedy((("env", (("A", "1"), ("B", "2"))),)))
    assert apply_remedy(options, add_environment(options, "B", "3")).env == (("A", "1"), ("B", "3"))


@pytest.mark.parametrize("changes", [(), (("no_such_option", 1),)], ids=["nothing", "unknown field"])
def test_remedy_that_cannot_be_applied_is_our_own_mistake(changes: tuple[tuple[str, object], ...]) -> None:
    with pytest.raises(AssertionError):
        Remedy(changes)
