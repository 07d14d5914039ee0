"""Mistakes of a shell text that cut a command short. Pure."""

from longreach.engine.launchfiles.found import TextProblem
from longreach.engine.launchfiles.shell_lexer import Statement


def statement_problems(statement: Statement) -> list[TextProblem]:
    """A blank behind a backslash, a quote that is never closed."""
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


def gap_problem(statement: Statement, first_word: str) -> TextProblem:
    """Why a statement that begins with an option does not belong to the command before it."""
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
