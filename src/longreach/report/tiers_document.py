"""A comparison of tiers as one JSON document. Pure."""

from dataclasses import asdict
from typing import Any

from longreach.measure.tiers.values import SCHEMA, TierSet, TiersReport, TierStep, VariantFigures


def tiers_document(report: TiersReport) -> dict[str, Any]:
    """Every figure and verdict; the requests themselves stand in the results files that are named."""
    return {
        "schema": SCHEMA,
        "model": report.model,
        "instance": report.instance,
        "release": report.release,
        "device_type": report.device_type,
        "margin": report.margin,
        "workload": {
            "source": report.workload_source,
            "digest": report.workload_digest,
            "sizing": None
            if report.sizing is None
            else {**asdict(report.sizing), "num_requests": report.sizing.num_requests},
        },
        "variants": [_figures(one) for one in report.figures],
        "steps": [_step(step) for step in report.steps],
        "winner": _name(report.winner),
        "runs": [
            {"variant": run.variant.name, "repeat": run.repeat, "results": run.journal, "failure": run.failure}
            for run in report.runs
        ],
        "notes": list(report.notes),
        "results_folder": report.results_folder,
        "interrupted": report.interrupted,
    }


def _figures(one: VariantFigures) -> dict[str, Any]:
    document = asdict(one)
    return {
        "name": one.variant.name,
        **{key: value for key, value in document.items() if key not in ("variant", "hits_by_source")},
        "hits_by_source": None if one.hits_by_source is None else dict(one.hits_by_source),
        "hit_share": one.hit_share,
    }


def _step(step: TierStep) -> dict[str, Any]:
    document = asdict(step)
    rounds = [{"round": number, "ttft_gain": gain} for number, gain in step.gain_by_round]
    return {**document, "base": step.base.name, "variant": step.variant.name, "gain_by_round": rounds}


def _name(variant: TierSet | None) -> str | None:
    return None if variant is None else variant.name
