"""All that command rules look at: the words of a foreign command as one release's parser reads them.

Command rules are made with `rule(...)` like all others and listed in their module's `RULES`; the modules are `written_*`.
"""

from collections.abc import Mapping
from dataclasses import dataclass

from longreach.engine.launchfiles.found import FoundCommand
from longreach.engine.options import EngineOptions
from longreach.engine.parsing.parsed import ParsedCommand, is_open
from longreach.engine.registry import Registry
from longreach.engine.release import Release
from longreach.hardware.spec import Machine
from longreach.model.spec import ModelSpec
from longreach.rules.rule import Check

_NOTHING: Mapping[str, object] = {}


@dataclass(frozen=True, slots=True)
class WrittenCommand:
    """A command for one release. None: not known, and then nothing is said about it."""

    parsed: ParsedCommand
    release: Release
    registry: Registry
    options: EngineOptions  # what of it could be read as options
    env: tuple[tuple[str, str], ...] = ()
    model: ModelSpec | None = None
    machine: Machine | None = None
    found: FoundCommand | None = None  # the file it stood in: image, text mistakes, shared memory

    @property
    def max_model_len(self) -> int | None:
        """As given: what vLLM derives is not known here."""
        return self.options.max_model_len

    @property
    def max_num_batched_tokens(self) -> int | None:
        """As given."""
        return self.options.max_num_batched_tokens

    @property
    def max_num_seqs(self) -> int | None:
        """As given."""
        return self.options.max_num_seqs

    def variable(self, name: str) -> str | None:
        """The last value of an environment variable that the command sets."""
        return dict(self.env).get(name)

    def value(self, name: str) -> str | None:
        """The value in force of a flag by its canonical name; None when it is absent, or a shell variable stands there."""
        text = self.parsed.value(name)
        return None if text is None or is_open(text) else text

    def number(self, name: str) -> int | None:
        """The value in force as a whole number; None when it is absent or cannot be told."""
        text = self.value(name)
        return int(text) if text is not None and text.isascii() and text.isdigit() else None

    @property
    def transfer(self) -> Mapping[str, object] | None:
        """`--kv-transfer-config`, when it is given and can be read."""
        return self.parsed.json("--kv-transfer-config")

    @property
    def connector(self) -> str | None:
        """The KV connector by name; None when there is none."""
        name = (self.transfer or _NOTHING).get("kv_connector")
        return name if isinstance(name, str) and not is_open(name) else None

    @property
    def connector_extra(self) -> Mapping[str, object]:
        """`kv_connector_extra_config`; empty when there is none."""
        extra = (self.transfer or _NOTHING).get("kv_connector_extra_config")
        return extra if isinstance(extra, Mapping) else _NOTHING

    @property
    def speculative(self) -> Mapping[str, object] | None:
        """`--speculative-config`, when it is given and can be read."""
        return self.parsed.json("--speculative-config")


CommandRule = Check[WrittenCommand]


def span_text(releases: tuple[str, ...], newest: str) -> str:
    """`from 0.10.2 on`, `0.9.2 to 0.11.0`, `in 0.22.1 only`: an unbroken run of releases in words."""
    if len(releases) == 1 and releases[0] != newest:
        return f"in {releases[0]} only"
    return f"from {releases[0]} on" if releases[-1] == newest else f"in {releases[0]} to {releases[-1]}"
