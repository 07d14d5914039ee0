"""`longreach up`, `status`, `logs`, `down`: the life of a deployment."""

from dataclasses import asdict
from pathlib import Path
from typing import Any

import click
from click.shell_completion import CompletionItem

from longreach.cli.params import FILE, FiniteRange, echo_json, engine_option, json_option, jsonable, stdout_paint


def _complete_deployment(_ctx: click.Context, _param: click.Parameter, incomplete: str) -> list[CompletionItem]:
    from longreach.launch.state import default_state_folder

    return [CompletionItem(name) for name in default_state_folder().deployments() if name.startswith(incomplete)]


@click.command(short_help="Start what PLAN decided and compare the engine with it.")
@click.argument("plan_path", metavar="PLAN", type=FILE)
@click.option("--name", help="Name of the deployment. Default: the plan file's name.")
@engine_option
@click.option("--foreground", is_flag=True, help="Stay until Ctrl-C, then stop the engine.")
@click.option(
    "--stall",
    "stall_s",
    type=FiniteRange(min=1),
    default=300,
    show_default=True,
    metavar="SECONDS",
    help="Give up when the log has not moved for so long.",
)
@click.option("--dry-run", is_flag=True, help="Print what would be started, and start nothing.")
@json_option
def up(plan_path: Path, *, as_json: bool, dry_run: bool, **settings: Any) -> int:
    """Start what PLAN decided, wait until it is ready, and compare what the engine says with the plan.

    The engine keeps running after the command ends (see status, logs, down). Exit code 1 when it does not start or
    differs from the plan.
    """
    from longreach.cli.from_plan import launch_specs
    from longreach.cli.plan_file import read_plan

    plan = read_plan(plan_path)
    if dry_run:
        return _print_dry_run(plan, as_json=as_json)
    report = start(launch_specs(plan), plan_path, **settings)
    if as_json:
        echo_json(asdict(report))
    elif not settings["foreground"]:  # there it was shown while the engine ran
        from longreach.report.launch_text import render_up

        click.echo(render_up(report, stdout_paint()))
        click.echo(
            f"\nnext: longreach verify {plan_path}, longreach bench {plan_path}; stop it: longreach down {report.deployment}",
            err=True,
        )
    differs = any(finding.severity == "error" for instance in report.instances for finding in instance.findings)
    return 1 if differs else 0


def start(
    specs: Any, plan_path: Path, *, name: str | None, engine: Path | None, foreground: bool, stall_s: float
) -> Any:
    """Run `launch.up` with progress on stderr. Returns its UpReport; Ctrl-C stops the engines and aborts."""
    from longreach.cli.launch_progress import LaunchProgress
    from longreach.launch.state import default_state_folder
    from longreach.launch.up import UpSettings
    from longreach.launch.up import up as launch_up
    from longreach.launch.watch import WaitLimits

    settings = UpSettings(
        deployment=name or plan_path.name.removesuffix(".yaml").removesuffix(".yml"),
        folder=default_state_folder(),
        engine=engine,
        plan_path=plan_path,
        foreground=foreground,
        limits=WaitLimits(stall_s=stall_s),
    )
    progress = LaunchProgress(shows_comparison=foreground)
    try:
        return launch_up(specs, settings, progress)
    finally:
        progress.close()


def _print_dry_run(plan: Any, *, as_json: bool) -> int:
    if as_json:
        echo_json({"instances": [{"name": item.name, "argv": item.argv, "env": item.env} for item in plan.instances]})
    else:
        for item in plan.instances:
            click.echo(f"# {item.name}, {item.base_url}\n{item.shell}\n")
    return 0


@click.command()
@json_option
def status(*, as_json: bool) -> int:
    """What runs, how it feels, and what only left a trace. Exit code 1 when something does not run as it should."""
    from longreach.launch.state import default_state_folder
    from longreach.launch.status import status as read_status
    from longreach.report.launch_text import render_status

    instances = read_status(default_state_folder())
    if as_json:
        echo_json({"instances": [asdict(item) for item in instances]})
    else:
        click.echo(render_status(instances, stdout_paint()))
    return 0 if all(item.life == "alive" and item.health in ("ok", "starting") for item in instances) else 1


@click.command()
@click.argument("name", required=False, shell_complete=_complete_deployment)
@click.option("-n", "--lines", default=40, show_default=True, type=click.IntRange(min=0), help="Last lines to show.")
@click.option("-f", "--follow", is_flag=True, help="Go on as the engine writes, until it ends.")
@click.option("--events", is_flag=True, help="Count and show only lines that longreach understands.")
@json_option
def logs(name: str | None, *, lines: int, follow: bool, events: bool, as_json: bool) -> None:
    """What the engine of a deployment wrote; also after it is gone. With --json one object a line."""
    from longreach.launch.read_logs import follow_logs, read_logs
    from longreach.launch.state import default_state_folder

    folder = default_state_folder()
    deployment = name or _only_deployment()
    read = follow_logs if follow else read_logs
    for record in read(folder, deployment, lines, only_events=events):
        if as_json:
            _echo_record(record)
        else:
            click.echo(record.text)


def _echo_record(record: Any) -> None:
    import json

    event = None if record.event is None else {"kind": type(record.event).__name__, **asdict(record.event)}
    click.echo(
        json.dumps(jsonable({"instance": record.instance, "text": record.text, "event": event}), ensure_ascii=False)
    )


def _only_deployment() -> str:
    from longreach.errors import UsageError
    from longreach.launch.state import default_state_folder

    folder = default_state_folder()
    known = folder.deployments() or folder.logged()  # one whose start failed has left its log
    if len(known) == 1:
        return known[0]
    if not known:
        raise UsageError("there is no log", "nothing was started here", "longreach up plan.yaml")
    raise UsageError("which deployment is not clear", f"known are {', '.join(known)}", f"longreach logs {known[0]}")


@click.command(short_help="Stop deployments and clear away what they left.")
@click.argument("names", nargs=-1, metavar="[NAME...]", shell_complete=_complete_deployment)
@json_option
def down(names: tuple[str, ...], *, as_json: bool) -> int:
    """Stop deployments (all of them without NAME): the engine, its helpers, what they left in shared memory."""
    from longreach.cli.launch_progress import LaunchProgress
    from longreach.launch.down import down as launch_down
    from longreach.launch.state import default_state_folder
    from longreach.report.launch_text import render_down

    progress = LaunchProgress()
    try:
        report = launch_down(names, default_state_folder(), progress)
    finally:
        progress.close()
    if as_json:
        echo_json(asdict(report))
    else:
        click.echo(render_down(report, stdout_paint()))
    return 1 if any(end.survivors for end in report.instances) or report.hints else 0
