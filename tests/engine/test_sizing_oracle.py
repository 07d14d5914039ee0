"""Our count against the engine's own planning code, on random plans."""

import contextlib
import json
import subprocess
from collections.abc import Iterator
from dataclasses import asdict, dataclass, fields, replace
from pathlib import Path
from typing import Any

import pytest
from tests.engine.random_plans import PlanSource

from longreach.engine.release import get_release
from longreach.errors import LongreachError, UnknownModelError
from longreach.model.catalogue import catalogue_names, load_catalogue_model
from longreach.model.spec import CrossAttentionLayer, KvLayer, ModelSpec
from longreach.sizing.kv_cache import size_kv_cache
from longreach.sizing.offload import size_cpu_tier
from longreach.sizing.stages import locate_layers
from longreach.sizing.values import KvCacheRequest, KvCapacity
from longreach.units import GIB

CPU_BYTES = 20 * GIB + 12345
BLOCKS_PER_CHUNK = 3
ORACLE = Path(__file__).with_name("sizing_oracle.py")
_PASSED_ON = {field.name for field in fields(KvCacheRequest)} - {"model", "release", "draft_model"}


def describe_plan(request: KvCacheRequest) -> dict[str, Any]:
    """The plan as the oracle reads it."""
    model = request.model
    encoder = next((layer.max_encoder_tokens for layer in model.layers if isinstance(layer, CrossAttentionLayer)), 0)
    return {
        "layers": [_describe(layer) for layer in model.layers],
        "draft_layers": [_describe(layer) for layer in model.draft_layers],
        "places": locate_layers(model, model.draft_layers).indices,
        "num_layers": model.num_layers,
        "num_kv_heads": model.num_kv_heads,
        "head_dim": model.head_dim,
        "is_hybrid": model.is_hybrid,
        "ssm_state_dtype": model.ssm_state_dtype,
        "max_encoder_tokens": encoder,
        "cpu_bytes": CPU_BYTES,
        "blocks_per_chunk": BLOCKS_PER_CHUNK,
        "request": {name: getattr(request, name) for name in _PASSED_ON} | {"kernel": request.min_kernel_block_size},
    }


def _describe(layer: KvLayer) -> dict[str, Any]:
    return {"kind": type(layer).__name__, **asdict(layer)}


def compare(request: KvCacheRequest, engine: dict[str, Any]) -> str | None:
    """None when both agree: on the counts, on the refusal's words, or on stopping at all."""
    try:
        capacity = size_kv_cache(request)
    except LongreachError as error:
        return None if "error" in engine else f"we stop ({error.what}), the engine says {engine}"
    if "error" in engine:
        return f"the engine stops ({engine}), we count {capacity}"
    if capacity.largest_max_model_len != engine["largest_max_model_len"]:
        return f"largest length {capacity.largest_max_model_len}, the engine's {engine['largest_max_model_len']}"
    if "refusal" in engine:
        agreed = capacity.refusal is not None and engine["refusal"].startswith(capacity.refusal)
        return None if agreed else f"refusal {capacity.refusal}, the engine's {engine['refusal']}"
    ours = {
        name: getattr(capacity, name) for name in ("num_blocks", "kv_capacity_tokens", "max_concurrency", "block_size")
    }
    ours["group_layers"] = [group.num_layers for group in capacity.groups]
    theirs = {name: engine[name] for name in ours}
    if not capacity.starts or ours != theirs:
        return f"{ours} (starts: {capacity.starts}), the engine's {theirs}"
    return compare_tier(request, capacity, engine["cpu_tier"])


def compare_tier(request: KvCacheRequest, capacity: KvCapacity, engine: dict[str, Any] | None) -> str | None:
    """None when the CPU tier's chunks agree, or both stop; None too where the engine has no single count."""
    if engine is None:
        return None
    try:
        tier = size_cpu_tier(capacity, request, CPU_BYTES, BLOCKS_PER_CHUNK)
    except LongreachError as error:
        agreed = "error" in engine or engine["num_chunks"] == 0
        return None if agreed else f"we size no tier ({error.what}), the engine says {engine}"
    ours = {"num_chunks": tier.num_chunks, "chunk_bytes": tier.chunk_bytes}
    return None if ours == engine else f"{ours}, the engine's {engine}"


def ask_engine(python: Path, requests: list[KvCacheRequest]) -> list[dict[str, Any]]:
    """One process for all plans: importing the engine takes most of the time."""
    plans = json.dumps([describe_plan(request) for request in requests])
    done = subprocess.run([python, ORACLE], input=plans, capture_output=True, text=True, timeout=280, check=False)
    assert done.returncode == 0, done.stderr[-2000:]
    answers: list[dict[str, Any]] = json.loads(done.stdout.splitlines()[-1])
    return answers


def random_plans() -> list[KvCacheRequest]:
    source = PlanSource(seed=20)
    return [source.draw() for _ in range(400)]


def servable_models() -> Iterator[ModelSpec]:
    """The catalogue without models that no release knows."""
    for name in catalogue_names():
        with contextlib.suppress(UnknownModelError):
            yield load_catalogue_model(name)


def catalogue_plans() -> list[KvCacheRequest]:
    """Every catalogue model on one GPU, and on two stages of two with fp8 and drafts. Compressed caches are estimates."""
    plans = []
    for model in servable_models():
        if model.kv_estimate_reason is not None or model.dtype != "bfloat16":
            continue
        length = min(model.max_position_embeddings, 131072)
        single = KvCacheRequest(model, get_release("0.32.0"), length, 40 * GIB, max_num_batched_tokens=8192)
        plans.append(single)
        if model.num_attention_heads % 2 == 0:
            drafts = bool(model.draft_layers)
            plans.append(
                replace(
                    single,
                    tp_size=2,
                    pp_size=2,
                    kv_cache_dtype="fp8_e4m3",
                    use_draft_layers=drafts,
                    num_speculative_tokens=2 if drafts else 0,
                )
            )
    return plans


@dataclass(frozen=True, slots=True)
class Answers:
    """Plans with the engine's word on each."""

    random: list[tuple[KvCacheRequest, dict[str, Any]]]
    catalogue: list[tuple[KvCacheRequest, dict[str, Any]]]


@pytest.fixture(scope="module")
def answers(engine_python: Path) -> Answers:
    random, catalogue = random_plans(), catalogue_plans()
    found = ask_engine(engine_python, random + catalogue)
    return Answers(
        list(zip(random, found[: len(random)], strict=True)), list(zip(catalogue, found[len(random) :], strict=True))
    )


def differences(answered: list[tuple[KvCacheRequest, dict[str, Any]]]) -> list[str]:
    return [f"{request}\n  {found}" for request, engine in answered if (found := compare(request, engine)) is not None]


@pytest.mark.vllm
def test_random_plans_are_counted_as_the_engine_counts_them(answers: Answers) -> None:
    found = differences(answers.random)
    assert not found, f"{len(found)} of {len(answers.random)} differ:\n" + "\n".join(found[:5])
    assert sum("num_blocks" in engine for _, engine in answers.random) > 150, "the plans hardly exercise the counts"
    assert sum("refusal" in engine for _, engine in answers.random) > 40


@pytest.mark.vllm
def test_catalogue_models_are_counted_as_the_engine_counts_them(answers: Answers) -> None:
    found = differences(answers.catalogue)
    assert not found, f"{len(found)} of {len(answers.catalogue)} differ:\n" + "\n".join(found[:5])
    assert len({request.model.name for request, _ in answers.catalogue}) > 170
