"""`longreach plan`: decide, show the arithmetic, write plan.yaml."""

from pathlib import Path
from typing import Any

import click

from longreach.cli.complete import complete_gpus, complete_model, link_names, release_names
from longreach.cli.params import BYTES, FILE, Names, echo_json, json_option, stdout_paint
from longreach.cli.plan_options import WEIGHTS, goal_fields, goal_options
from longreach.engine.release import DEFAULT_RELEASE
from longreach.errors import UnknownModelError
from longreach.plan.goal import Goal


@click.command(short_help="Does MODEL serve the wanted context on these GPUs, and how?")
@click.argument("model", shell_complete=complete_model)
@click.option("--weights", type=click.Choice(WEIGHTS), help="Weight format, when the config does not say.")
@click.option(
    "--gpus",
    metavar="NxGPU",
    shell_complete=complete_gpus,
    help="Cards: 4xRTX4090; cpu for the CPU build. Default: this machine.",
)
@click.option(
    "--link",
    type=Names(link_names),
    metavar="LINK",
    help="How the GPUs are joined: pcie4x16, pcie4x16-p2p, pcie5x8, nvlink-bridge, nvlink.",
)
@click.option("--ram", type=BYTES, metavar="BYTES", help="Host memory.")
@click.option("--numa", type=click.IntRange(1, 1024), metavar="N", help="NUMA nodes of the host.")
@goal_options
@click.option("--instances", type=click.IntRange(1, 64), metavar="N", help="Equal instances that share the GPUs.")
@click.option(
    "--instance",
    "instance_texts",
    multiple=True,
    metavar="NAME:KEY=VALUE,...",
    help="One instance with settings of its own; repeat it. Keys are the option names without dashes in front.",
)
@click.option(
    "--vllm",
    "release",
    type=Names(release_names),
    default=DEFAULT_RELEASE,
    show_default=True,
    metavar="RELEASE",
    help="vLLM release.",
)
@click.option(
    "--mix",
    metavar="SHARE:TOKENS,...",
    help="A mix of prompts, 90%:8k,10%:500k: one instance with YaRN for all, or two, the short one without.",
)
@click.option(
    "--variant", type=click.Choice(("one", "two")), help="One or two instances for the mix, instead of the better one."
)
@click.option(
    "--sweep",
    metavar="NAME[=V1/V2...],...",
    help="Plan every combination of some options (tp,kv-cache-dtype,max-model-len=128k/256k): a table and its Pareto front.",
)
@click.option("-o", "--output", type=FILE, help="Write the plan as YAML, which `up` and `verify` read; a sweep as CSV.")
@click.option("-v", "--verbose", is_flag=True, help="Show every finding in full and the figures behind the forecast.")
@click.argument("extra_args", nargs=-1, type=click.UNPROCESSED, metavar="[-- VLLM_ARGS...]")
@json_option
def plan(model: str, *, as_json: bool, verbose: bool, output: Path | None, **values: Any) -> int:
    """Decide whether MODEL serves the wanted context on these GPUs, and how.

    MODEL is a catalogue name (qwen3.6-27b), a local folder, a config.json, or a hub id. Sizes: 750k is 750,000 tokens,
    10G is 10 x 2^30 bytes. What is not given is chosen, and the reason is printed. Arguments after -- reach vLLM untouched.

    Exit code 1 when the plan does not fit, cannot be told, or has a finding of severity error.
    """
    from longreach.cli.planning import Place, Shape, make_plan_from
    from longreach.plan.document import plan_to_document, unknown_document
    from longreach.report.plan_text import render_plan

    release, sweep = values.pop("release"), values.pop("sweep")
    place = Place(**{key: values.pop(key) for key in ("weights", "gpus", "link", "ram", "numa")})
    shape = Shape(**{key: values.pop(key) for key in ("instances", "instance_texts", "mix", "variant")})
    goal = Goal(**goal_fields(values))
    shape.check(goal, has_sweep=sweep is not None)
    if sweep is not None:
        from longreach.cli.plan_sweep import Swept, run_sweep

        return run_sweep(sweep, Swept(model, release, goal, place), output, as_json=as_json)
    try:
        made = make_plan_from(model, release, goal, place, shape)
    except UnknownModelError as error:
        if not as_json:
            raise
        echo_json(unknown_document(model, release, error))
        return error.exit_code
    if output is not None:
        from longreach.cli.plan_file import write_plan

        write_plan(output, made)
    if as_json:
        echo_json(plan_to_document(made))
    else:
        click.echo(render_plan(made, stdout_paint(), verbose=verbose))
        if output is not None:
            onward = (
                f"; next: longreach up {output}" if made.verdict == "fits" else ", as it is: it is not known to start"
            )
            click.echo(f"\nwritten to {output}{onward}", err=True)
    has_error = any(finding.severity == "error" for finding in made.findings)
    return 0 if made.verdict == "fits" and not has_error else 1
