"""The command line: one group, every command a module beside this one. The only place that prints errors and exits."""

import contextlib
import signal
import sys
from typing import Any

import click

from longreach._version import __version__
from longreach.cli.commands import COMMANDS
from longreach.cli.params import echo_json
from longreach.cli.usage_error import from_click
from longreach.errors import LongreachError, UsageError
from longreach.report.findings_text import render_error
from longreach.report.style import Paint


class _Suggesting(click.Group):
    """A group that lists its commands in the order of the story and answers a mistyped one with the nearest."""

    def list_commands(self, _ctx: click.Context) -> list[str]:
        return list(self.commands)

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        from longreach.units import did_you_mean

        if args and self.get_command(ctx, args[0]) is None and not args[0].startswith("-"):
            hint = did_you_mean(args[0], self.list_commands(ctx)) or "see: longreach --help"
            raise click.UsageError(f"no command '{args[0]}'; {hint}", ctx)
        return super().resolve_command(ctx, args)


@click.group(
    cls=_Suggesting,
    commands=COMMANDS,
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 110},
)
@click.version_option(__version__, "--version", "-V", prog_name="longreach")
def cli() -> None:
    """Plan, start and prove long-context vLLM deployments on one multi-GPU box.

    \b
      longreach plan qwen3.6-27b --gpus 4xRTX4090 --max-model-len 750k -o plan.yaml
      longreach up plan.yaml
      longreach verify plan.yaml
      longreach down

    Exit codes: 0 fine, 1 findings of severity error or a failed check, 2 wrong usage.
    """  # noqa: D301 - click reads \b as a literal paragraph


def main(argv: list[str] | None = None) -> None:
    """Run and exit. Every foreseen error becomes what / why / fix on stderr."""
    _stop_as_by_ctrl_c()
    sys.exit(run(argv))


def _stop_as_by_ctrl_c() -> None:
    """`kill`, `timeout` and a closed terminal end a command as Ctrl-C does: what it started is ended, what it knows is told."""
    for name in ("SIGTERM", "SIGHUP"):  # Windows has no SIGHUP
        number = getattr(signal, name, None)
        if number is not None and signal.getsignal(number) == signal.SIG_DFL:
            signal.signal(number, _interrupt)


def _interrupt(_number: int, _frame: object) -> None:
    raise KeyboardInterrupt


def run(argv: list[str] | None = None) -> int:
    """The exit code of one command line."""
    try:
        _refuse_bytes(sys.argv[1:] if argv is None else argv)
        result: Any = cli.main(args=argv, prog_name="longreach", standalone_mode=False)
    except LongreachError as error:
        return _fail(error, argv)
    except click.exceptions.Abort:
        click.echo("stopped", err=True)
        return 130
    except click.exceptions.NoArgsIsHelpError as error:
        error.show()
        return error.exit_code
    except click.ClickException as error:
        return _fail(from_click(error, sys.argv[1:] if argv is None else argv), argv)
    except OSError as error:  # whatever a command reads or writes it explains itself: what is left is its own output
        what = f"{error.filename} cannot be used" if error.filename else "the output could not be written"
        return _fail(LongreachError(what, error.strerror or str(error), "make room, or write elsewhere"), argv)
    return result if isinstance(result, int) else 0


def _refuse_bytes(words: list[str]) -> None:
    """UsageError for a word that is not UTF-8: Python carries its bytes as lone surrogates, which no file or JSON can hold."""
    for place, word in enumerate(words, 1):
        try:
            word.encode()
        except UnicodeEncodeError:
            why = f"argument {place} holds bytes that are no letters: {word[:80]!a}"
            raise UsageError(
                "the command line is not UTF-8", why, "rename the file, or write the value in UTF-8"
            ) from None


def _fail(error: LongreachError, argv: list[str] | None) -> int:
    with contextlib.suppress(OSError):
        click.echo("\n".join(render_error(error, Paint(sys.stderr is not None and sys.stderr.isatty()))), err=True)
    if _wants_json(argv):
        with contextlib.suppress(OSError):
            echo_json(_error_document(error))
    return error.exit_code


def _error_document(error: LongreachError) -> dict[str, Any]:
    return {"error": {"what": error.what, "why": error.why, "fix": error.fix, "cause": error.cause}}


def _wants_json(argv: list[str] | None) -> bool:
    words = sys.argv[1:] if argv is None else argv
    return "--json" in words[: words.index("--")] if "--" in words else "--json" in words
