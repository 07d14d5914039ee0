"""What `tiers --dry-run` prints: the commands, the workload, what it will take."""

from typing import Any

import click

from longreach.cli.params import echo_json
from longreach.units import format_bytes, format_count, format_duration, format_tokens


def print_dry_run(commands: Any, sizing: Any, outlook: Any, *, as_json: bool) -> int:
    """On stdout. Nothing is started and nothing is written."""
    if as_json:
        from dataclasses import asdict

        echo_json(
            {
                "variants": [
                    {"name": variant.name, "argv": command.argv, "env": dict(command.env)}
                    for variant, command in commands
                ],
                "workload": None
                if sizing is None
                else {**asdict(sizing), "num_requests": sizing.num_requests, "distinct_tokens": sizing.distinct_tokens},
                "outlook": asdict(outlook),
            }
        )
        return 0
    from longreach.engine.shell import render_shell

    for variant, command in commands:
        click.echo(f"# {variant.name}\n{render_shell(command)}")
    click.echo("\n".join(_describe(sizing, outlook)))
    return 0


def _describe(sizing: Any, outlook: Any) -> list[str]:
    from longreach.measure.tiers.workload import describe_order

    lines = [f"starts: {outlook.num_starts}, and two more for each repeat with --arc, when a tier paid"]
    if sizing is not None:
        held = "an unknown number" if sizing.cpu_capacity_tokens is None else format_tokens(sizing.cpu_capacity_tokens)
        requests = f"{format_count(sizing.num_requests, 'request')} of {format_tokens(sizing.prompt_tokens)} tokens"
        sent, distinct = map(format_tokens, (sizing.num_requests * sizing.prompt_tokens, sizing.distinct_tokens))
        lines += [
            f"workload: {requests}: {describe_order(sizing)}",
            f"  {sent} tokens each run, {distinct} of them different",
            f"  the GPUs hold {format_tokens(sizing.gpu_capacity_tokens)}, the CPU tier {held}",
            *(f"  {note}" for note in sizing.notes),
        ]
    if outlook.run_s is not None:
        low, high = map(format_duration, outlook.run_s)
        lines.append(f"each run: {low} to {high} of prefill when nothing is hit, and the start before it")
    if outlook.disk_bytes_per_start is not None:
        lines.append(
            f"disk: at least {format_bytes(outlook.disk_bytes_per_start)} written at each start with the disk tier"
        )
    return lines
