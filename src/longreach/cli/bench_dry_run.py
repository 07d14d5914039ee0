"""What `bench --dry-run` prints: what would be sent, and how long the plan thinks that one cold pass takes."""

from collections.abc import Callable, Sequence
from dataclasses import asdict
from typing import Any

import click

from longreach.cli.bench_timing import OpenTiming
from longreach.cli.params import echo_json
from longreach.units import format_count, format_duration

Forecast = Callable[[int], Any]
"""What the plan expects of a prompt of this length; None where it does not say."""


def print_dry_run(found: Any, settings: Any, timing: OpenTiming, forecast: Forecast, *, as_json: bool) -> int:
    """`found` is a workload or the outline of one; without requests they are known once the text is cut."""
    document = _describe(found, settings, timing, forecast)
    if as_json:
        echo_json(document)
    else:
        click.echo("\n".join(_lines(document, timing)))
    return 0


def _describe(found: Any, settings: Any, timing: OpenTiming, forecast: Forecast) -> dict[str, Any]:
    requests = found.requests or None
    lengths = None if requests is None else [request.prompt_tokens for request in requests]
    return {
        "source": found.source,
        "notes": found.notes,
        "states": settings.states,
        "load": asdict(settings.load),
        "num_requests": None if lengths is None else len(lengths),
        "prompt_tokens": None if lengths is None else sum(lengths),
        "shortest_prompt_tokens": min(lengths or (), default=None),
        "longest_prompt_tokens": max(lengths or (), default=None),
        "output_tokens": None if requests is None else sum(request.output_tokens for request in requests),
        "num_warm_up": settings.num_warm_up,
        "flood_tokens": settings.flood_tokens,
        "results": settings.journal,
        "last_due_s": timing.last_due_s or None,
        "expected_cold_s": _expect(requests or (), forecast),
    }


def _expect(requests: Sequence[Any], forecast: Forecast) -> dict[str, float] | None:
    """Seconds for one cold pass, one request after the other; None when the plan does not tell of every length."""
    low = high = 0.0
    for request in requests:
        speed = forecast(request.prompt_tokens)
        if speed is None:
            return None
        ttft, rate = speed.ttft_cold_s, speed.decode_tokens_per_s
        if None in (ttft.low, ttft.high, rate.low, rate.high):
            return None
        low += ttft.low + request.output_tokens / rate.high
        high += ttft.high + request.output_tokens / rate.low
    return {"low": low, "high": high} if requests else None


def _lines(document: dict[str, Any], timing: OpenTiming) -> list[str]:
    states = ", then ".join(state.replace("_", " ") for state in document["states"])
    lines = [f"would send: {document['source']}", f"for each of: {states}"]
    if document["num_requests"] is not None:
        shortest, longest = document["shortest_prompt_tokens"], document["longest_prompt_tokens"]
        each = f"{shortest:,}" if shortest == longest else f"{shortest:,} to {longest:,}"
        lines += [
            f"requests: {document['num_requests']:,} of {each} tokens, {document['prompt_tokens']:,} in all",
            f"output: {document['output_tokens']:,} tokens",
        ]
    lines += [f"note: {note}" for note in document["notes"]]
    load = document["load"]
    at_once = f", {load['concurrency']} at once" if load["concurrency"] else ""
    rate = f", {load['rate_per_s']:g} a second" if load["rate_per_s"] else ""
    lines.append(f"load: {load['arrivals']}{rate}{at_once}")
    if timing.last_due_s:
        lines.append(timing.describe())
    if document["num_warm_up"]:
        lines.append(f"warm-up: {format_count(document['num_warm_up'], 'request')}, part of no figure")
    if document["flood_tokens"] is not None:
        lines.append(f"flood: {document['flood_tokens']:,} tokens")
    lines.append(f"results: {document['results']}")
    expected = document["expected_cold_s"]
    if expected is not None:
        span = f"{format_duration(expected['low'])} to {format_duration(expected['high'])}"
        lines.append(f"expected by the plan for a cold pass, one request after the other: {span}")
    return lines
