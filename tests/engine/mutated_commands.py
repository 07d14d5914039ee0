"""Command lines as people get them wrong: real ones with flags dropped, misspelled, doubled, values changed, JSON broken."""

import json
import random
from collections.abc import Callable, Iterator, Sequence
from typing import TypeVar

from longreach.engine.registry import FlagEntry, Registry, SettingEntry

Command = list[str]
T = TypeVar("T")

UNJUDGED = ("--config", "--mm-processor-device")
"""One reads a file; the choices of the other depend on the platform."""

_VALUES = (
    *("4", "0", "-1", "+4", " 4 ", "1_000", "0x10", "\u0663", "1.5", "-0.5", "1e3", "nan", "inf", "", "None", "abc"),
    *(
        "10G",
        "10g",
        "1.5G",
        "1.5k",
        "10GiB",
        "1k",
        "750,000",
        "auto",
        "true",
        "false",
        "fp8",
        "bf16",
        "none",
        "0-3",
        "a,b",
    ),
    *("{}", '{"a": 1}', '{"a": 1', "[1, 2]", "null", "'4'", '"x"', "a b", "--", "-", "-x", "--x", "x=1", "image=4"),
)
_JSON_VALUES = (
    *("1", "0", "-1", "1.0", "1.5", "300", "1e3", "1e400", "NaN", "80g", "80G", "1.5G", "true", "false", "null"),
    *(
        '"x"',
        '"4"',
        '"1.0"',
        '" 4 "',
        '"1_000"',
        '"0-3"',
        '"yes"',
        '"none"',
        '"auto"',
        '"+x"',
        '"kv_both"',
        '"triton-x"',
    ),
    *("[]", "[1, 2]", '[1, "2"]', '["a"]', '["+x"]', "[true]", "{}", '{"a": 1}'),
)
_WORDS = (
    *(
        "word",
        "x y",
        "-5",
        "-0.5",
        "--",
        "-",
        "-tp4",
        "-tp=4",
        "-t",
        "-n4",
        "-q",
        "-q=fp8",
        "-ep",
        "-ep=1",
        "-d",
        "-r0",
        "-x",
    ),
    *(
        "-O3",
        "-O",
        "-O 3",
        "-O=2",
        "-Ofoo",
        "-cc",
        "-cc.mode=3",
        "-asc=2",
        "--model",
        "--model=x",
        "--model=",
        "--no-",
        "--no-x",
    ),
    *("--served-model-name", "-h", "--help", "--help=all", "=x", "--=x", "--version"),
)


class Mutator:
    """Draws mutated commands; the same seed draws the same ones."""

    def __init__(self, registry: Registry, lines: Sequence[Sequence[str]], seed: int) -> None:
        self._random = random.Random(seed)
        self._settings = registry.settings
        self._flags = [entry for entry in registry.flags.values() if entry.name not in UNJUDGED]
        self._json_flags = [entry for entry in self._flags if entry.kind.startswith("json")]
        self._lines = [list(line) for line in lines]
        self._mutations: tuple[Callable[[Command], None], ...] = (
            *(self._drop, self._double, self._misspell, self._abbreviate, self._underscore, self._swap),
            *(self._change_value, self._break_json, self._add_flag, self._add_flag, self._add_flag),
            *(self._add_dotted, self._add_dotted, self._add_word),
        )

    def draw(self, count: int) -> Iterator[Command]:
        """Commands from the model on, each with one to three mutations."""
        for _ in range(count):
            command = list(self._pick(self._lines)) if self._chance(0.5) else ["m"]
            for _ in range(self._pick((1, 1, 1, 2, 2, 3))):
                self._pick(self._mutations)(command)
            yield command

    def _pick(self, items: Sequence[T]) -> T:
        return self._random.choice(items)

    def _chance(self, share: float) -> bool:
        return self._random.random() < share

    def _place(self, command: Command) -> int:
        return self._random.randrange(len(command) + 1)

    def _change_at(self, command: Command, wanted: Callable[[str], bool], change: Callable[[str], str]) -> None:
        places = [index for index, word in enumerate(command) if wanted(word)]
        if places:
            index = self._pick(places)
            command[index] = change(command[index])

    # Mutations of what is there

    def _drop(self, command: Command) -> None:
        if len(command) > 1:
            del command[self._random.randrange(len(command))]

    def _double(self, command: Command) -> None:
        if command:
            command.insert(self._place(command), self._pick(command))

    def _misspell(self, command: Command) -> None:
        self._change_at(command, _is_long_flag, self._typo)

    def _abbreviate(self, command: Command) -> None:
        self._change_at(command, _is_long_flag, lambda word: word[: self._random.randrange(4, len(word))])

    def _underscore(self, command: Command) -> None:
        self._change_at(command, _is_long_flag, lambda word: "--" + word[2:].replace("-", "_"))

    def _change_value(self, command: Command) -> None:
        self._change_at(command, lambda word: not word.startswith("-"), lambda _: self._pick(_VALUES))

    def _break_json(self, command: Command) -> None:
        self._change_at(command, lambda word: word.startswith("{"), self._broken)

    def _swap(self, command: Command) -> None:
        if command:
            one, other = self._random.randrange(len(command)), self._random.randrange(len(command))
            command[one], command[other] = command[other], command[one]

    # Mutations that add

    def _add_word(self, command: Command) -> None:
        command.insert(self._place(command), self._pick(_WORDS))

    def _add_flag(self, command: Command) -> None:
        entry = self._pick(self._flags)
        name, values, place = self._spelling(entry), self._values(entry), self._place(command)
        joined = bool(values) and self._chance(0.25)
        command[place:place] = [f"{name}={values[0]}"] if joined else [name, *values]

    def _add_dotted(self, command: Command) -> None:
        entry = self._pick(self._flags if self._chance(0.2) else self._json_flags)
        keys = self._settings.get(entry.settings or "", {})
        key = self._pick(tuple(keys) or ("a",))
        value = self._json_value(keys.get(key)) if self._chance(0.6) else self._pick(_VALUES)
        path = self._pick((key, key, key, f"{key}.x", self._typo(f"--{key}")[2:], "")) + self._pick(("", "", "", "+"))
        name = f"{self._spelling(entry)}.{path}"
        value = value.strip('"') if self._chance(0.6) else value
        place = self._place(command)
        command[place:place] = [f"{name}={value}"] if self._chance(0.5) else [name, value]

    # Parts of them

    def _spelling(self, entry: FlagEntry) -> str:
        return self._pick(entry.spellings)

    def _values(self, entry: FlagEntry) -> list[str]:
        if entry.nargs == "0" and self._chance(0.9):
            return []
        if entry.choices and self._chance(0.6):
            return [str(self._pick(entry.choices))]
        if entry.kind.startswith("json") and self._chance(0.75):
            return [self._object(entry.settings)]
        if self._chance(0.4):
            return [_USUAL.get(entry.kind, "x")]
        counts = (1, 1, 1, 1, 0, 2) if entry.nargs in "+*?" else (1, 1, 1, 1, 1, 1, 0, 2)
        return [self._pick(_VALUES) for _ in range(self._pick(counts))]

    def _object(self, settings: str | None, *, nested: bool = False) -> str:
        keys = self._settings.get(settings or "", {})
        chosen = [self._pick(tuple(keys) or ("a", "b")) for _ in range(self._pick((0, 1, 1, 2, 3)))]
        items = []
        for key in chosen:
            value = self._json_value(keys.get(key))
            items.append(f"{json.dumps(self._typo(f'--{key}')[2:] if self._chance(0.08) else key)}: {value}")
        text = "{" + ", ".join(items) + "}"
        return self._broken(text) if not nested and self._chance(0.1) else text

    def _json_value(self, entry: SettingEntry | None) -> str:
        if entry is not None and entry.settings is not None and self._chance(0.7):
            return self._object(entry.settings, nested=True)
        if entry is not None and entry.choices and self._chance(0.6):
            return json.dumps(self._pick(entry.choices))
        return self._pick(_JSON_VALUES)

    def _typo(self, word: str) -> str:
        place = self._random.randrange(2, len(word)) if len(word) > 3 else len(word) - 1
        changes = (
            word[:place],
            word[:place] + self._pick("abxyz-_"),
            word[:place] + word[place : place + 1].swapcase(),
        )
        skip = self._pick((0, 1))
        return self._pick(changes) + word[place + skip :]

    def _broken(self, text: str) -> str:
        return self._pick(
            (
                *(text[:-1], text + "}", f"'{text}'", text.replace('"', "'"), text.replace('"', "", 1)),
                *(text.replace(":", "=", 1), text.replace("}", ",}", 1), text.replace('"', '\\"')),
            )
        )


_USUAL = {"int": "4", "float": "0.5", "size": "8k", "length": "32k"}


def _is_long_flag(word: str) -> bool:
    return word.startswith("--") and len(word) > 5
