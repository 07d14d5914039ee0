"""Mistakes of the text that a command stands in, before vLLM sees a word of it: LR920 to LR929. Pure."""

from collections.abc import Iterator

from longreach.engine.launchfiles.found import ProblemKind
from longreach.rules.edit import Edit
from longreach.rules.finding import Outcome, Severity
from longreach.rules.rule import Diagnosis, rule
from longreach.rules.written import CommandRule, WrittenCommand


def _mistake(code: str, severity: Severity, kind: ProblemKind, title: str, outcome: Outcome | None) -> CommandRule:
    """The rule that tells one kind of mistake; the command was read as it was meant, so no word of it is left to edit."""

    @rule(code, severity, kind, title, outcome=outcome)
    def mistaken(written: WrittenCommand) -> Iterator[Diagnosis]:
        for problem in written.found.problems if written.found is not None else ():
            if problem.kind == kind:
                yield Diagnosis(problem.what, problem.why, problem.fix, edit=Edit())

    return mistaken


RULES: tuple[CommandRule, ...] = (
    _mistake(
        "LR920",
        "error",
        "stray_serve_in_image_args",
        "the start command is repeated in a container",
        "refused_by_parser",
    ),
    _mistake("LR921", "warning", "serve_after_unknown_image", "the image may start the server already", None),
    _mistake("LR922", "error", "joined_words", "a whole command stands in one word", "refused_at_start"),
    _mistake(
        "LR923", "error", "folded_yaml_backslash", "YAML joins the lines and keeps the backslashes", "refused_by_parser"
    ),
    _mistake("LR924", "error", "comment_in_continuation", "a comment ends the command early", "no_effect"),
    _mistake("LR925", "error", "continuation_missing", "a line of the command is a command of its own", "no_effect"),
    _mistake("LR926", "error", "blank_after_backslash", "a blank follows a backslash", "refused_by_parser"),
    _mistake("LR927", "error", "quotes_inside_quotes", "inner quotes end the outer ones", "refused_by_parser"),
    _mistake("LR928", "error", "quote_not_closed", "a quote is never closed", "refused_at_start"),
    _mistake("LR929", "error", "typographic_characters", "dashes or quotes of a web page", "refused_by_parser"),
)
