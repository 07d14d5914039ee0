"""An edit: the change of a command's words that makes a finding vanish. Pure."""

from dataclasses import dataclass

Value = str | tuple[str, ...] | None
"""One word, several words of a list flag, or None for a switch."""


@dataclass(frozen=True, slots=True)
class Edit:
    """Flags by canonical long name (`Use.name`). A set flag replaces all its uses, dotted keys included, or is added at the end."""

    set: tuple[tuple[str, Value], ...] = ()
    remove: tuple[str, ...] = ()
    remove_words: tuple[int, ...] = ()  # bare words that belong to nothing, by their position in argv
    model: str | None = None  # names another model
    set_env: tuple[tuple[str, str], ...] = ()
    unset_env: tuple[str, ...] = ()
