"""Our count of DeepSeek-V4's cache against the engine's own planning code."""

import json
import subprocess
from dataclasses import asdict
from itertools import product
from pathlib import Path
from typing import Any

import pytest

from longreach.engine.release import get_release
from longreach.model.catalogue import load_catalogue_model
from longreach.sizing.kv_cache import size_kv_cache
from longreach.sizing.values import KvCacheRequest
from longreach.units import GIB

ORACLE = Path(__file__).with_name("compressed_oracle.py")
SETTINGS = (
    (262_144, 8192, 32 * GIB),
    (1_048_576, 2048, 30 * GIB),
    (5000, 16_384, 12 * GIB),
    (1_048_576, 8192, 9 * GIB),
)


def plans() -> list[KvCacheRequest]:
    models = [load_catalogue_model(name) for name in ("deepseek-v4-flash", "deepseek-v4-pro")]
    return [
        KvCacheRequest(
            model, get_release("0.32.0"), length, memory, max_num_batched_tokens=batch, use_draft_layers=drafts
        )
        for model, drafts, (length, batch, memory) in product(models, (False, True), SETTINGS)
    ]


def describe(request: KvCacheRequest) -> dict[str, Any]:
    compressed = request.model.compressed
    assert compressed is not None
    ratios = compressed.ratios + (compressed.draft_ratios if request.use_draft_layers else ())
    settings = ("max_model_len", "max_num_batched_tokens", "available_bytes_per_gpu")
    return {**asdict(compressed), "ratios": ratios, **{name: getattr(request, name) for name in settings}}


@pytest.mark.vllm
def test_compressed_caches_are_counted_as_the_engine_counts_them(engine_python: Path) -> None:
    requests = plans()
    done = subprocess.run(
        [engine_python, ORACLE],
        input=json.dumps([describe(request) for request in requests]),
        capture_output=True,
        text=True,
        timeout=280,
        check=False,
    )
    assert done.returncode == 0, done.stderr[-2000:]
    for request, engine in zip(requests, json.loads(done.stdout.splitlines()[-1]), strict=True):
        ours = size_kv_cache(request)
        if isinstance(engine, str):
            assert ours.refusal is not None
            assert engine.startswith(ours.refusal)
            continue
        sizes = sorted(group.num_layers for group in ours.groups)
        assert [ours.num_blocks, ours.kv_capacity_tokens, ours.max_concurrency, sizes] == engine, request
