"""Shell text to simple commands: words with their quoting, comments and redirections gone, here-documents skipped. Pure.

A reader of what people paste, not a shell: substitutions stay as written, and an open quote is reported and left out.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal

PieceKind = Literal["plain", "quoted", "variable"]


@dataclass(frozen=True, slots=True)
class Piece:
    """A stretch of a word. A variable's text is as written: `$TP`, `${TP:-2}`."""

    text: str
    kind: PieceKind
    is_quoted: bool = False


@dataclass(frozen=True, slots=True)
class Word:
    """One word before expansion; `array` holds the elements of `NAME=( ... )`."""

    pieces: tuple[Piece, ...]
    start: int  # offsets in the text
    end: int
    array: tuple["Word", ...] | None = None

    @property
    def plain(self) -> str | None:
        """The text of a word without quotes and variables, as reserved words and assignments must be."""
        return self.pieces[0].text if len(self.pieces) == 1 and self.pieces[0].kind == "plain" else None


Gap = Literal["comment", "blank", "nothing"]
"""What stands before a statement on the lines since the one before: a comment, an empty line, nothing."""


@dataclass(frozen=True, slots=True)
class Redirection:
    """`2> server.log`: the operator with its file descriptor, and the target."""

    operator: str
    target: Word

    @property
    def is_document(self) -> bool:
        """Whether it takes in the lines behind it."""
        return self.operator.lstrip("0123456789") in ("<<", "<<-")


@dataclass(frozen=True, slots=True)
class Statement:
    """One simple command. `ends` is the operator behind it, "" at the end of the text."""

    words: tuple[Word, ...]
    line: int
    ends: str
    redirections: tuple[Redirection, ...] = ()
    gap: Gap = "nothing"
    blank_after_backslash: int | None = None  # the line
    open_quote: int | None = None  # the line


_TOKEN = re.compile(
    r"""(?P<joined>\\\n)
      | (?P<blank>\\[ \t]+(?:\n|\Z))
      | (?P<escaped>\\.)
      | (?P<single>'[^']*')
      | (?P<ansi>\$'(?:[^'\\]|\\.)*')
      | (?P<double>\$?")
      | (?P<variable>\$(?:[A-Za-z_]\w*|[0-9@*#?$!-]))
      | (?P<opens>\$\{|\$\(|`|[<>]\()
      | (?P<newline>\n)
      | (?P<space>[ \t\r\f\v]+)
      | (?P<redirect>&>>?|<<<|<<-?|<>|<&|>>|>&|>\||<(?!\()|>(?!\())
      | (?P<operator>&&|\|\||;;&?|;&|\|&|[;&|()])
      | (?P<plain>[^\s\\'"$`#;&|<>()]+|[#<>])
      | (?P<other>.)""",
    re.VERBOSE | re.DOTALL,
)
_IN_DOUBLE = re.compile(
    r"""(?P<end>")|(?P<joined>\\\n)|(?P<escaped>\\[\\"$`])|(?P<variable>\$(?:[A-Za-z_]\w*|[0-9@*#?$!-]))
      | (?P<opens>\$\{|\$\(|`)|(?P<text>[^"\\$`]+|.)""",
    re.VERBOSE | re.DOTALL,
)
_CLOSERS = {"${": "}", "$(": ")", "<(": ")", ">(": ")", "`": "`", '"': '"'}
_NESTED = re.compile(r"""\\.|'[^']*'|\$\{|\$\(|[(){}`"]""", re.DOTALL)
_MOST_EXPRESSION = 500
_MAX_DOCUMENTS = 50  # here-documents that one line may begin
_ARRAY_HEAD = re.compile(r"[A-Za-z_]\w*\+?=")
_COMMENT = re.compile(r"#[^\n]*")
_ANSI_ESCAPES = {"n": "\n", "t": "\t", "r": "\r", "\\": "\\", "'": "'", '"': '"'}


def split_statements(text: str) -> Iterator[Statement]:
    """The simple commands of a script in their order, those of compound commands and subshells included."""
    return _Lexer(text).statements()


class _Lexer:
    """Reads a text once, from left to right."""

    def __init__(self, text: str) -> None:
        self.text = text
        self.position = 0
        self.line = 1
        self.counted = 0  # offset up to which lines are counted
        self.words: list[Word] = []
        self.pieces: list[Piece] = []
        self.word_start = 0
        self.array: list[Word] | None = None
        self.array_head: Word | None = None
        self.redirection: str | None = None  # whose target is the next word
        self.redirections: list[Redirection] = []
        self.delimiters: list[str] = []  # of here-documents that begin on this line
        self.unclosed: set[str] = set()  # what is known not to be closed in the rest of the text
        self.gap: Gap = "nothing"  # before the statement that is being read
        self.next_gap: Gap = "nothing"  # in its midst: the shell ends it there
        self.statement_line = 1
        self.line_is_empty = True
        self.blank_after_backslash: int | None = None
        self.open_quote: int | None = None

    def statements(self) -> Iterator[Statement]:
        size = len(self.text)
        while self.position < size:
            match = _TOKEN.match(self.text, self.position)
            assert match is not None, "the last alternative takes any character"
            ends = self._take(match)
            if ends is not None and (statement := self._statement(ends)) is not None:
                yield statement
        if (statement := self._statement("")) is not None:
            yield statement

    def _take(self, match: re.Match[str]) -> str | None:
        """Take one token in; the operator, where it ends a statement."""
        kind, written, start = match.lastgroup, match[0], self.position
        if written == "#" and not self.pieces:
            comment = _COMMENT.match(self.text, start)
            assert comment is not None
            self.position = comment.end()
            self._note_gap("comment")
            self.line_is_empty = False
            return None
        self.position = match.end()
        if kind == "newline":
            return self._end_line()
        if kind != "space":
            self.line_is_empty = kind in ("joined", "blank")
        if kind in ("space", "joined", "blank"):
            self._between(kind, start)
        elif kind == "redirect":
            self._redirect(written)
        elif kind == "operator":
            return self._operator(written)
        else:
            self._piece(kind or "other", written, start)
        return None

    def _between(self, kind: str, start: int) -> None:
        if kind != "joined":  # a continuation may stand inside a word
            self._end_word(start)
        if kind == "blank" and (self.words or self.array is not None):
            self.blank_after_backslash = self._line_at(start)

    def _end_line(self) -> str | None:
        self._end_word(self.position - 1)
        if self.delimiters and self.array is None:
            self._skip_documents()
        self._note_gap("blank")
        self.line_is_empty = True
        return "\n" if self.array is None else None

    def _note_gap(self, gap: Gap) -> None:
        """A line of its own that is empty or a comment parts what stands before it from what follows."""
        if not self.line_is_empty:
            return
        if self.words:
            self.next_gap = gap
        elif self.gap != "comment":
            self.gap = gap

    def _redirect(self, token: str) -> None:
        descriptor = ""
        if len(self.pieces) == 1 and self.pieces[0].kind == "plain" and self.pieces[0].text.isdigit():
            descriptor = self.pieces[0].text
            self.pieces.clear()
        self._end_word(self.position - len(token))
        self.redirection = descriptor + token

    def _operator(self, operator: str) -> str | None:
        if operator == "(" and self.array is None and self._begins_array():
            return None
        self._end_word(self.position - len(operator))
        if self.array is not None:
            if operator == ")":
                self._end_array()
            return None
        return operator

    def _begins_array(self) -> bool:
        if len(self.pieces) != 1 or self.pieces[0].kind != "plain" or not _ARRAY_HEAD.fullmatch(self.pieces[0].text):
            return False
        self.array_head = Word(tuple(self.pieces), self.word_start, self.position)
        self.pieces.clear()
        self.array = []
        return True

    def _end_array(self) -> None:
        head, elements = self.array_head, self.array
        assert head is not None
        assert elements is not None
        self.array = self.array_head = None
        self.words.append(Word(head.pieces, head.start, self.position, tuple(elements)))

    def _piece(self, kind: str, token: str, start: int) -> None:
        if not self.pieces:
            self.word_start = start
        if kind == "single":
            self.pieces.append(Piece(token[1:-1], "quoted", is_quoted=True))
        elif kind == "escaped":
            self.pieces.append(Piece(token[1], "quoted", is_quoted=True))
        elif kind == "ansi":
            read = re.sub(r"\\(.)", lambda found: _ANSI_ESCAPES.get(found[1], found[0]), token[2:-1], flags=re.DOTALL)
            self.pieces.append(Piece(read, "quoted", is_quoted=True))
        elif kind == "double":
            self._double_quoted(start, start + len(token))
        elif kind == "variable":
            self.pieces.append(Piece(token, "variable"))
        elif kind == "opens":
            self._substitution(token, start, is_quoted=False)
        elif token in ("'", "\\"):
            self._note_open_quote(start)
        else:
            self.pieces.append(Piece(token, "plain"))

    def _double_quoted(self, start: int, position: int) -> None:
        kept = len(self.pieces)
        self.pieces.append(Piece("", "quoted", is_quoted=True))
        while '"' not in self.unclosed and (match := _IN_DOUBLE.match(self.text, position)) is not None:
            position = match.end()
            kind, token = match.lastgroup, match[0]
            if kind == "end":
                self.position = position
                return
            if kind == "opens":
                self._substitution(token, match.start(), is_quoted=True)
                position = self.position
            elif kind == "variable":
                self.pieces.append(Piece(token, "variable", is_quoted=True))
            elif kind != "joined":
                self.pieces.append(Piece(token[1:] if kind == "escaped" else token, "quoted", is_quoted=True))
        del self.pieces[kept:]
        self.unclosed.add('"')
        self.position = start + 1
        self._note_open_quote(start)

    def _substitution(self, opener: str, start: int, *, is_quoted: bool) -> None:
        """`${...}`, `$(...)` and backticks, kept as written; one that is never closed is text."""
        end = None if opener in self.unclosed else self._closing(opener, start + len(opener))
        if self.text.startswith("${{", start):  # an expression of a workflow, put in before a shell sees it
            end = self.text.find("}}", start) + 2 if self.text.find("}}", start, start + _MOST_EXPRESSION) > 0 else end
        self.position = start + len(opener) if end is None else end
        if end is None:
            self.unclosed.add(opener)
        self.pieces.append(Piece(self.text[start : self.position], "plain" if end is None else "variable", is_quoted))

    def _closing(self, opener: str, position: int) -> int | None:
        expected = [_CLOSERS[opener]]
        for match in _NESTED.finditer(self.text, position):
            mark = match[0]
            if mark == expected[-1]:
                expected.pop()
                if not expected:
                    return match.end()
            elif mark in _CLOSERS and not (mark == '"' and expected[-1] == "`"):
                expected.append(_CLOSERS[mark])
            elif mark == "(" and expected[-1] == ")":
                expected.append(")")
        return None

    def _note_open_quote(self, start: int) -> None:
        self.open_quote = self.open_quote or self._line_at(start)

    def _end_word(self, end: int) -> None:
        if not self.pieces:
            return
        word = Word(_merged(self.pieces), self.word_start, end)
        self.pieces.clear()
        if self.redirection is not None:
            redirection = Redirection(self.redirection, word)
            if redirection.is_document and len(self.delimiters) < _MAX_DOCUMENTS:
                self.delimiters.append("".join(piece.text for piece in word.pieces))
            self.redirections.append(redirection)
            self.redirection = None
        elif self.array is not None:
            self.array.append(word)
        else:
            if not self.words:
                self.statement_line = self._line_at(word.start)
            self.words.append(word)

    def _skip_documents(self) -> None:
        for delimiter in self.delimiters:
            mark = f"<<{delimiter}"
            if mark in self.unclosed:
                continue
            last = re.compile(rf"^\t*{re.escape(delimiter)}[ \t]*$\n?", re.MULTILINE)
            end = last.search(self.text, self.position)
            if end is None:
                self.unclosed.add(mark)
            else:
                self.position = end.end()
        self.delimiters.clear()

    def _statement(self, ends: str) -> Statement | None:
        self._end_word(self.position)
        if ends == "" and self.array is not None:
            self._end_array()
        if not self.words:
            self.redirections.clear()
            return Statement((), self.line, ends) if ends in (";;", "(", ")") else None
        statement = Statement(
            tuple(self.words),
            self.statement_line,
            ends,
            tuple(self.redirections),
            self.gap,
            self.blank_after_backslash,
            self.open_quote,
        )
        self.words.clear()
        self.redirections.clear()
        self.gap, self.next_gap = self.next_gap, "nothing"
        self.blank_after_backslash = self.open_quote = None
        return statement

    def _line_at(self, offset: int) -> int:
        if offset > self.counted:
            self.line += self.text.count("\n", self.counted, offset)
            self.counted = offset
        return self.line


def _merged(pieces: list[Piece]) -> tuple[Piece, ...]:
    merged: list[Piece] = []
    for piece in pieces:
        last = merged[-1] if merged else None
        if (
            last is not None
            and piece.kind != "variable"
            and (last.kind, last.is_quoted) == (piece.kind, piece.is_quoted)
        ):
            merged[-1] = Piece(last.text + piece.text, last.kind, last.is_quoted)
        else:
            merged.append(piece)
    return tuple(merged)
