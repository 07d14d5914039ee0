"""What the simple commands of a shell script run: variables that the script itself sets are expanded. Pure.

Other variables stay as `$NAME`. What only one branch of an `if` sets is open behind it; what a branch appends is left out.
"""

import re
import shlex
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

from longreach.engine.launchfiles.found import TextProblem
from longreach.engine.launchfiles.parameters import Value, expand_reference
from longreach.engine.launchfiles.shell_lexer import Piece, Redirection, Statement, Word, split_statements
from longreach.engine.launchfiles.shell_mistakes import gap_problem, statement_problems
from longreach.engine.launchfiles.shell_pieces import is_broken, spelled, split
from longreach.engine.launchfiles.spelling import SourceWord, joined, quote_open, spell

_ASSIGNMENT = re.compile(r"([A-Za-z_]\w*)(\[[^\]]*\])?(\+?)=")
_OPENING = frozenset(("if", "while", "until", "for", "case", "select"))
_CLOSING = frozenset(("fi", "done", "esac"))
_NEXT_BRANCH = frozenset(("else", "elif"))
_PREFIXES = frozenset(("then", "do", "!", "{", "}", "function")) | _OPENING | _CLOSING | _NEXT_BRANCH
_DECLARING = frozenset(("export", "declare", "local", "readonly", "typeset"))
_MAX_EXPANDED = 4_000_000  # characters put in for variables; a text that doubles a variable again and again stays open
_MAX_VALUE = 100_000
_MAX_AFTER = 2_000
_MAX_EXPORTED = 200
_MAX_NESTED = 200
_PIPED = "what is piped into it"
_PIPES = frozenset(("|", "|&"))
_NAMES = re.compile(r"[A-Za-z_]\w*")
_HOME = re.compile(r"~[\w.-]*(?=/|\Z)")


@dataclass(slots=True)
class RunLine:
    """One simple command of a script."""

    words: list[str]
    assigned: tuple[tuple[str, str], ...]  # before the command: only for it
    exported: tuple[tuple[str, str], ...]
    line: int
    problems: list[TextProblem] = field(default_factory=list)
    is_whole: bool = True  # no reserved word stands before it
    ends: str = ""
    after: str = ""  # redirections, what it is piped into, `&`; as spelled
    left_out: list[str] = field(default_factory=list)  # of the same, what does not go on one line

    @property
    def env(self) -> tuple[tuple[str, str], ...]:
        """What the script adds to the environment of this command."""
        return tuple((dict(self.exported) | dict(self.assigned)).items())


@dataclass(slots=True)
class _Branches:
    """What changed since a compound command began: the value before, by name. Of a subshell nothing is left."""

    before: dict[str, Value | None] = field(default_factory=dict)
    changed: dict[str, Value | None] = field(default_factory=dict)
    exported: tuple[str, ...] | None = None  # before a subshell


def read_script(text: str, known: Mapping[str, Value] | None = None) -> Iterator[RunLine]:
    """Every simple command in order, with `known` variables set from the start."""
    runs = list(_Reader(text, dict(known or {})).run_lines())
    for index in reversed(range(len(runs))):
        _follow_pipe(runs[index], runs[index + 1] if index + 1 < len(runs) else None)
        if index and runs[index - 1].ends in _PIPES:
            runs[index].left_out.append(_PIPED)
    yield from runs


def _follow_pipe(run: RunLine, following: RunLine | None) -> None:
    """Note what stands behind a command on its line: `2>&1 | tee log &`."""
    if run.ends == "&":
        run.after += " &"
    elif run.ends in _PIPES and following is not None and following.is_whole and len(following.after) < _MAX_AFTER:
        assigned = [f"{name}={spell(value)}" for name, value in following.assigned]
        run.after += f" {run.ends} " + " ".join([*assigned, *map(spell, following.words)]) + following.after
        run.left_out += [part for part in following.left_out if part != _PIPED]
    elif run.ends in _PIPES:
        run.left_out.append("what it is piped into")


class _Reader:
    def __init__(self, text: str, variables: dict[str, Value]) -> None:
        self.text = text
        self.variables = variables
        self.exported: dict[str, None] = {}
        self.branches: list[_Branches] = []
        self.is_chained = False
        self.exports_all = False  # set -a
        self.is_well_quoted = True  # in the statement that is being read
        self.budget = _MAX_EXPANDED

    def run_lines(self) -> Iterator[RunLine]:
        pending: RunLine | None = None
        last: RunLine | None = None
        ends = ""
        for statement in split_statements(self.text):
            self._follow_chain(pending, ends)
            if pending is not None and ends == "\n" and _is_stray_option(statement):
                self._continue(pending, statement)
                ends = statement.ends
                continue
            if pending is not None:
                pending.ends, last = ends, pending
                yield pending
            if last is not None and _is_piped_group(statement):
                last.left_out.append("what stands behind its group")
            pending, ends = self._read(statement), statement.ends
            self._follow_scope(ends)
        if pending is not None:
            pending.ends = ends
            yield pending

    def _follow_scope(self, ends: str) -> None:
        if ends == ";;":
            self._end_branch()
        elif ends == "(" and len(self.branches) < _MAX_NESTED:
            self.branches.append(_Branches(exported=tuple(self.exported)))
        elif ends == ")" and self.branches and (exported := self.branches[-1].exported) is not None:
            for name, value in self.branches.pop().before.items():
                _put(self.variables, name, value)
            self.exported = dict.fromkeys(exported)

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
        pending.problems.append(gap_problem(statement, self.text[statement.words[0].start : statement.words[0].end]))
        pending.words += self._expand_all(statement.words)
        pending.problems += statement_problems(statement)
        self._note_redirections(pending, statement.redirections)

    def _note_redirections(self, line: RunLine, redirections: tuple[Redirection, ...]) -> None:
        for redirection in redirections:
            if redirection.is_document:
                line.left_out.append("the here-document that it reads")
            else:
                target = " ".join(map(spell, self._expand(redirection.target)))
                gap = "" if redirection.operator.endswith("&") and target[:1] in "-0123456789" else " "
                line.after += f" {redirection.operator}{gap}{target}"

    def _read(self, statement: Statement) -> RunLine | None:
        self.is_well_quoted = statement.open_quote is None
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
        if self._runs_builtin(words[taken:]):
            return None
        exported = tuple((name, self._text_of(name)) for name in self.exported)
        line = RunLine(self._expand_all(words[taken:]), tuple(assigned), exported, statement.line)
        line.problems += statement_problems(statement)
        line.is_whole = len(words) == len(statement.words)
        self._note_redirections(line, statement.redirections)
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
        if not self.branches or self.branches[-1].exported is not None:
            return
        branches = self.branches[-1]
        for name, value in branches.before.items():
            now = self.variables.get(name)
            branches.changed[name] = value if _only_appends(value, now) else None
            _put(self.variables, name, value)
        branches.before.clear()

    def _end_branches(self) -> None:
        self._end_branch()
        if self.branches and self.branches[-1].exported is None:
            for name, value in self.branches.pop().changed.items():
                self._set(name, value)

    def _set(self, name: str, value: Value | None) -> None:
        if self.branches:
            self.branches[-1].before.setdefault(name, self.variables.get(name))
        if self.exports_all and value is not None:
            self._export(name)
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
        """What stands behind `NAME=`: no blank in it splits it."""
        head = word.pieces[0]
        pieces = (Piece(head.text[start:], "plain"), *word.pieces[1:])
        return joined([self._joined(piece) for piece in pieces if piece.text or piece.is_quoted])

    def _joined(self, piece: Piece) -> SourceWord:
        value = self._value_of(piece)
        text = " ".join(value) if isinstance(value, tuple) else value
        if isinstance(text, SourceWord):
            return text
        if piece.kind == "variable":
            return SourceWord(text, f'"{piece.text}"' if self._is_from_outside(piece) else quote_open(text))
        home = _HOME.match(text) if piece.kind == "plain" else None
        rest = text[home.end() :] if home is not None else text
        return SourceWord(text, (home[0] if home is not None else "") + (shlex.quote(rest) if rest else ""))

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
                self._set(name, (joined([before[0], value]), *before[1:]) if before else (value,))
            else:
                self._set(name, value if not plus else None if before is None else joined([before, value]))

    def _runs_builtin(self, words: tuple[Word, ...]) -> bool:
        """Take in what changes variables and runs nothing."""
        name = words[0].plain
        if name in _DECLARING:
            self._declare(words)
        elif name == "unset":
            self._unset(words)
        elif name == "set":
            self._set_options(words)
        else:
            return False
        return True

    def _declare(self, words: tuple[Word, ...]) -> None:
        """`export A=1`, `declare -x A=1`, `export -n A`."""
        options = [word.plain for word in words[1:] if word.plain is not None and word.plain.startswith("-")]
        exports = words[0].plain == "export" or any("x" in option for option in options)
        for word in words[1:]:
            match = _ASSIGNMENT.match(word.pieces[0].text)
            if match is not None:
                self._assign(word)
            name = match[1] if match else word.plain or ""
            if not name or name.startswith("-"):
                continue
            if "-n" in options:
                self.exported.pop(name, None)
            elif exports:
                self._export(name)

    def _export(self, name: str) -> None:
        if len(self.exported) < _MAX_EXPORTED:
            self.exported[name] = None

    def _unset(self, words: tuple[Word, ...]) -> None:
        for word in words[1:]:
            if word.plain is not None:
                self._set(word.plain, None)
                self.exported.pop(word.plain, None)

    def _set_options(self, words: tuple[Word, ...]) -> None:
        """`set -a` and `set -o allexport` export every variable that is set behind them."""
        options = [word.plain or "" for word in words[1:]]
        for index, option in enumerate(options):
            if option == "--":
                return
            is_all = option[1:] == "o" and options[index + 1 : index + 2] == ["allexport"]
            if is_all or (option[:1] in ("-", "+") and "a" in option[1:]):
                self.exports_all = option[0] == "-"

    def _text_of(self, name: str) -> str:
        value = self.variables.get(name)
        return f"${name}" if value is None or isinstance(value, tuple) else value

    def _expand_all(self, words: tuple[Word, ...]) -> list[str]:
        return [value for word in words for value in self._expand(word)]

    def _expand(self, word: Word) -> list[str]:
        """The words that one word becomes: unquoted variables are split at blanks, and vanish when empty."""
        fields: list[str] = []
        current: list[str] | None = None
        is_as_written = self.is_well_quoted
        for piece in word.pieces:
            value = self._value_of(piece)
            is_kept = piece.kind == "variable" and (value == piece.text or self._stays_one_word(piece, value))
            is_as_written = is_as_written and (piece.kind != "variable" or is_kept) and not is_broken(piece)
            if isinstance(value, tuple) or (piece.kind == "variable" and not piece.is_quoted and not is_kept):
                parts = list(value) if isinstance(value, tuple) else split(value)
                if parts:
                    fields += [joined([*(current or ()), parts[0]]), *parts[1:]]
                    current = [fields.pop()]
            else:
                current = [*(current or ()), spelled(piece, value, is_kept=is_kept)]
        if current is None:
            return fields
        last = joined(current)
        if is_as_written:
            return [SourceWord(last, self.text[word.start : word.end])]
        return [*fields, last if last.spelling else SourceWord(last, "''")]

    def _is_from_outside(self, piece: Piece) -> bool:
        """Whether a variable is none that the script sets: `${PORT:-80}` is written again, so that it can be given."""
        return piece.kind == "variable" and not any(name in self.variables for name in _NAMES.findall(piece.text))

    def _stays_one_word(self, piece: Piece, value: Value) -> bool:
        return self._is_from_outside(piece) and (
            piece.is_quoted or (isinstance(value, str) and split(value) == [value])
        )

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


def _is_piped_group(statement: Statement) -> bool:
    """`} 2>&1 | tee log`, `done &`."""
    is_end = bool(statement.words) and statement.words[0].plain in ("}", *_CLOSING)
    return is_end and (bool(statement.redirections) or statement.ends in ("&", *_PIPES))


def _is_stray_option(statement: Statement) -> bool:
    return bool(statement.words) and (statement.words[0].plain or "").startswith("-")
