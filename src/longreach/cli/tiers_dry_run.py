"""What `tiers --dry-run` prints: the commands, the workload, what it will take."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import click

from longreach.cli.params import echo_json
from longreach.units import format_bytes, format_count, format_duration, format_tokens


@dataclass(frozen=True, slots=True)
class DryRun:
    """`commands` are pairs of a variant and what is started for it; `sizing` is of generated prompts, `given` of others."""

    commands: list[tuple[Any, Any]]
    sizing: Any
    given: Any
    outlook: Any
    device_type: str


def print_dry_run(foreseen: DryRun, *, as_json: bool) -> int:
    """On stdout. Nothing is started and nothing is written."""
    if as_json:
        echo_json(_document(foreseen))
        return 0
    click.echo("\n".join([*_commands(foreseen), "", *_workload(foreseen), *_cost(foreseen.outlook)]))
    return 0


def _document(foreseen: DryRun) -> dict[str, Any]:
    from dataclasses import asdict

    sizing, given = foreseen.sizing, foreseen.given
    workload = (
        {**asdict(sizing), "num_requests": sizing.num_requests, "distinct_tokens": sizing.distinct_tokens}
        if given is None
        else asdict(given)
    )
    return {
        "variants": [
            {"name": variant.name, "argv": command.argv, "env": dict(command.env)}
            for variant, command in foreseen.commands
        ],
        "workload": workload,
        "outlook": asdict(foreseen.outlook),
    }


def _commands(foreseen: DryRun) -> Iterator[str]:
    """The first one whole, of the others the lines that it has not."""
    from longreach.engine.shell import render_shell
    from longreach.measure.tiers.notes import CPU_BUILD

    if foreseen.device_type == "cpu":
        yield f"# {CPU_BUILD}"
    first: list[str] = []
    for variant, command in foreseen.commands:
        lines = [line.removesuffix(" \\") for line in render_shell(command).splitlines()]
        if not first:
            first = lines
            yield f"# {variant.title}"
            yield render_shell(command).rstrip()
            continue
        yield f"# {variant.title}: the same, and"
        yield from (line for line in lines if line not in first)
        yield from (f"  without {line.strip()}" for line in first if line not in lines)


def _workload(foreseen: DryRun) -> Iterator[str]:
    from longreach.measure.tiers.workload import describe_order

    sizing, given = foreseen.sizing, foreseen.given
    if given is not None:
        span = "" if given.span_s is None else f", sent over {format_duration(given.span_s)}"
        yield f"workload: {given.source}"
        yield (
            f"  {format_count(given.num_requests, 'request')}, {format_tokens(given.prompt_tokens)} prompt tokens, "
            f"{format_tokens(given.output_tokens)} answer tokens each run{span}"
        )
        return
    held = "an unknown number" if sizing.cpu_capacity_tokens is None else format_tokens(sizing.cpu_capacity_tokens)
    requests = f"{format_count(sizing.num_requests, 'request')} of {format_tokens(sizing.prompt_tokens)} tokens"
    sent, distinct = map(format_tokens, (sizing.num_requests * sizing.prompt_tokens, sizing.distinct_tokens))
    yield f"workload: {requests}: {describe_order(sizing)}"
    yield f"  {sent} tokens each run, {distinct} of them different"
    yield f"  the GPUs hold {format_tokens(sizing.gpu_capacity_tokens)}, the CPU tier {held}"
    yield from (f"  {note}" for note in sizing.notes)


def _cost(outlook: Any) -> Iterator[str]:
    yield f"starts: {outlook.num_starts}, and two more for each repeat with --arc, when a tier paid"
    if outlook.run_s is None:
        yield f"each run: how long it takes cannot be told: {outlook.why_no_time}"
    else:
        low, high = map(format_duration, outlook.run_s)
        yield f"each run: {low} to {high} of prefill when nothing is hit, and the start before it"
    if outlook.disk_bytes_per_start is not None:
        yield f"disk: at least {format_bytes(outlook.disk_bytes_per_start)} written at each start with the disk tier"
