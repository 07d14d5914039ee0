"""Capacity cases: tests/corpus/capacity/*.jsonl, one launch a line, with the numbers it must come to."""

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
from tests.sizing import models

from longreach.engine.release import get_release
from longreach.model.spec import ModelSpec
from longreach.sizing.values import KvCacheRequest

CORPUS = Path(__file__).parent.parent / "corpus" / "capacity"


def read_cases(name: str) -> list[Mapping[str, Any]]:
    """The lines of one corpus file."""
    return [json.loads(line) for line in (CORPUS / f"{name}.jsonl").read_text(encoding="utf-8").splitlines()]


def load_cases(name: str) -> list[object]:
    """One parameter a line, with its `id`."""
    return [pytest.param(case, id=case["id"]) for case in read_cases(name)]


def build_request(model: str, fields: Mapping[str, object]) -> KvCacheRequest:
    """A request from a case: `model` names a constant of `models`; `release` is 0.32.0 when absent."""
    found: object = getattr(models, model)
    assert isinstance(found, ModelSpec)
    named = {
        name: tuple(value) if isinstance(value, list) else value for name, value in fields.items() if name != "release"
    }
    release = get_release(str(fields.get("release", "0.32.0")))
    return KvCacheRequest(model=found, release=release, **named)  # type: ignore[arg-type]
