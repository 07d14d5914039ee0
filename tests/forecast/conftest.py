"""Requests for the forecast's tests: a catalogue model on a box written as people type it."""

from collections.abc import Callable
from dataclasses import replace
from functools import cache

import pytest

from longreach.forecast.values import SpeedRequest
from longreach.hardware.catalogue import parse_gpus
from longreach.hardware.machine import machine_from
from longreach.model.source import load_model
from longreach.model.spec import ModelSpec, QuantizationName


@cache
def _model(name: str) -> ModelSpec:
    return load_model(name)


@pytest.fixture(scope="session")
def make_request() -> Callable[..., SpeedRequest]:
    """TP over all GPUs unless the settings, which are fields of SpeedRequest, say otherwise."""

    def make(
        model: str,
        gpus: str,
        prompt_tokens: int,
        link: str | None = None,
        weights: QuantizationName = "none",
        **settings: object,
    ) -> SpeedRequest:
        order = parse_gpus(gpus)
        spec = _model(model)
        spec = replace(spec, weights=replace(spec.weights, quantization=weights, total_bytes=None))
        request = SpeedRequest(
            model=spec,
            machine=machine_from(order.gpu, order.count, link),
            prompt_tokens=prompt_tokens,
            tp_size=order.count,
        )
        return replace(request, **settings)  # type: ignore[arg-type]  # checked by SpeedRequest itself

    return make
