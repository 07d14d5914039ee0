"""Mistakes of quoting that the parser sees as several: JSON torn into words, a flag and its value in one word. Pure."""

import re
from collections.abc import Sequence
from dataclasses import replace

from longreach.engine.parsing.json_repair import repair_json
from longreach.engine.parsing.parsed import ParseProblem

_FLAG_AND_VALUE = re.compile(r"\s*-{1,2}[A-Za-z][\w-]*(\s.*)?", re.DOTALL)


def explain_quoting(problems: Sequence[ParseProblem], argv: Sequence[str], start: int) -> tuple[ParseProblem, ...]:
    """The problems with each such mistake told once; none is added to a command that has no other."""
    if not problems:
        return ()
    glued = [
        index
        for index in range(start, len(argv))
        if re.search(r"\s", argv[index]) and _FLAG_AND_VALUE.fullmatch(argv[index])
    ]
    kept = [problem for problem in problems if not _positions(problem) & set(glued)]
    kept += [_one_word(argv[index], index) for index in glued]
    for problem in [problem for problem in kept if problem.kind == "bad_json"]:
        kept = _join(kept, problem, argv)
    return tuple(kept)


def _positions(problem: ParseProblem) -> set[int]:
    return {*problem.positions, *(() if problem.use is None else (problem.use.position,))}


def _one_word(word: str, position: int) -> ParseProblem:
    name, *value = word.strip().split(maxsplit=1)
    why = "a word with a blank in it is no flag for argparse; flag and value are two words, or one with '='"
    what, fix = f"{word!r} is one word", f"give {name} and its value as two words"
    return ParseProblem("stray_word", what, why, fix, positions=(position,), suggestion=(name, *value))


def _join(problems: list[ParseProblem], torn: ParseProblem, argv: Sequence[str]) -> list[ParseProblem]:
    """JSON that lost its quotes to the shell, with the bare words behind it, where they make one object together."""
    use, value = torn.use, torn.use.value if torn.use is not None else None
    if use is None or value is None or not value.startswith("{"):
        return problems
    after = use.position + len(use.tokens)
    for stray in problems:
        if stray.kind != "stray_word" or not stray.positions or stray.positions[0] != after:
            continue
        mended = repair_json(" ".join((value, *(argv[position] for position in stray.positions))))
        if mended is None:
            return problems
        why = "the shell took the quotes and split it at its blanks"
        fix = f"{use.name} '{mended}'"
        what = f"{use.name} is JSON without quotes around it"
        joined = replace(torn, what=what, why=why, fix=fix, positions=stray.positions, suggestion=(mended,))
        return [joined if problem is torn else problem for problem in problems if problem is not stray]
    return problems
