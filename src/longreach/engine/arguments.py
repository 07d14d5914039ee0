"""An argv as the parser of `vllm serve` splits it, with the fields of EngineOptions that its flags fill. Pure."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from longreach.engine.flags import MODEL, Flag, flag_named, registry_of
from longreach.engine.parser import ParsedCommand, Use, parse_arguments
from longreach.engine.release import Release


@dataclass(frozen=True, slots=True)
class Argument:
    """One flag as it stands in the command, and the row it belongs to; None for what no field holds."""

    use: Use
    flag: Flag | None = None


@dataclass(frozen=True, slots=True)
class Arguments:
    """A split command, its model apart."""

    parsed: ParsedCommand
    model: str | None
    flags: tuple[Argument, ...]


def split_arguments(argv: Sequence[str], release: Release, config: Mapping[str, object] | None = None) -> Arguments:
    """Split `vllm serve MODEL ...` (or the api_server module's form), with what its `--config` file says.

    UsageError when argv starts no server.
    """
    parsed = parse_arguments(argv, registry_of(release), config)
    flags = tuple(Argument(use, flag_named(use.name)) for use in parsed.uses if use.name != MODEL)
    return Arguments(parsed, parsed.model, flags)
