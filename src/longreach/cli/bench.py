"""`longreach bench`: measure a server, and work with the files that this leaves."""

from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import Any

import click
from click.shell_completion import CompletionItem

from longreach.cli.bench_options import bench_options
from longreach.cli.bench_place import Place
from longreach.cli.bench_reading import read_settings, read_wish
from longreach.errors import ServerError, UsageError

_FILE_COMMANDS = ("compare", "report")
_LIMIT_IS_ASKED = "the server's limit is asked when the run begins: what is longer is left out then"
_STATE_CHECKS = frozenset({"cold_is_cold", "warm_is_warm", "evicted_was_evicted"})


class _Bench(click.Command):
    """A command whose first word may name one of its file commands instead of a target."""

    def make_context(
        self, info_name: str | None, args: list[str], parent: click.Context | None = None, **extra: Any
    ) -> click.Context:
        """That of the file command, if one is named."""
        _refuse_mistyped(args)
        if not args or args[0] not in _FILE_COMMANDS:
            return super().make_context(info_name, args, parent, **extra)
        from longreach.cli import bench_files

        command: click.Command = getattr(bench_files, args[0])
        return command.make_context(f"{info_name} {args[0]}", args[1:], parent, **extra)


def _refuse_mistyped(args: list[str]) -> None:
    """UsageError for `compere`: a lone word that names no file and is almost a file command."""
    if not args or not args[0].isalpha() or args[0] in _FILE_COMMANDS or Path(args[0]).exists():
        return
    from longreach.units import did_you_mean

    hint = did_you_mean(args[0], _FILE_COMMANDS)
    if hint:
        raise UsageError(f"'{args[0]}' is no plan, URL or command of bench", "there is no such file", hint)


def _complete_target(_ctx: click.Context, _param: click.Parameter, incomplete: str) -> list[CompletionItem]:
    names = [CompletionItem(name) for name in _FILE_COMMANDS if incomplete and name.startswith(incomplete)]
    return names or [CompletionItem(incomplete, type="file")]


@click.command(cls=_Bench, short_help="Measure TTFT, ITL and throughput: cold, warm, evicted.")
@click.argument("target", metavar="PLAN|URL", shell_complete=_complete_target)
@bench_options
def bench(target: str, *, as_json: bool, **values: Any) -> int:
    """Measure a server with prompts of exact length, and prove what the prefix cache did.

    Generated prompts unless --text, --trace, --turns or --workload names another source. A closed loop unless --rate or a
    trace says when to send. Results are kept line by line; Ctrl-C leaves what is known, and --resume goes on.

    \b
      longreach bench compare A.jsonl B.jsonl   better, equal, worse or not enough data
      longreach bench report FILE.jsonl         print a results file again

    Exit code 1 when a request failed (--allow-failures), or the cache was not in a state that --states claims.
    """  # noqa: D301 - click reads \b as a literal paragraph
    place = Place(target, values)
    wish = read_wish(values, place.default_length)
    workload = None if wish is not None else _read_workload(values["workload"])
    settings, slo = replace(read_settings(values, workload), needs_server=not as_json), _slo(values["slo"])
    if values["dry_run"]:
        return _dry_run(place, settings, wish, workload, as_json=as_json)
    try:
        result = _measure(place.target, settings, wish or workload, values["save_workload"])
    except ServerError as error:
        raise place.with_cure(error) from error
    _say_where(result, settings.journal)
    return _report(result, slo, place, values, as_json=as_json)


def _say_where(result: Any, journal: Path) -> None:
    from longreach.measure.bench.first_request import describe_slow_first

    is_left = result.interrupted or any(record.error_kind == "unreachable" for record in result.records)
    go_on = f"; to go on: --resume -o {journal}" if is_left else ""
    slow = describe_slow_first(result)
    with suppress(OSError):  # nobody listens any more; the report may have its reader
        if slow is not None:
            click.echo(slow, err=True)
        click.echo(f"results: {journal}{go_on}", err=True)


def _read_workload(path: Path) -> Any:
    from longreach.measure.workload.storing import read_workload

    return read_workload(path)


def _dry_run(place: Place, settings: Any, wish: Any, workload: Any, *, as_json: bool) -> int:
    from longreach.cli.bench_dry_run import print_dry_run
    from longreach.cli.bench_timing import OpenTiming
    from longreach.measure.bench.fitting import fit_wish, leaves_out, require_fit
    from longreach.measure.bench.prepare import outline_wish
    from longreach.measure.workload.outlines import Outline
    from longreach.measure.workload.wishes import TraceSource

    longest = place.longest_request
    if wish is None:
        if longest is not None:
            require_fit(workload.requests, longest)
        timing = OpenTiming.of(workload.requests, settings, workload.seed, is_trace=False)
        return print_dry_run(workload, settings, timing, place.expected_speed, as_json=as_json)
    fitted = fit_wish(wish, longest)
    found = outline_wish(fitted) or Outline(f"prompts cut from {wish.source.path}", {}, ())
    left_open = (_LIMIT_IS_ASKED,) if longest is None and leaves_out(wish) else ()
    found = replace(found, notes=(*wish.notes, *found.notes, *left_open))
    timing = OpenTiming.of(found.requests, settings, wish.seed, is_trace=isinstance(wish.source, TraceSource))
    return print_dry_run(found, settings, timing, place.expected_speed, as_json=as_json)


def _slo(text: str | None) -> Any:
    from longreach.measure.bench.slo import parse_slo

    return None if text is None else parse_slo(text)


def _measure(target: Any, settings: Any, source: Any, save_to: Path | None) -> Any:
    """Run it with progress on stderr; Ctrl-C, `kill` and a closed terminal give the partial result. `source` is a workload,
    or the wish for one.
    """
    import asyncio

    from longreach.cli.bench_progress import BenchProgress
    from longreach.cli.bench_timing import OpenTiming
    from longreach.cli.cancelling import cancelling_on_signals
    from longreach.measure import event_loop
    from longreach.measure.bench.prepare import choose_salt, prepare_workload
    from longreach.measure.bench.run import run_bench
    from longreach.measure.workload.storing import write_workload
    from longreach.measure.workload.values import Workload
    from longreach.measure.workload.wishes import TraceSource

    async def run() -> Any:
        with cancelling_on_signals():
            salted, workload = choose_salt(settings), source
            if not isinstance(source, Workload):
                workload = await prepare_workload(target, salted, source, progress)
            if save_to is not None and workload.nobody is None:
                write_workload(save_to, workload)
            timing = OpenTiming.of(workload.requests, salted, workload.seed, is_trace=is_trace)
            if timing.is_long and workload.nobody is None:
                progress.say(timing.describe())
            return await run_bench(target, salted, workload, progress)

    is_trace = isinstance(getattr(source, "source", None), TraceSource)
    progress = BenchProgress()
    if settings.resume and not settings.journal.exists():
        progress.say(f"there is no {settings.journal} yet: the run begins anew")
    try:
        return event_loop.run(run())
    except asyncio.CancelledError:  # before there was anything to report
        raise click.Abort from None
    finally:
        progress.close()


def _report(result: Any, slo: Any, place: Place, values: dict[str, Any], *, as_json: bool) -> int:
    from longreach.cli.bench_files import print_report, write_html
    from longreach.measure.bench.summary import summarise

    lengths = {record.prompt_tokens for record in result.counted if record.prompt_tokens is not None}
    speeds = [speed for length in sorted(lengths) if (speed := place.expected_speed(length)) is not None]
    summary = summarise(result, slo, speeds)
    if values["html"] is not None:
        write_html(values["html"], result, summary)
    print_report(result, summary, as_json=as_json)
    return _exit_code(result, summary, values["allow_failures"], claims_states=values["states"] is not None)


def _exit_code(result: Any, summary: Any, allowed_failures: int, *, claims_states: bool) -> int:
    """A state that the user did not ask for is told, not held against the run."""
    if result.interrupted:
        return 130
    failed = {item.name for item in summary.checks if item.verdict == "fail"}
    disproven = claims_states and not failed.isdisjoint(_STATE_CHECKS)
    return 1 if disproven or sum(not record.ok for record in result.records) > allowed_failures else 0
