"""What vLLM printed of its KV cache against the count by the rules of the launch's own release."""

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from tests.sizing.cases import read_cases

from longreach.engine.release import RELEASES, Release, possible_releases
from longreach.errors import LongreachError
from longreach.model.catalogue import load_catalogue_model
from longreach.model.config import parse_model_config
from longreach.sizing.kv_cache import plan_kv_cache, size_kv_cache
from longreach.sizing.kv_plan import KvPlan
from longreach.sizing.values import KvCacheRequest, KvCapacity
from longreach.units import GIB

Case = Mapping[str, Any]

_HALF_A_HUNDREDTH_GIB = 0.005 * GIB  # memory is logged to 0.01 GiB


@dataclass(frozen=True, slots=True)
class Outcome:
    """One launch, and the releases whose rules yield every number that it printed."""

    case: Case
    reproduced_by: tuple[str, ...]

    @property
    def is_expected(self) -> bool:
        """Reproduced, or listed with the reason why not."""
        return bool(self.reproduced_by) is (self.case["unexplained"] is None)


def read_outcomes() -> tuple[Outcome, ...]:
    """Every launch of the corpus."""
    return tuple(judge(case) for case in read_cases("published_logs"))


def judge(case: Case) -> Outcome:
    """Try the release that the log names (of a development build those around it), else every release."""
    releases = RELEASES if case["release"] is None else possible_releases(case["release"])
    by_rules = {_rules(found): found for found in releases}
    reproduced = {rules: _is_reproduced(case, found) for rules, found in by_rules.items()}
    return Outcome(case, tuple(dict.fromkeys(found.version for found in releases if reproduced[_rules(found)])))


def _rules(release: Release) -> Release:
    return replace(release, version="0")


def build_request(case: Case, release: Release) -> KvCacheRequest | None:
    """None without a model. What neither the source shows nor the case assumes is the release's default."""
    if case["model"] is None:
        return None
    model = load_catalogue_model(case["model"])
    fields = {
        "prefix_caching": not model.is_hybrid or release.hybrids_cache_prefixes_by_default,
        "max_model_len": model.max_position_embeddings,
        **case["assumed"],
        **case["request"],
    }
    drafter = parse_model_config(case["drafter"], "drafter") if "drafter" in case else None
    return KvCacheRequest(model, release, available_bytes_per_gpu=0, draft_model=drafter, **fields)


def _is_reproduced(case: Case, release: Release) -> bool:
    if not case["printed"].keys() - {"block_size"}:
        return False
    try:
        request = build_request(case, release)
        return request is not None and any(agrees(found, case["printed"]) for found in _possible(case, request))
    except LongreachError:  # the release has no layout for the model
        return False


def _possible(case: Case, request: KvCacheRequest) -> Iterator[KvCapacity]:
    """One capacity for each number of blocks that the log allows, the likeliest first."""
    plan = plan_kv_cache(request)
    block = plan.bytes_per_block
    counts = range(2**62)
    if "available_gib" in case:
        low, high = (int(case["available_gib"] * GIB + side * _HALF_A_HUNDREDTH_GIB) for side in (-1, 1))
        counts = range(low // block, high // block + 1)
        if "kv_needed_gib" in case["printed"]:
            yield size_kv_cache(replace(request, available_bytes_per_gpu=low))
    tokens = case["printed"].get("kv_tokens")
    for count in counts if tokens is None else _near_printed_tokens(request, plan, tokens):
        if count in counts:
            yield size_kv_cache(replace(request, available_bytes_per_gpu=count * block))


def _near_printed_tokens(request: KvCacheRequest, plan: KvPlan, tokens: int) -> Iterator[int]:
    if request.release.tokens_from_concurrency:
        nearest = tokens * plan.blocks_for_concurrency(request.max_model_len) // request.max_model_len
        yield from (nearest + 1, nearest, nearest + 2, nearest - 1)
    else:  # the count drops what is left of a division by the number of groups
        least = tokens // (plan.block_size * request.dcp_size) * len(plan.groups)
        yield from range(least, least + len(plan.groups))


def agrees(capacity: KvCapacity, printed: Mapping[str, Any]) -> bool:
    """Every printed number is the capacity's, at the log's own precision."""
    refusal = capacity.refusal or ""
    needed = re.search(r"\(([\d.]+) GiB KV cache is needed", refusal)
    estimate = re.search(r"maximum model length is (\d+)", refusal)
    found = {
        "kv_tokens": capacity.kv_capacity_tokens,
        "max_concurrency": float(f"{capacity.max_concurrency:.2f}"),
        "num_blocks": capacity.num_blocks,
        "block_size": capacity.block_size,
        "kv_needed_gib": float(needed[1]) if needed else None,
        "estimated_max_model_len": int(estimate[1]) if estimate else None,
    }
    return all(found[name] == value for name, value in printed.items())


def section() -> str:
    """The table and its summary, in Markdown."""
    outcomes = read_outcomes()
    met = [found for found in outcomes if found.reproduced_by]
    complete = [found for found in outcomes if not found.case["assumed"]]
    known = [found for found in outcomes if found.case["release"] is not None]
    lines = [
        "## Size of the KV cache",
        "",
        "Printed tokens, concurrency, blocks, or the GiB and the length of a refusal, from start-up logs; the memory for KV is",
        "taken from the log, which rounds it to 0.01 GiB. A launch counts as reproduced when the rules of the release it names",
        "yield every printed number; where it names none, the releases that do are listed. What a source does not show is said.",
        "",
        f"- {len(met)} of {len(outcomes)} launches are reproduced; of those that name a release {_share(known)}, of those that",
        f"  show every setting {_share(complete)}.",
        "",
        "| launch | release named | reproduced by | not shown, and taken for |",
        "|---|---|---|---|",
        *(_met_row(found) for found in met),
        "",
        "Not reproduced:",
        "",
        "| launch | release named | why |",
        "|---|---|---|",
        *(
            f"| {found.case['id']} | {found.case['release'] or ''} | {found.case['unexplained']} |"
            for found in outcomes
            if not found.reproduced_by
        ),
    ]
    return "\n".join(lines) + "\n"


def _share(outcomes: Sequence[Outcome]) -> str:
    return f"{sum(bool(found.reproduced_by) for found in outcomes)} of {len(outcomes)}"


def _met_row(found: Outcome) -> str:
    case = found.case
    named = [f"{name} {value}" for name, value in case["assumed"].items()]
    guessed = ["the model"] if case.get("model_inferred") else []
    drafter = ["the drafter's layers"] if "drafter" in case else []
    return (
        f"| {case['id']} | {case['release'] or ''} | {_span(found.reproduced_by)} | "
        f"{', '.join([*guessed, *drafter, *named])} |"
    )


def _span(versions: Sequence[str]) -> str:
    """Runs of releases: `0.20.2, 0.26.0 to 0.33.0`."""
    order = [release.version for release in RELEASES]
    runs: list[list[str]] = []
    for version in versions:
        if runs and order.index(version) == order.index(runs[-1][-1]) + 1:
            runs[-1].append(version)
        else:
            runs.append([version])
    return ", ".join(run[0] if len(run) == 1 else f"{run[0]} to {run[-1]}" for run in runs)
