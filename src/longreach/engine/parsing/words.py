"""The words of a command as argparse gets to see them: what FlexibleArgumentParser does before it calls argparse. Pure.

It moves `--model`, unrolls `--config`, turns underscores into dashes and gathers dotted keys into one JSON value each.
"""

import json
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

from longreach.engine.parsing.dialect import Dialect
from longreach.engine.parsing.json_merge import DottedPart, merge_parts
from longreach.engine.parsing.parsed import ParseProblem, ProblemKind, is_open

_LEVELS = ("0", "1", "2", "3")
_MODEL_OPTION = re.compile(r"^--model(=.+|$)")
_NAME_OPTION = re.compile(r"^--served[-_]model[-_]name(=.+|$)")
_CONFIG_OPTION = re.compile(r"^--config(=.+|$)")
_HELP_OF = re.compile(r"--help=.*", re.DOTALL)


@dataclass(frozen=True, slots=True)
class Word:
    """One word, and where in the command it comes from."""

    text: str
    positions: tuple[int, ...] = ()  # in argv; empty for words of the config file
    is_model_option: bool = False  # the value of a `--model` that was moved to the front
    parts: tuple["DottedWord", ...] = ()  # of an option gathered from dotted keys, or of its value

    @property
    def is_option(self) -> bool:
        """Whether vLLM takes it for an option where it looks at the first character only."""
        return self.text.startswith("-")


@dataclass(frozen=True, slots=True)
class DottedWord:
    """One dotted key with its value, and where it stands."""

    part: DottedPart
    positions: tuple[int, ...]


class RefusedError(Exception):
    """vLLM's parser gives up on the words here."""

    def __init__(self, kind: ProblemKind, what: str, why: str, fix: str, positions: tuple[int, ...] = ()) -> None:
        super().__init__(what)
        self.problem = ParseProblem(kind, what, why, fix, positions=positions)


def move_model(words: Sequence[Word], dialect: Dialect) -> list[Word]:
    """`vllm serve --flag --model X` as `vllm serve X --flag`; RefusedError where the release refuses that."""
    index = next((i for i, word in enumerate(words) if _is_model_option(word.text, dialect)), None)
    if index is not None:
        words = _move(words, index, dialect)
    if dialect.name_needs_model and _lacks_model(words):
        why = "vLLM looks at the first word after 'serve' for the model before it looks at anything else"
        raise RefusedError(
            "no_model", "no model before --served-model-name", why, "vllm serve MODEL --served-model-name NAME"
        )
    return list(words)


def _is_model_option(text: str, dialect: Dialect) -> bool:
    if dialect.name_needs_model:  # the two came together
        return _MODEL_OPTION.match(text) is not None
    return text == "--model" or (dialect.model_option and text.startswith("--model="))


def _move(words: Sequence[Word], index: int, dialect: Dialect) -> list[Word]:
    option = words[index]
    if not dialect.model_option:
        why = "before 0.11.2 the model is the first word after 'serve', or in a config file"
        raise RefusedError(
            "model_option",
            "--model after 'vllm serve' is refused",
            why,
            "vllm serve MODEL, then the flags",
            option.positions,
        )
    name, equals, value = option.text.partition("=")
    if equals:
        model, rest = Word(value, option.positions, is_model_option=True), words[index + 1 :]
    elif index + 1 < len(words):
        following = words[index + 1]
        model = Word(following.text, (*option.positions, *following.positions), is_model_option=True)
        rest = words[index + 2 :]
    else:
        raise RefusedError(
            "missing_value",
            f"{name} has no value",
            "nothing follows it",
            "vllm serve MODEL, then the flags",
            option.positions,
        )
    return [model, *words[:index], *rest]


def _lacks_model(words: Sequence[Word]) -> bool:
    if not words or not words[0].is_option:
        return False
    texts = [word.text for word in words]
    return any(map(_NAME_OPTION.match, texts)) and not any(map(_CONFIG_OPTION.match, texts))


def insert_config(
    words: Sequence[Word], dialect: Dialect, config: Mapping[str, object] | None, *, is_serve: bool
) -> list[Word]:
    """The words with `--config FILE` replaced by what the file says, ahead of all other flags, so that those win.

    Nothing is known of the file without `config`. `--config=FILE` is not recognised: vLLM never reads that file.
    """
    places = [index for index, word in enumerate(words) if word.text == "--config"]
    if not places:
        return list(words)
    index = places[0]
    path = _config_path(words, places)
    given = [] if config is None else config_words(config, dialect, is_serve=is_serve)
    rest = [*words[:index], *words[index + 2 :]]
    names_model = bool(words) and not words[0].is_option
    if is_serve and not names_model and config is not None and not any(word.text == "--model" for word in given):
        why = f"neither the first word after 'serve' nor {path} names one"
        what, fix = f"no model, neither in the command nor in {path}", "vllm serve MODEL --config FILE"
        raise RefusedError("no_model", what, why, fix, words[index].positions)
    if is_serve:
        return [*rest[:1], *given, *rest[1:]] if names_model else [*given, *rest]
    if dialect.config_for_module and words[0].is_option:
        return [*given, *rest]
    return [*rest[:1], *given, *rest[1:]]


def _config_path(words: Sequence[Word], places: Sequence[int]) -> str:
    index = places[0]
    if len(places) > 1:
        positions = tuple(position for place in places for position in words[place].positions)
        why = "vLLM reads one config file"
        raise RefusedError("bad_config", "--config is given more than once", why, "merge the files into one", positions)
    if index + 1 == len(words):
        raise RefusedError(
            "missing_value", "--config has no value", "nothing follows it", "--config FILE.yaml", words[index].positions
        )
    path = words[index + 1].text
    if not is_open(path) and path.rpartition(".")[2] not in ("yaml", "yml"):
        why = "vLLM takes a config file whose name ends in '.yaml' or '.yml'"
        raise RefusedError(
            "bad_config",
            f"--config {path} is not a YAML file",
            why,
            f"rename it to {path}.yaml",
            words[index + 1].positions,
        )
    return path


def config_words(config: Mapping[str, object], dialect: Dialect, *, is_serve: bool) -> list[Word]:
    """The words a config file stands for.

    `key: false` is dropped by `vllm serve`, which looks for `--no-key` among the options of the program, not of `serve`.
    """
    words: list[str] = []
    for key, value in config.items():
        option = f"--{key}"
        if isinstance(value, bool):
            negated = dialect.config_negation and not is_serve and "_" not in key
            words += [option] if value else [f"--no-{key}"] if negated else []
        elif isinstance(value, list) and dialect.config_lists:
            words += [option, *map(str, value)] if value else []
        elif isinstance(value, dict) and dialect.config_objects:
            words += [option, json.dumps(value)]
        else:
            words += [option, str(value)]
    return [Word(text) for text in words]


def normalise(words: Sequence[Word], dialect: Dialect) -> list[Word]:
    """Underscores as dashes in option names, up to the first dot; `-O3` written out."""
    found: list[Word] = []
    for index, word in enumerate(words):
        if _HELP_OF.match(word.text):
            found.append(replace(word, text="--help"))
        elif word.text.startswith("--"):
            found.append(replace(word, text=_with_dashes(word.text, dialect)))
        elif word.text.startswith("-O") and dialect.optimization:
            following = words[index + 1].text if index + 1 < len(words) else None
            found += _write_out_level(word, following, dialect)
        else:
            found.append(word)
    return found


def _with_dashes(text: str, dialect: Dialect) -> str:
    name, equals, value = text.partition("=")
    head, dot, keys = name.partition(".") if dialect.dotted_keys else (name, "", "")
    return head.replace("_", "-") + dot + keys + equals + value


def _write_out_level(word: Word, following: str | None, dialect: Dialect) -> Iterable[Word]:
    name = dialect.optimization[0]
    if word.text == "-O":
        return [replace(word, text=name) if following in _LEVELS else word]
    if word.text[2] == "." and dialect.compilation_dots is not None:
        return [replace(word, text=dialect.compilation_dots + word.text[2:])]
    level = word.text[2:].removeprefix("=")
    if name.startswith("--"):
        return [replace(word, text=name), replace(word, text=level)]
    return [replace(word, text=f"{name}={level}")]


def gather_dotted(words: Sequence[Word], dialect: Dialect) -> list[Word]:
    """Dotted keys taken out and put to the end, merged into one `--flag JSON` for each spelling of the flag.

    RefusedError when the last one has no value.
    """
    if not dialect.dotted_keys:
        return list(words)
    kept: list[Word] = []
    groups: dict[str, list[DottedWord]] = {}
    remaining = iter(words)
    for word in remaining:
        name, equals, value = word.text.partition("=")
        if not (name.startswith("-") and "." in name):
            kept.append(word)
            continue
        positions = word.positions
        if not equals:
            following = next(remaining, None)
            if following is None:
                raise RefusedError(
                    "missing_value", f"{name} has no value", "nothing follows it", f"{name} VALUE", positions
                )
            value, positions = following.text, positions + following.positions
        head, *keys = name.removesuffix("+").split(".")
        part = DottedPart(tuple(keys), name.endswith("+"), value)
        groups.setdefault(head, []).append(DottedWord(part, positions))
    for head, own in groups.items():
        text = json.dumps(merge_parts((item.part for item in own), suffixes=dialect.suffixes_in_json))
        positions = tuple(position for item in own for position in item.positions)
        kept += [Word(head, positions, parts=tuple(own)), Word(text, positions, parts=tuple(own))]
    return kept
