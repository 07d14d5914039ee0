"""`longreach lint`: any `vllm serve` command against its model, its machine and a release."""

from pathlib import Path

import click

from longreach.cli.complete import complete_gpus, complete_model, link_names, release_names
from longreach.cli.params import FILE, Names, echo_json, json_option, stdout_paint


@click.command(short_help="What is wrong with a `vllm serve` line, and the line that works.")
@click.option(
    "--model", metavar="MODEL", shell_complete=complete_model, help="Default: the model that the line names, if known."
)
@click.option("--gpus", metavar="NxGPU", shell_complete=complete_gpus, help="Cards: 4xRTX4090. Default: not known.")
@click.option("--link", type=Names(link_names), metavar="LINK", help="How the GPUs are joined: pcie4x16, nvlink, ...")
@click.option(
    "--vllm",
    "release",
    type=Names(release_names),
    metavar="RELEASE",
    help="Default: the tag of the image, else the newest.",
)
@click.option(
    "--config", "config_file", type=FILE, help="The file that --config of the line means, if it lies elsewhere."
)
@click.option("--fix", is_flag=True, help="Print the corrected command, with what was mended as comments.")
@click.option("-v", "--verbose", is_flag=True, help="Show advice in full too.")
@click.argument("words", nargs=-1, type=click.UNPROCESSED, metavar="(FILE | -- vllm serve ...)")
@json_option
def lint(
    words: tuple[str, ...],
    *,
    model: str | None,
    gpus: str | None,
    link: str | None,
    release: str | None,
    config_file: Path | None,
    fix: bool,
    verbose: bool,
    as_json: bool,
) -> int:
    """Check a command that somebody wrote: after --, or in a file (- is stdin).

    FILE may be a shell script, a compose file, a systemd unit, a Kubernetes manifest, a Dockerfile, a Makefile, a workflow or a
    Python file. Told apart are what vLLM's parser refuses, what fails later at start, and what is accepted without effect.
    Without --vllm the line is judged for the newest release, and the releases on which it works are named.

    Exit code 1 when a command has a finding of severity error; with --fix, when one is left that no edit mends.
    """
    from longreach.cli.linting import Given, judge_all, read_commands
    from longreach.report.lint_text import lint_document, render_fixed, render_judged

    given = Given(model, gpus, link, release, config_file)
    judged = judge_all(read_commands(words), given, fix=fix)
    if as_json:
        echo_json(lint_document(judged))
    else:
        judged_fully = sum(bool(item.releases) for item in judged)
        for item in judged:
            if item.fixed is not None:
                click.echo(render_fixed(item))
            else:
                click.echo(render_judged(item, stdout_paint(), verbose=verbose))
        if release is None and not fix and judged_fully < len(judged):
            click.echo(f"the releases that work are named for the first {judged_fully} of {len(judged)} commands")
    return 1 if any(item.fails for item in judged) else 0
