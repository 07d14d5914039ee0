"""What vLLM's own parser refuses of a foreign command, and what it takes without a word: LR900 to LR919. Pure."""

import re
from collections.abc import Callable, Iterator, Mapping
from typing import Literal

from longreach.engine.parser import ParseProblem, Use
from longreach.engine.parsing.parsed import ProblemKind
from longreach.engine.parsing.settings import ignored_keys
from longreach.engine.parsing.successors import find_successor
from longreach.engine.registry import releases_with_flag, version_key
from longreach.rules.edit import Edit
from longreach.rules.parser_edits import (
    drop_use,
    mend_flag,
    mend_json,
    mend_key,
    mend_model,
    mend_settings,
    mend_switch,
    mend_value,
    split_word,
    succeed,
    without_keys,
)
from longreach.rules.rule import Diagnosis, rule
from longreach.rules.written import CommandRule, WrittenCommand

Mend = Callable[[WrittenCommand, ParseProblem], Edit | None]
_JOINED = re.compile(r"['\"]--?[\w.-]+ ")
FlagFault = Literal["removed_flag", "flag_too_new", "single_dash", "unknown_flag"]


def _flag_fault(written: WrittenCommand, problem: ParseProblem) -> FlagFault:
    """Why a release does not have a flag, as far as other releases tell."""
    spelling = problem.use.spelling if problem.use is not None else ""
    if not spelling.startswith("--") and written.registry.find(f"-{spelling}") is not None:
        return "single_dash"
    releases = [version_key(version) for version in releases_with_flag(spelling)]
    if releases and releases[-1] < version_key(written.registry.version):
        return "removed_flag"
    return "flag_too_new" if releases and releases[0] > version_key(written.registry.version) else "unknown_flag"


def _word_fault(_: WrittenCommand, problem: ParseProblem) -> str:
    """Whether a stray word is a flag and its value in one piece."""
    return "flag_and_value_one_token" if _JOINED.search(problem.what) else "stray_word"


def _refusal(
    code: str,
    cause: str,
    title: str,
    kinds: tuple[ProblemKind, ...],
    mend: Mend,
    fault: Callable[[WrittenCommand, ParseProblem], str] | None = None,
) -> CommandRule:
    """The rule that tells the parse problems of some kinds; with `fault` those of them that have its cause."""

    @rule(code, "error", cause, title, outcome="refused_by_parser")
    def refused(written: WrittenCommand) -> Iterator[Diagnosis]:
        for problem in written.parsed.problems:
            if problem.kind in kinds and (fault is None or fault(written, problem) == cause):
                yield Diagnosis(problem.what, problem.why, problem.fix, edit=mend(written, problem))

    return refused


_REFUSALS: tuple[CommandRule, ...] = (
    _refusal("LR900", "prints_help", "the command prints help and exits", ("help",), drop_use),
    _refusal("LR901", "unknown_flag", "no release has such a flag", ("unknown_flag",), mend_flag, _flag_fault),
    _refusal("LR936", "removed_flag", "the flag is gone in this release", ("unknown_flag",), mend_flag, _flag_fault),
    _refusal("LR937", "flag_too_new", "the flag comes in a later release", ("unknown_flag",), mend_flag, _flag_fault),
    _refusal("LR938", "single_dash", "a long name has one dash only", ("unknown_flag",), mend_flag, _flag_fault),
    _refusal("LR902", "ambiguous_flag", "the prefix fits several flags", ("ambiguous_flag",), mend_flag),
    _refusal("LR903", "stray_word", "a word belongs to no flag", ("stray_word",), split_word, _word_fault),
    _refusal(
        "LR939",
        "flag_and_value_one_token",
        "a flag and its value are one word",
        ("stray_word",),
        split_word,
        _word_fault,
    ),
    _refusal("LR904", "flag_without_value", "a flag has no value", ("missing_value",), drop_use),
    _refusal("LR905", "switch_with_value", "a switch has a value", ("unwanted_value",), mend_switch),
    _refusal("LR906", "value_unreadable", "a value is not of its flag's type", ("wrong_value",), mend_value),
    _refusal("LR907", "value_not_a_choice", "a value is none of its flag's choices", ("wrong_choice",), mend_value),
    _refusal("LR908", "json_quoting", "a JSON value does not parse", ("bad_json",), mend_json),
    _refusal("LR909", "unknown_setting", "the release has no such key", ("unknown_key",), mend_key),
    _refusal("LR910", "setting_unreadable", "a key's value does not fit it", ("wrong_key_value",), mend_key),
    _refusal("LR911", "settings_conflict", "keys do not go together", ("rejected_settings",), mend_settings),
    _refusal(
        "LR912",
        "model_option_with_serve",
        "the model is not where it belongs",
        ("model_option", "no_model"),
        mend_model,
    ),
    _refusal("LR913", "bad_config_file", "the config file is not taken", ("bad_config",), lambda *_: None),
)


@rule("LR914", "warning", "setting_ignored", "the release passes over a key in silence", outcome="no_effect")
def setting_ignored(written: WrittenCommand) -> Iterator[Diagnosis]:
    """Up to 0.15 most settings classes drop the keys they do not know."""
    for entry in written.registry.flags.values():
        read = written.parsed.json(entry.name) if entry.settings_are_parsed else None
        if entry.settings is None or read is None:
            continue
        for path in ignored_keys(read, entry.settings, written.registry):
            yield Diagnosis(
                f"{entry.name} {'.'.join(path)!r} does nothing in vLLM {written.release.version}",
                f"{entry.settings} of {written.release.version} has no such key, and drops it without a word",
                f"remove {path[-1]!r}",
                edit=without_keys(written, entry.name, path),
            )


@rule("LR915", "warning", "config_not_in_force", "the config file does not count", outcome="no_effect")
def config_not_in_force(written: WrittenCommand) -> Iterator[Diagnosis]:
    """VLLM looks for the word `--config` alone, and drops what is false."""
    for use in written.parsed.named("--config"):
        if use.tokens and use.tokens[0] != "--config" and not use.from_config:
            yield Diagnosis(
                f"{use.tokens[0]} is never read",
                "vLLM looks for the word '--config' with the file behind it; in one word it is taken and forgotten",
                f"--config {use.value}",
                edit=Edit(set=(("--config", use.values),)),
            )
    for key in written.parsed.dropped:
        yield Diagnosis(
            f"'{key}: false' in the config file turns nothing off",
            f"'vllm serve' of {written.release.version} drops what is false instead of writing --no-{key.replace('_', '-')}",
            f"put --no-{key.replace('_', '-')} into the command",
            edit=Edit(set=((f"--no-{key.replace('_', '-')}", ()),)),
        )


@rule("LR916", "warning", "flag_repeated", "a flag is given twice and the last use wins", outcome="no_effect")
def flag_repeated(written: WrittenCommand) -> Iterator[Diagnosis]:
    """Dotted keys win over whole objects; those of one spelling over those of an earlier one."""
    for name in dict.fromkeys(use.name for use in written.parsed.uses):
        uses = [use for use in written.parsed.named(name) if not use.from_config]
        lost = _lost_uses(uses)
        if not lost or uses[0].entry is None or uses[0].entry.repeats or name == "--config":
            continue
        kept = next(use for use in reversed(uses) if use not in lost)
        said = " ".join(lost[0].tokens)
        yield Diagnosis(
            f"{_short(said)} does not count: {name} is given again",
            f"vLLM keeps {_short(' '.join(kept.tokens))}"
            + (": dotted keys are put behind all else" if kept.path else ""),
            "keep one of them",
            edit=Edit(remove_words=tuple(position for use in lost for position in use.positions)),
        )


def _lost_uses(uses: list[Use]) -> list[Use]:
    dotted = [use for use in uses if use.path]
    if not dotted:
        return uses[:-1]
    last = list(dict.fromkeys(use.spelling for use in dotted))[-1]
    return [use for use in uses if not use.path or use.spelling != last]


def _short(text: str) -> str:
    return repr(text if len(text) <= 60 else f"{text[:57]}...")


@rule("LR917", "advice", "flag_abbreviated", "a flag is written as a prefix of its name")
def flag_abbreviated(written: WrittenCommand) -> Iterator[Diagnosis]:
    """Taken while no other flag begins so; the next release may have one."""
    for use in written.parsed.uses:
        if use.is_abbreviated and not use.path and use.entry is not None:
            meant = f"--no-{use.name.removeprefix('--')}" if use.negated else use.name
            yield Diagnosis(
                f"{use.spelling} is short for {meant}",
                f"vLLM {written.release.version} has no other flag that begins so; a later release may",
                f"write {meant}",
                edit=Edit(set=((meant, use.values),)),
            )


@rule("LR918", "advice", "flag_deprecated", "the release is about to drop a flag")
def flag_deprecated(written: WrittenCommand) -> Iterator[Diagnosis]:
    """It still works."""
    for use in _deprecated(written, without_effect=False):
        assert use.entry is not None
        when = f"to be removed in {use.entry.deprecated}" if use.entry.deprecated else "deprecated"
        successor = find_successor(use.name, written.registry)
        yield Diagnosis(
            f"{use.name} is deprecated in vLLM {written.release.version}",
            f"{written.release.version} calls it {when}" + (f"; {successor.remark}" if successor is not None else ""),
            f"use {successor.name}" if successor is not None and successor.name else f"leave {use.name} out",
            edit=None if successor is None or use.from_config else succeed(written, use, successor),
        )


@rule("LR919", "warning", "flag_without_effect", "the release takes a flag that does nothing", outcome="no_effect")
def flag_without_effect(written: WrittenCommand) -> Iterator[Diagnosis]:
    """Kept so that old commands start."""
    for use in _deprecated(written, without_effect=True):
        yield Diagnosis(
            f"{use.name} does nothing in vLLM {written.release.version}",
            f"{written.release.version} takes it only so that old commands start: its help text says that it has no effect",
            f"remove {use.name}",
            edit=None if use.from_config else Edit(remove=(use.name,)),
        )


def _deprecated(written: WrittenCommand, *, without_effect: bool) -> Iterator[Use]:
    uses: Mapping[str, Use] = {use.name: use for use in written.parsed.uses}
    for use in uses.values():
        entry = use.entry
        if entry is not None and entry.deprecated is not None and entry.no_effect is without_effect:
            yield use


RULES: tuple[CommandRule, ...] = (
    *_REFUSALS,
    setting_ignored,
    config_not_in_force,
    flag_repeated,
    flag_abbreviated,
    flag_deprecated,
    flag_without_effect,
)
