"""Limits that one request must keep, as people type them, and how many kept them. Pure."""

import re
from collections.abc import Sequence
from dataclasses import replace

from longreach.errors import UsageError
from longreach.measure.bench.statistics import MIN_SAMPLES, proportion_interval
from longreach.measure.bench.summary_values import Goodput, Slo
from longreach.measure.bench.values import RequestRecord
from longreach.units import did_you_mean, shortened

_FIELDS = {"ttft": "ttft_s", "itl": "itl_s", "e2e": "e2e_latency_s"}
_OTHER_NAMES = {"tpot": "itl", "latency": "e2e"}
_SCALES = {"us": 1e-6, "ms": 1e-3, "s": 1.0, "m": 60.0, "min": 60.0, "h": 3600.0}
_DURATION = re.compile(r"(\d{1,9}(?:\.\d{1,9})?)\s*([a-z]+)")
_FIX = "--slo ttft=60s,itl=80ms,e2e=5m"


def parse_slo(text: str) -> Slo:
    """`ttft=60s,itl=80ms,e2e=5m`: any of the three, each once; units us, ms, s, m or min, h. UsageError otherwise."""
    limits: dict[str, float] = {}
    for part in text.split(","):
        name, equals, duration = (piece.strip().lower() for piece in part.partition("="))
        if not equals:
            raise UsageError(f"limit '{shortened(part)}' is not understood", "expected NAME=DURATION", _FIX)
        field = _field(name)
        if field in limits:
            raise UsageError(f"limit '{name}' stands twice in --slo", "each is given once", _FIX)
        limits[field] = _parse_duration(duration, name)
    return Slo(**limits)


def _field(name: str) -> str:
    field = _FIELDS.get(_OTHER_NAMES.get(name, name))
    if field is None:
        why = did_you_mean(name, tuple(_FIELDS)) or f"known are {', '.join(_FIELDS)}"
        raise UsageError(f"no limit is called '{shortened(name)}'", why, _FIX)
    return field


def _parse_duration(text: str, name: str) -> float:
    match = _DURATION.fullmatch(text)
    if match is None or match[2] not in _SCALES:
        why = f"expected a number and a unit of {', '.join(_SCALES)}"
        raise UsageError(f"{name} limit '{shortened(text)}' is no duration", why, _FIX)
    seconds = float(match[1]) * _SCALES[match[2]]
    if seconds <= 0:
        raise UsageError(f"{name} limit '{text}' is too short", "no request is answered in no time", _FIX)
    return seconds


def judge(record: RequestRecord, slo: Slo) -> bool:
    """Answered to its end within every limit."""
    pairs = (
        (record.ttft_s, slo.ttft_s),
        (_itl_at_most_s(record), slo.itl_s),
        (record.e2e_latency_s, slo.e2e_latency_s),
    )
    return record.ok and all(limit is None or (took is not None and took <= limit) for took, limit in pairs)


def is_unknown(record: RequestRecord, slo: Slo) -> bool:
    """Within all limits but that of ITL, which cannot be told: the server does not count the tokens."""
    return slo.itl_s is not None and _itl_at_most_s(record) is None and judge(record, replace(slo, itl_s=None))


def _itl_at_most_s(record: RequestRecord) -> float | None:
    """None where the tokens are not counted. One token has no time between tokens; where all came in one piece, it is at most
    what the rest of the answer took.
    """
    if record.itl_s is not None or record.output_tokens is None or record.ttft_s is None:
        return record.itl_s
    num_gaps = record.output_tokens - 1
    return (record.e2e_latency_s - record.ttft_s) / num_gaps if num_gaps > 0 else 0.0


def compute_goodput(records: Sequence[RequestRecord], slo: Slo, duration_s: float) -> Goodput | None:
    """Of all requests that ended, failed ones included; None of none. An interval of a share that lacks some would claim too
    much.
    """
    if not records:
        return None
    num_met = sum(judge(record, slo) for record in records)
    num_unknown = sum(is_unknown(record, slo) for record in records)
    is_sure = len(records) >= MIN_SAMPLES and not num_unknown
    return Goodput(
        slo=slo,
        num_met=num_met,
        share=num_met / len(records),
        share_interval=proportion_interval(num_met, len(records)) if is_sure else None,
        requests_per_s=num_met / duration_s if duration_s > 0 else 0.0,
        num_unknown=num_unknown,
    )
