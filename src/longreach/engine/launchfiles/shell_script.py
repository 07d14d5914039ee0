"""What the simple commands of a shell script run: variables that the script itself sets are expanded. Pure.

Other variables stay as `$NAME`. What only one branch of an `if` sets is open behind it; what a branch appends is left out.
"""

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

from longreach.engine.launchfiles.found import TextProblem
from longreach.engine.launchfiles.parameters import Value, expand_reference
from longreach.engine.launchfiles.shell_lexer import Piece, Statement, Word, split_statements

_ASSIGNMENT = re.compile(r"([A-Za-z_]\w*)(\[[^\]]*\])?(\+?)=")
_OPENING = frozenset(("if", "while", "until", "for", "case", "select"))
_CLOSING = frozenset(("fi", "done", "esac"))
_NEXT_BRANCH = frozenset(("else", "elif"))
_PREFIXES = frozenset(("then", "do", "!", "{", "}", "time", "function")) | _OPENING | _CLOSING | _NEXT_BRANCH
_DECLARING = frozenset(("export", "declare", "local", "readonly", "typeset"))
_MAX_EXPANDED = 4_000_000  # characters put in for variables; a text that doubles a variable again and again stays open
_MAX_VALUE = 100_000
_MAX_EXPORTED = 200


@dataclass(slots=True)
class RunLine:
    """One simple command of a script."""

    words: list[str]
    assigned: tuple[tuple[str, str], ...]  # before the command: only for it
    exported: tuple[tuple[str, str], ...]
    line: int
    problems: list[TextProblem] = field(default_factory=list)

    @property
    def env(self) -> tuple[tuple[str, str], ...]:
        """What the script adds to the environment of this command."""
        return tuple((dict(self.exported) | dict(self.assigned)).items())


@dataclass(slots=True)
class _Branches:
    """What changed since a compound command began: the value before, by name."""

    before: dict[str, Value | None] = field(default_factory=dict)
    changed: dict[str, Value | None] = field(default_factory=dict)


def read_script(text: str, known: Mapping[str, Value] | None = None) -> Iterator[RunLine]:
    """Every simple command in order, with `known` variables set from the start."""
    yield from _Reader(text, dict(known or {})).run_lines()


class _Reader:
    def __init__(self, text: str, variables: dict[str, Value]) -> None:
        self.text = text
        self.variables = variables
        self.exported: dict[str, None] = {}
        self.branches: list[_Branches] = []
        self.is_chained = False
        self.budget = _MAX_EXPANDED

    def run_lines(self) -> Iterator[RunLine]:
        pending: RunLine | None = None
        ends = ""
        for statement in split_statements(self.text):
            self._follow_chain(pending, ends)
            if pending is not None and ends == "\n" and _is_stray_option(statement):
                self._continue(pending, statement)
                ends = statement.ends
                continue
            if pending is not None:
                yield pending
            pending, ends = self._read(statement), statement.ends
            if ends == ";;":
                self._end_branch()
        if pending is not None:
            yield pending

    def _follow_chain(self, before: RunLine | None, ends: str) -> None:
        """What stands behind `[ ... ] &&` or `||` is a branch that ends with the chain."""
        if self.is_chained and ends not in ("&&", "||"):
            self.is_chained = False
            self._end_branches()
        is_test = before is not None and before.words[0] in ("[", "[[", "test")
        if not self.is_chained and (ends == "||" or (ends == "&&" and is_test)):
            self.is_chained = True
            self.branches.append(_Branches())

    def _continue(self, pending: RunLine, statement: Statement) -> None:
        pending.problems.append(_gap_problem(statement, self.text[statement.words[0].start : statement.words[0].end]))
        pending.words += self._expand_all(statement.words)
        pending.problems += _statement_problems(statement)

    def _read(self, statement: Statement) -> RunLine | None:
        words = self._follow_compound(statement)
        assigned: list[tuple[str, str]] = []
        taken = 0
        for word in words:
            pair = self._assignment(word)
            if pair is None:
                break
            taken += 1
            if pair[0]:
                assigned.append(pair)
        if taken == len(words):
            for word in words:
                self._assign(word)
            return None
        if words[taken].plain in _DECLARING:
            self._declare(words[taken:])
            return None
        exported = tuple((name, self._text_of(name)) for name in self.exported)
        line = RunLine(self._expand_all(words[taken:]), tuple(assigned), exported, statement.line)
        line.problems += _statement_problems(statement)
        return line if line.words else None

    def _follow_compound(self, statement: Statement) -> tuple[Word, ...]:
        """Note where branches begin and end; the words behind the reserved ones."""
        words = statement.words
        while words and (name := words[0].plain) in _PREFIXES:
            words = words[1:]
            if name in _OPENING:
                self.branches.append(_Branches())
            elif name in _NEXT_BRANCH:
                self._end_branch()
            elif name in _CLOSING:
                self._end_branches()
            if name in ("for", "case", "select", "function"):
                return ()
        return words

    def _end_branch(self) -> None:
        if not self.branches:
            return
        branches = self.branches[-1]
        for name, value in branches.before.items():
            now = self.variables.get(name)
            branches.changed[name] = value if _only_appends(value, now) else None
            _put(self.variables, name, value)
        branches.before.clear()

    def _end_branches(self) -> None:
        self._end_branch()
        if self.branches:
            for name, value in self.branches.pop().changed.items():
                self._set(name, value)

    def _set(self, name: str, value: Value | None) -> None:
        if self.branches:
            self.branches[-1].before.setdefault(name, self.variables.get(name))
        size = sum(map(len, value)) if isinstance(value, tuple) else len(value or "")
        _put(self.variables, name, value if size <= _MAX_VALUE else None)

    def _assignment(self, word: Word) -> tuple[str, str] | None:
        """Name and value of `NAME=value`; an empty name for an array, which no environment holds."""
        head = word.pieces[0]
        match = _ASSIGNMENT.match(head.text) if head.kind == "plain" else None
        if match is None:
            return None
        if word.array is not None or match[2]:
            return ("", "")
        return match[1], self._value(word, match.end())

    def _value(self, word: Word, start: int) -> str:
        head = word.pieces[0]
        rest = Word((Piece(head.text[start:], "plain"), *word.pieces[1:]), word.start, word.end)
        return "".join(self._joined(piece) for piece in rest.pieces)

    def _joined(self, piece: Piece) -> str:
        value = self._value_of(piece)
        return " ".join(value) if isinstance(value, tuple) else value

    def _assign(self, word: Word) -> None:
        match = _ASSIGNMENT.match(word.pieces[0].text)
        assert match is not None
        name, index, plus = match[1], match[2], match[3]
        before = self.variables.get(name) if plus else None
        if index:
            self._set(name, None)
        elif word.array is not None:
            added = tuple(self._expand_all(word.array))
            kept = before if isinstance(before, tuple) else () if before in (None, "") else (before,)
            self._set(name, (*kept, *added) if not plus or before is not None else None)
        else:
            value = self._value(word, match.end())
            if isinstance(before, tuple):
                self._set(name, (before[0] + value, *before[1:]) if before else (value,))
            else:
                self._set(name, value if not plus else None if before is None else before + value)

    def _declare(self, words: tuple[Word, ...]) -> None:
        exports = words[0].plain == "export"
        for word in words[1:]:
            match = _ASSIGNMENT.match(word.pieces[0].text)
            if match is not None:
                self._assign(word)
            if (
                exports
                and len(self.exported) < _MAX_EXPORTED
                and (name := match[1] if match else word.plain)
                and not name.startswith("-")
            ):
                self.exported[name] = None

    def _text_of(self, name: str) -> str:
        value = self.variables.get(name)
        return f"${name}" if value is None or isinstance(value, tuple) else value

    def _expand_all(self, words: tuple[Word, ...]) -> list[str]:
        return [value for word in words for value in self._expand(word)]

    def _expand(self, word: Word) -> list[str]:
        """The words that one word becomes: unquoted variables are split at blanks, and vanish when empty."""
        fields: list[str] = []
        current: str | None = None
        for piece in word.pieces:
            value = self._value_of(piece)
            if isinstance(value, tuple) or (piece.kind == "variable" and not piece.is_quoted and value != piece.text):
                parts = list(value) if isinstance(value, tuple) else value.split()
                if parts:
                    fields += [(current or "") + parts[0], *parts[1:]]
                    current = fields.pop()
            else:
                current = (current or "") + value
        return fields if current is None else [*fields, current]

    def _value_of(self, piece: Piece) -> Value:
        if piece.kind != "variable":
            return piece.text
        value = expand_reference(piece.text, self.variables) if self.budget > 0 else None
        if value is None:
            return piece.text
        self.budget -= sum(map(len, value)) if isinstance(value, tuple) else len(value)
        return value


def _put(variables: dict[str, Value], name: str, value: Value | None) -> None:
    if value is None:
        variables.pop(name, None)
    else:
        variables[name] = value


def _only_appends(before: Value | None, now: Value | None) -> bool:
    if isinstance(before, tuple) and isinstance(now, tuple):
        return now[: len(before)] == before
    return isinstance(before, str) and isinstance(now, str) and now.startswith(before) and " " in now[len(before) :]


def _is_stray_option(statement: Statement) -> bool:
    return bool(statement.words) and (statement.words[0].plain or "").startswith("-")


def _statement_problems(statement: Statement) -> list[TextProblem]:
    problems: list[TextProblem] = []
    if statement.blank_after_backslash is not None:
        problems.append(
            TextProblem(
                "blank_after_backslash",
                f"a blank follows the backslash at the end of line {statement.blank_after_backslash}",
                "only a backslash that is the very last character joins two lines; '\\ ' is an argument of one blank",
                "remove the blanks behind the backslash",
                statement.blank_after_backslash,
            )
        )
    if statement.open_quote is not None:
        problems.append(
            TextProblem(
                "quote_not_closed",
                f"a quote on line {statement.open_quote} is never closed",
                "the shell waits for the closing ' or \" and runs nothing; one of the same kind inside ends the quoted part early",
                "close it; write JSON in single quotes, and '\\'' for a single quote inside",
                statement.open_quote,
            )
        )
    return problems


def _gap_problem(statement: Statement, first_word: str) -> TextProblem:
    line = statement.line
    if statement.gap == "comment":
        return TextProblem(
            "comment_in_continuation",
            f"a comment before line {line} ends the command, and '{first_word}' is not part of it",
            "'#' runs to the end of its line, the backslash included, so the lines behind it are another command",
            "move the comment above the command",
            line,
        )
    return TextProblem(
        "continuation_missing",
        f"'{first_word}' on line {line} begins a command of its own",
        "the line before it does not end in '\\', so the server starts without this and what follows",
        "end every line of the command but the last with a backslash, and leave no empty line between",
        line,
    )
