"""Making an edit on a command's words. Pure."""

from longreach.engine.options import ServeCommand
from longreach.engine.parsing.parsed import ParsedCommand, Use
from longreach.rules.edit import Edit


def apply_edit(command: ServeCommand, parsed: ParsedCommand, edit: Edit) -> ServeCommand:
    """The command with the edit made; `parsed` is that command's reading, which knows where its words stand."""
    settings = dict(edit.set)
    taken = set(edit.remove_words)
    starts: dict[int, str] = {}  # where the first use of a set flag stood
    for use in parsed.uses:
        name = _setting_for(use, settings)
        own = f"--no-{use.name.removeprefix('--')}" if use.negated else use.name
        if use.from_config or (name is None and not {use.name, own} & set(edit.remove)):
            continue
        taken |= set(use.positions)
        if name is not None and name not in starts.values():
            starts[use.position] = name
    argv: list[str] = []
    for index, word in enumerate(command.argv):
        if index in starts:
            argv += _words(starts[index], settings.pop(starts[index]))
        elif index not in taken:
            argv.append(word)
    for name, values in settings.items():
        argv += _words(name, values)
    if edit.model is not None:
        argv.insert(argv.index("serve") + 1, edit.model)
    changed = {*dict(edit.set_env), *edit.unset_env}
    kept = tuple(pair for pair in command.env if pair[0] not in changed)
    return ServeCommand(tuple(argv), (*kept, *edit.set_env))


def _setting_for(use: Use, settings: dict[str, tuple[str, ...]]) -> str | None:
    """The set flag that takes this use's place: the same one, or its `--no-` half."""
    halves = (use.name, f"--no-{use.name.removeprefix('--')}", f"--{use.name.removeprefix('--no-')}")
    return next((name for name in halves if name in settings), None)


def _words(name: str, values: tuple[str, ...]) -> tuple[str, ...]:
    if len(values) == 1 and values[0].startswith("-"):
        return (f"{name}={values[0]}",)  # a leading dash would read as the next flag
    return (name, *values)
