from hypothesis import given
from hypothesis import strategies as st

from longreach.model.catalogue import catalogue_names, load_catalogue_model
from longreach.model.repeats import share, tally


@given(st.lists(st.tuples(st.integers(0, 3), st.integers(0, 3))))
def test_shared_items_are_counted_as_equal_ones_are(items: list[tuple[int, int]]) -> None:
    shared = share(items, {})
    assert list(shared) == items
    assert tally(shared) == [(item, items.count(item)) for item in dict.fromkeys(items)]


def test_equal_layers_of_a_parsed_model_are_one_object() -> None:
    for name in catalogue_names()[::12]:
        model = load_catalogue_model(name)
        layers = model.layers + model.draft_layers
        assert len({id(layer) for layer in layers}) == len(set(layers))
