"""What click finds wrong with a command line, in the words of every other error: what, why, fix."""

import re
from collections.abc import Sequence
from typing import Any

import click

from longreach.cli.commands import COMMANDS
from longreach.cli.params import advice_on
from longreach.errors import UsageError
from longreach.units import shortened

_LONG_NUMBER = re.compile(r"[\d.]{41,}")


def from_click(error: click.ClickException, argv: Sequence[str]) -> UsageError:
    """`argv` says which command was meant, where click's own parser does not."""
    context = error.ctx if isinstance(error, click.UsageError) else None
    path = context.command_path if context is not None else _path(argv)
    message = error.format_message()
    if isinstance(error, click.NoSuchOption):  # click adds its guesses to the message: here they are the fix
        message = f"no such option '{error.option_name}'"
    what = _LONG_NUMBER.sub(lambda number: shortened(number[0]), _one_line(message))
    return UsageError(what, *_advice(error, path))


def _path(argv: Sequence[str]) -> str:
    """`longreach plan`: the options before a command's name take no values."""
    name = next((word for word in argv if not word.startswith("-")), None)
    return f"longreach {name}" if name in COMMANDS else "longreach"


def _one_line(message: str) -> str:
    """As our own messages begin and end: lower case, no full stop."""
    text = " ".join(message.split()).rstrip(".")
    return text[:1].lower() + text[1:]


def _advice(error: click.ClickException, path: str) -> tuple[str, str]:
    """(why, fix)."""
    see = f"{path} --help"
    match error:
        case click.MissingParameter():
            return f"{path} needs it", _usage(error.ctx) or see
        case click.NoSuchOption():
            near = " or ".join(error.possibilities or ())
            return f"{path} has no option of that name", f"did you mean {near}?" if near else see
        case click.BadOptionUsage(option_name=name):
            return f"{path} takes {name} {_metavar(name, path)}".rstrip(), see
        case click.BadParameter(param=click.Option() as option):
            name = option.opts[0]
            return f"{path} does not take that value", advice_on(option.type, name, option.metavar)
        case click.BadArgumentUsage():
            return f"{path} takes no such argument", _usage(error.ctx) or see
        case _:
            return f"{path} does not take it", see


def _usage(context: click.Context | None) -> str | None:
    """`longreach plan [OPTIONS] MODEL`."""
    if context is None:
        return None
    return " ".join((context.command_path, *context.command.collect_usage_pieces(context)))


def _metavar(name: str, path: str) -> str:
    """What follows an option of the command, as its help calls it; empty for a switch."""
    command: Any = COMMANDS.get(path.removeprefix("longreach "))
    options = (item for item in getattr(command, "params", ()) if isinstance(item, click.Option))
    option = next((item for item in options if name in item.opts), None)
    if option is None or option.is_flag:
        return "without a value"
    return option.metavar or option.type.name.upper()
