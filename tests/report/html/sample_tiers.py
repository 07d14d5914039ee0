"""A comparison of tiers as it could have been: the CPU tier pays, the disk tier leaves it open."""

from random import Random

from tests.measure.tiers.tier_cases import Script, result_of

from longreach.measure.bench.values import BenchResult
from longreach.measure.tiers.decide import Measured, decide_step
from longreach.measure.tiers.figures import variant_figures
from longreach.measure.tiers.places import Place
from longreach.measure.tiers.values import TierRun, TierSet, TiersReport, TierStep, VariantFigures, WorkloadSizing

_NUM_PROMPTS, _SENDS, _MARGIN = 12, 3, 0.05
_PLACES = {index: Place(1 + index // _NUM_PROMPTS, index % _NUM_PROMPTS) for index in range(_NUM_PROMPTS * _SENDS)}
GPU, CPU, DISK = TierSet(("gpu",)), TierSet(("gpu", "cpu"), "lru"), TierSet(("gpu", "cpu", "disk"), "lru")
_SIZING = WorkloadSizing(
    prompt_tokens=1_000,
    num_prompts=_NUM_PROMPTS,
    group_size=_NUM_PROMPTS,
    sends_per_group=_SENDS,
    num_passes=1,
    gpu_capacity_tokens=4_096,
    cpu_capacity_tokens=32_768,
)


def report() -> TiersReport:
    """Two runs of each variant; a third one of the last did not start."""
    results = {
        GPU: [_result(2.0, 2.0, seed, device=720) for seed in (1, 2)],
        CPU: [_result(2.1, 0.3, seed, device=720, host=21_600) for seed in (3, 4)],
        DISK: [_result(2.15, wait, seed, device=720, host=21_600, disk=1_800) for wait, seed in ((0.2, 5), (0.36, 6))],
    }
    figures = [variant_figures(variant, runs, _PLACES) for variant, runs in results.items()]
    runs = [
        TierRun(variant, repeat, result) for variant, found in results.items() for repeat, result in enumerate(found, 1)
    ]
    return TiersReport(
        model="Qwen/Qwen3.6-27B",
        instance="main",
        release="0.32.0",
        device_type="cuda",
        is_hybrid=False,
        margin=_MARGIN,
        workload_source="12 prompts of 1,000 tokens, each sent 3 times",
        workload_digest="0f3c",
        sizing=_SIZING,
        figures=tuple(figures),
        steps=(_step(results, figures, 0, 1), _step(results, figures, 1, 2)),
        winner=CPU,
        runs=(*runs, TierRun(DISK, 3, failure="the engine died: <script>alert('x')</script>")),
        notes=("the disk tier never deletes: 1.2 TB a day at this rate",),
    )


def _result(cold_s: float, warm_s: float, seed: int, **hits: int) -> BenchResult:
    rng = Random(seed)
    waits = [mean * rng.gauss(1, 0.05) for mean in [cold_s] * _NUM_PROMPTS + [warm_s] * _NUM_PROMPTS * (_SENDS - 1)]
    cached = sum(hits.values()) // len(waits)
    return result_of(Script(waits, hits=tuple(hits.items()), cached=cached))


def _step(
    results: dict[TierSet, list[BenchResult]], figures: list[VariantFigures], base: int, variant: int
) -> TierStep:
    before, after = (
        Measured(figures[place], dict(enumerate(results[figures[place].variant], 1))) for place in (base, variant)
    )
    return decide_step(before, after, _PLACES, _MARGIN)
