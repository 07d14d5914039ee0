"""An edit: the change of a command's words that makes a finding vanish. Pure."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Edit:
    """Flags by canonical long name (`Use.name`), or by spelling where the release has no such flag.

    A set flag with its values replaces all its uses, dotted keys and the `--no-` half included, or is added at the end.
    """

    set: tuple[tuple[str, tuple[str, ...]], ...] = ()
    remove: tuple[str, ...] = ()
    remove_words: tuple[int, ...] = ()  # bare words that belong to nothing, by their position in argv
    model: str | None = None  # becomes the first word after `serve`
    set_env: tuple[tuple[str, str], ...] = ()
    unset_env: tuple[str, ...] = ()


def set_flag(name: str, *values: str) -> Edit:
    """The edit that gives one flag these values."""
    return Edit(set=((name, values),))


def remove_flag(*names: str) -> Edit:
    """The edit that takes flags out."""
    return Edit(remove=names)
