"""The parser of `vllm serve`: the words of a foreign command to flags with their values, and every reason to refuse it. Pure.

Mirrors FlexibleArgumentParser (vLLM) and argparse (CPython). Where those stop at the first mistake this goes on, so that
all of them are told; a command has problems exactly when the real parser refuses it.
"""

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from pathlib import PurePath

from longreach.engine.parsing.dialect import Dialect, get_dialect
from longreach.engine.parsing.flag_checks import check_values
from longreach.engine.parsing.parsed import Entry, ParsedCommand, ParseProblem, Use, is_open
from longreach.engine.parsing.problems import missing_value, stray_words, unknown_flag, unwanted_value
from longreach.engine.parsing.quoting import explain_quoting
from longreach.engine.parsing.spelling import HELP, Match, match_option
from longreach.engine.parsing.successors import find_successor
from longreach.engine.parsing.words import (
    RefusedError,
    Word,
    config_words,
    gather_dotted,
    insert_config,
    move_model,
    normalise,
)
from longreach.engine.registry import FlagEntry, Registry, get_registry, releases_with_flag
from longreach.errors import UsageError

__all__ = ["ParseProblem", "ParsedCommand", "Use", "parse_arguments"]

_SERVER_MODULE = re.compile(r"vllm\.entrypoints\.(openai\.api_server|launchers\.api_server\.entry)")


def parse_arguments(
    argv: Sequence[str], registry: Registry, config: Mapping[str, object] | None = None
) -> ParsedCommand:
    """A command as the parser of one release reads it; `config` is the content of its `--config` file.

    UsageError when argv starts no server.
    """
    entry, start = _find_start(argv)
    draft = _Draft(tuple(argv), registry, get_dialect(registry.version), is_serve=entry == "serve")
    written = [Word(text, (position,)) for position, text in enumerate(argv) if position >= start]
    _consume(draft, _prepare(draft, written, config))
    for problem in _check_uses(draft):
        draft.problems.append(problem)
    path = next((use.value for use in draft.uses if use.name == "--config" and "=" not in use.tokens[0]), None)
    uses = tuple(sorted(draft.uses, key=lambda use: use.position))
    problems = explain_quoting(draft.problems, uses, argv, start)
    dropped = tuple(_dropped_keys(draft, config)) if path is not None and config is not None else ()
    model = draft.model or next((use.value for use in reversed(uses) if use.name == "--model"), None)
    return ParsedCommand(
        entry, model, uses, problems, registry, path, config is not None, dropped, passed_over=draft.passed_over
    )


def _find_start(argv: Sequence[str]) -> tuple[Entry, int]:
    for index, word in enumerate(argv):
        if word == "serve" and index and PurePath(argv[index - 1]).name in ("vllm", "vllm.entrypoints.cli.main"):
            return "serve", index + 1
        if _SERVER_MODULE.fullmatch(word):
            return "api_server", index + 1
    raise UsageError(
        "this command does not start a vLLM server",
        f"neither 'vllm serve' nor vllm.entrypoints.openai.api_server is in {' '.join(argv)[:80]!r}",
        "give the whole command, from 'vllm serve' on",
    )


@dataclass(slots=True)
class _Draft:
    """What parsing has gathered so far."""

    argv: tuple[str, ...]
    registry: Registry
    dialect: Dialect
    is_serve: bool
    model: str | None = None
    names_model: bool = False  # it can be no bare word
    passed_over: tuple[int, str] | None = None
    uses: list[Use] = field(default_factory=list)
    problems: list[ParseProblem] = field(default_factory=list)

    def tokens(self, words: Sequence[Word]) -> tuple[tuple[str, ...], tuple[int, ...]]:
        """The words as written and their positions; of words of the config file, their text and no position."""
        positions = tuple(sorted({position for word in words for position in word.positions}))
        return tuple(self.argv[position] for position in positions) or tuple(word.text for word in words), positions


def _prepare(draft: _Draft, words: list[Word], config: Mapping[str, object] | None) -> list[Word]:
    """The words that argparse gets; after a refusal the words as they stand, so that the rest is still looked at."""
    dialect, is_serve = draft.dialect, draft.is_serve
    steps: tuple[Callable[[list[Word]], list[Word]], ...] = (
        lambda words: move_model(words, dialect) if is_serve else words,
        lambda words: insert_config(words, dialect, config, is_serve=is_serve),
        lambda words: normalise(words, dialect),
        lambda words: gather_dotted(words, dialect),
    )
    _note_config(draft, words)
    for step in steps:
        words = _attempt(draft, step, words)
    return words


def _attempt(draft: _Draft, step: Callable[[list[Word]], list[Word]], words: list[Word]) -> list[Word]:
    try:
        return step(words)
    except RefusedError as refusal:
        draft.problems.append(refusal.problem)
        if refusal.problem.kind != "missing_value":
            return words
        return _attempt(
            draft, step, [word for word in words if not set(word.positions) & set(refusal.problem.positions)]
        )


def _note_config(draft: _Draft, words: Sequence[Word]) -> None:
    for option, path in pairwise(words):
        if option.text == "--config":
            tokens, positions = draft.tokens((option, path))
            entry = draft.registry.find("--config")
            draft.uses.append(Use(tokens, "--config", entry, (path.text,), positions=positions))


def _dropped_keys(draft: _Draft, config: Mapping[str, object]) -> Iterator[str]:
    """Keys with `false` that come to nothing, though their flags are on, or may be, without them."""
    kept = {word.text for word in config_words(config, draft.dialect, is_serve=draft.is_serve)}
    for key in (key for key, value in config.items() if value is False):
        entry = draft.registry.find(f"--{key.replace('_', '-')}")
        is_pair = entry is not None and entry.kind == "bool" and entry.default is not False
        is_given = any(use.entry is entry and not use.from_config for use in draft.uses)
        if is_pair and not is_given and f"--no-{key}" not in kept:
            yield key


def _consume(draft: _Draft, words: Sequence[Word]) -> None:
    """Bare words and options in turn, as argparse takes them."""
    end = next((index for index, word in enumerate(words) if word.text == "--"), len(words))
    matches = [match_option(word.text, draft.registry) if index < end else None for index, word in enumerate(words)]
    takes_model = draft.is_serve or draft.dialect.module_takes_model
    draft.names_model = not draft.is_serve or any(word.text.partition("=")[0] == "--model" for word in words[:end])
    index = 0
    while index < len(words):
        match = matches[index]
        bare = _count_bare(words, matches, index + (match is not None))
        if match is not None:
            own = words[index : index + 1 + bare]
            is_refused = not takes_model or _has_loose_word(words, matches, index + 2)
            index += (
                _take_truth(draft, match, own)
                if is_refused and _is_truth(match, own)
                else _take_option(draft, match, own)
            )
            continue
        if takes_model:
            takes_model = False
            taken = _take_model(draft, words[index:])
        else:
            taken = next(
                (place for place, other in enumerate(matches[index:]) if other is not None), len(words) - index
            )
            _take_stray(draft, words[index : index + taken])
        index += taken


def _count_bare(words: Sequence[Word], matches: Sequence[Match | None], start: int) -> int:
    end = start
    while end < len(words) and matches[end] is None and words[end].text != "--":
        end += 1
    return end - start


def _has_loose_word(words: Sequence[Word], matches: Sequence[Match | None], start: int) -> bool:
    """Whether a bare word from there on is left over by the options, so that no other can be the model too."""
    index = start
    while index < len(words):
        match = matches[index]
        if match is None:
            return not is_open(words[index].text)
        bare = _count_bare(words, matches, index + 1)
        entry = match.entry
        index += 1 + (bare if entry is None else 0 if match.value is not None else _count_taken(entry.nargs, bare))
    return False


_TRUTHS = ("true", "false", "yes", "no", "on", "off", "1", "0")


def _is_truth(match: Match, words: Sequence[Word]) -> bool:
    """Whether a switch has a word behind it that says on or off."""
    entry = match.entry
    if entry is None or entry is HELP or entry.nargs != "0" or match.value is not None:
        return False
    return len(words) > 1 and words[1].text.lower() in _TRUTHS


def _take_truth(draft: _Draft, match: Match, words: Sequence[Word]) -> int:
    """A switch with the word that it does not take: what it says counts, as in `--switch=false`."""
    uses = _build_uses(draft, match, words[:2], (words[1].text,))
    draft.uses += uses
    draft.problems.append(unwanted_value(uses[0]))
    return 2


def _take_model(draft: _Draft, words: Sequence[Word]) -> int:
    """The first bare word, with a `--` before or behind it."""
    taken = int(words[0].text == "--")
    if taken == len(words):
        return taken
    model = words[taken]
    if draft.is_serve:
        draft.model = model.text
    elif model.positions:
        draft.passed_over = model.positions[0], model.text
    if model.is_model_option:
        tokens, positions = draft.tokens((model,))
        draft.uses.append(Use(tokens, "--model", draft.registry.find("--model"), (model.text,), positions=positions))
    ends = taken == 0 and len(words) > 1 and words[1].text == "--"
    return taken + 1 + ends


def _take_option(draft: _Draft, match: Match, words: Sequence[Word]) -> int:
    """The option that is the first of `words` with what it takes of the bare words behind it; how many words went."""
    entry = match.entry
    if entry is None:
        return _take_unknown(draft, match, words)
    taken = 0 if match.value is not None else _count_taken(entry.nargs, len(words) - 1)
    values = tuple(word.text for word in words[1 : 1 + taken]) if match.value is None else (match.value,)
    if match.value == "--":
        values = ()  # argparse takes a lone `--` out even of `--port=--`, and is content with nothing
    uses = _build_uses(draft, match, words[: 1 + taken], values)
    draft.uses += [use for use in uses if entry is not HELP]
    draft.problems += _check_count(match, entry, values, uses[0])
    return 1 + taken


def _count_taken(nargs: str, available: int) -> int:
    if nargs in ("*", "+"):
        return available
    return min(available, 1 if nargs == "?" else int(nargs))


_LEAST = {"0": 0, "?": 0, "*": 0, "+": 1}


def _check_count(match: Match, entry: FlagEntry, values: Sequence[str], use: Use) -> Iterable[ParseProblem]:
    if entry is HELP:
        yield ParseProblem(
            "help",
            f"{match.written} prints help and exits",
            "with --help no server starts",
            "remove it",
            use,
            suggestion=(),
        )
    elif entry.nargs == "0" and match.value is not None:
        yield unwanted_value(use)
    elif match.value is None and len(values) < (_LEAST[entry.nargs] if entry.nargs in _LEAST else int(entry.nargs)):
        yield missing_value(use)


def _build_uses(draft: _Draft, match: Match, words: Sequence[Word], values: tuple[str, ...]) -> tuple[Use, ...]:
    """One use, or one for each dotted key that was gathered into the value."""
    name, entry, negated = match.written, match.entry, match.negated
    if not words[0].parts:
        tokens, positions = draft.tokens([words[0], *(word for word in words[1:] if not word.parts)])
        return (Use(tokens, name, entry, values, (), False, negated, positions),)
    uses = []
    for item in words[0].parts:
        part = item.part
        tokens, positions = draft.tokens((Word(f"{name}.{'.'.join(part.path)}", item.positions), Word(part.value)))
        uses.append(Use(tokens, name, entry, (part.value,), part.path, part.append, negated, positions))
    return tuple(uses)


def _take_unknown(draft: _Draft, match: Match, words: Sequence[Word]) -> int:
    """An option that the release lacks. The real parser leaves the words behind it alone.

    Where another release has the option, as many as it takes there are counted to it; one to a flag under another name;
    where nothing is known of it, all but the model.
    """
    taken = 0 if "=" in words[0].text else _count_meant(draft, match, words)
    values = (
        (words[0].text.partition("=")[2],)
        if "=" in words[0].text
        else tuple(word.text for word in words[1 : 1 + taken])
    )
    uses = _build_uses(draft, match, words[: 1 + taken], values)
    draft.uses += uses
    if not is_open(match.written):
        draft.problems.append(unknown_flag(uses[0], match.candidates, draft.registry))
    return 1 + taken


def _count_meant(draft: _Draft, match: Match, words: Sequence[Word]) -> int:
    available = len(words) - 1
    others = releases_with_flag(match.written)
    if others:
        entry = get_registry(others[-1]).find(match.written)
        return _count_taken(entry.nargs, available) if entry is not None else 0
    successor = find_successor(match.written, draft.registry)
    if successor is not None and successor.keeps_value:
        return min(available, 1)
    knows_model = draft.model is not None or draft.names_model
    return available if knows_model or words[0].parts else max(available - 1, 0)


def _take_stray(draft: _Draft, words: Sequence[Word]) -> None:
    """Bare words that belong to nothing; an open variable may be anything, also several words, so none is judged beside it."""
    texts = [word.text for word in words]
    named = any(word.partition("=")[0] == "--model" for word in draft.argv)
    if any(map(is_open, texts)) or (draft.model is not None and is_open(draft.model)):
        return
    positions = tuple(position for word in words for position in word.positions)
    draft.problems.append(
        stray_words(texts, positions, draft.model or (texts[0] if named else None), is_serve=draft.is_serve)
    )


def _check_uses(draft: _Draft) -> Iterable[ParseProblem]:
    """What the parser refuses of values: those of one spelling's dotted keys are looked at together."""
    groups: dict[tuple[str, object], list[Use]] = {}
    for index, use in enumerate(draft.uses):
        groups.setdefault((use.spelling, "dotted" if use.path else index), []).append(use)
    for uses in groups.values():
        yield from check_values(uses, draft.registry, draft.dialect)
