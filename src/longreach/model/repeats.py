"""Counting what a model repeats: a few layers stand in it many times. Pure."""

from collections import Counter
from collections.abc import Iterable
from typing import TypeVar

_Item = TypeVar("_Item")


def tally(items: Iterable[_Item]) -> list[tuple[_Item, int]]:
    """Each object with how often it stands there, in order. Counted by identity, since hashing every layer costs more than what
    is then done with it: equal objects that are not one stay apart, as `share` prevents.
    """
    objects = tuple(items)
    by_identity = dict(zip(map(id, objects), objects, strict=True))
    return [(by_identity[key], count) for key, count in Counter(map(id, objects)).items()]


def share(items: Iterable[_Item], seen: dict[_Item, _Item]) -> tuple[_Item, ...]:
    """The items, each equal one as the same object; `seen` holds those met before."""
    return tuple(seen.setdefault(item, item) for item in items)
