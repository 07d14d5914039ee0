"""Mistakes of quoting that the parser sees as several: JSON torn into words, a flag and its value in one word. Pure."""

import re
from collections.abc import Sequence

from longreach.engine.parsing.json_repair import repair_json
from longreach.engine.parsing.parsed import ParseProblem, Use
from longreach.engine.parsing.problems import negative_value

_FLAG_AND_VALUE = re.compile(r"\s*-{1,2}[A-Za-z][\w-]*(\s.*)?", re.DOTALL)

_NEGATIVE = re.compile(r"-\.?\d")


def explain_quoting(
    problems: Sequence[ParseProblem], uses: Sequence[Use], argv: Sequence[str], start: int
) -> tuple[ParseProblem, ...]:
    """The problems with each such mistake told once; none is added to a command that has no other."""
    if not problems:
        return ()
    glued = [
        index
        for index in range(start, len(argv))
        if re.search(r"\s", argv[index]) and _FLAG_AND_VALUE.fullmatch(argv[index])
    ]
    negative = [
        index
        for index in range(start + 1, len(argv))
        if _NEGATIVE.match(argv[index])
        and argv[index - 1].startswith("-")
        and any(_positions(problem) & {index} for problem in problems)
    ]
    told = {*glued, *negative, *(index - 1 for index in negative)}
    kept = [problem for problem in problems if not _positions(problem) & told]
    kept += [negative_value(argv[index - 1], argv[index], (index - 1, index)) for index in negative]
    kept += [_one_word(argv[index], index) for index in glued]
    for stray in [problem for problem in kept if problem.kind == "stray_word"]:
        torn = next((use for use in uses if stray.positions and stray.positions[0] - 1 in use.positions), None)
        joined = None if torn is None else _join(torn, stray, argv)
        if joined is not None:
            kept = [joined if problem is stray else problem for problem in kept if problem.use is not torn]
    return tuple(kept)


def _positions(problem: ParseProblem) -> set[int]:
    return {*problem.positions, *(() if problem.use is None else (problem.use.position,))}


def _one_word(word: str, position: int) -> ParseProblem:
    name, *value = word.strip().split(maxsplit=1)
    why = "a word with a blank in it is no flag for argparse; flag and value are two words, or one with '='"
    what, fix = f"{word!r} is one word", f"give {name} and its value as two words"
    return ParseProblem("stray_word", what, why, fix, positions=(position,), suggestion=(name, *value))


def _join(use: Use, stray: ParseProblem, argv: Sequence[str]) -> ParseProblem | None:
    """JSON that lost its quotes to the shell and the bare words behind it, where they make one object together."""
    value = use.value or ""
    words = " ".join((value, *(argv[position] for position in stray.positions)))
    mended = repair_json(words) if value.startswith("{") and not use.path else None
    if mended is None:
        return None
    what, why = f"{use.name} is JSON without quotes around it", f"the shell took the quotes and split it: {words!r}"
    return ParseProblem("bad_json", what, why, f"{use.name} '{mended}'", use, stray.positions, (mended,))
