"""Tool and reasoning parsers, and the usage details that prove a cache hit: LR704 to LR709. Pure."""

import re
from collections.abc import Iterator

from longreach.rules.deployment import Deployment
from longreach.rules.remedy import Remedy, set_option
from longreach.rules.rule import Diagnosis, HasOptions, Rule, rule

_CHOSEN_BY_VLLM = "openai_gptoss"  # the config of gpt-oss sets it (0.10.2 to 0.33.0)
_GENERATION = re.compile(r"([a-z]+?)[-_]?(\d+)")


@rule(
    "LR704",
    "warning",
    "parser_without_auto_tool",
    "a tool parser without --enable-auto-tool-choice does nothing",
    outcome="no_effect",
)
def parser_without_auto_tool(deployment: HasOptions) -> Iterator[Diagnosis]:
    """Accepted, and every request with tools is then answered 400."""
    options = deployment.options
    if options.tool_call_parser is None or options.enable_auto_tool_choice:
        return
    yield Diagnosis(
        f"--tool-call-parser {options.tool_call_parser} has no effect without --enable-auto-tool-choice",
        "a client that sends tools gets '\"auto\" tool choice requires --enable-auto-tool-choice and --tool-call-parser'",
        "add --enable-auto-tool-choice",
        set_option("enable_auto_tool_choice", True),
    )


@rule(
    "LR705",
    "error",
    "auto_tool_choice_without_parser",
    "--enable-auto-tool-choice needs a parser",
    outcome="refused_at_start",
)
def auto_tool_choice_without_parser(deployment: HasOptions) -> Iterator[Diagnosis]:
    """The server refuses to start."""
    options = deployment.options
    known = deployment.model.tool_call_parsers if deployment.model is not None else ()
    if not options.enable_auto_tool_choice or options.tool_call_parser is not None:
        return
    yield Diagnosis(
        "--enable-auto-tool-choice is set and --tool-call-parser is not",
        "vLLM stops: 'Error: --enable-auto-tool-choice requires --tool-call-parser'",
        f"add --tool-call-parser {known[0]}"
        if known
        else "name the parser of this model's family, or leave the flag out",
        set_option("tool_call_parser", known[0]) if known else set_option("enable_auto_tool_choice", None),
    )


@rule("LR706", "advice", "tool_parser_unset", "the model's tool parser is not set")
def tool_parser_unset(deployment: Deployment) -> Iterator[Diagnosis]:
    """Coding tools send tools with every request."""
    options, known = deployment.options, deployment.model.tool_call_parsers
    if not known or options.tool_call_parser is not None or options.enable_auto_tool_choice:
        return
    yield Diagnosis(
        f"no tool parser is set; '{deployment.model.name}' uses '{known[0]}'",
        f"without it a request that carries tools is refused with 400 (known for this model: {', '.join(known)})",
        f"add --enable-auto-tool-choice --tool-call-parser {known[0]}",
        Remedy((("enable_auto_tool_choice", True), ("tool_call_parser", known[0]))),
    )


@rule("LR707", "advice", "reasoning_parser_missing", "the model's reasoning parser is not set")
def reasoning_parser_missing(deployment: Deployment) -> Iterator[Diagnosis]:
    """Thinking then arrives as answer text, and goes back as prompt."""
    options, known = deployment.options, deployment.model.reasoning_parsers
    if not known or options.reasoning_parser or known[0] == _CHOSEN_BY_VLLM:
        return
    yield Diagnosis(
        f"no reasoning parser is set; '{deployment.model.name}' uses '{known[0]}'",
        f"its thinking arrives inside the answer text instead of in a field of its own (known: {', '.join(known)})",
        f"add --reasoning-parser {known[0]}",
        set_option("reasoning_parser", known[0]),
    )


@rule("LR708", "warning", "parser_wrong_family", "the parser is not one known for this model")
def parser_wrong_family(deployment: Deployment) -> Iterator[Diagnosis]:
    """A wrong tool parser fails silently: the call stays in the text."""
    options, model = deployment.options, deployment.model
    pairs = (
        ("tool_call_parser", options.tool_call_parser, model.tool_call_parsers),
        ("reasoning_parser", options.reasoning_parser, model.reasoning_parsers),
    )
    for field, given, known in pairs:
        if not given or given in known or not (known or _is_of_another_generation(given, model.model_type)):
            continue
        flag = "--" + field.replace("_", "-")
        yield Diagnosis(
            f"{flag} {given} is not one known for '{model.name}'",
            f"{_known_words(known)}; with another one calls or thinking stay in the text, or the start fails for want of a token",
            f"set {flag} {known[0]}, or look at raw answers before you trust {given}" if known else f"leave {flag} out",
            set_option(field, known[0] if known else None),
        )


def _known_words(known: tuple[str, ...]) -> str:
    return f"known to work: {', '.join(known)}" if known else "no parser of this kind is known for it"


def _is_of_another_generation(parser: str, model_type: str) -> bool:
    """`gemma4` for a gemma3: the same family by name, another number."""
    names = (_GENERATION.match(parser), _GENERATION.match(model_type))
    if names[0] is None or names[1] is None or names[0][1] != names[1][1]:
        return False
    return names[0][2] != names[1][2]


@rule("LR709", "advice", "prompt_tokens_details_off", "cached tokens are not reported")
def prompt_tokens_details_off(deployment: Deployment) -> Iterator[Diagnosis]:
    """The one per-request proof of a prefix hit."""
    if deployment.options.enable_prompt_tokens_details or not deployment.prefix_caching:
        return
    yield Diagnosis(
        "--enable-prompt-tokens-details is not set, so answers do not say what was cached",
        "usage.prompt_tokens_details.cached_tokens is exact per request (0.32: 1920 of a shared prefix of 2000, in whole "
        "blocks) and absent without the flag",
        "add --enable-prompt-tokens-details",
        set_option("enable_prompt_tokens_details", True),
    )


RULES: tuple[Rule, ...] = (
    parser_without_auto_tool,
    auto_tool_choice_without_parser,
    tool_parser_unset,
    reasoning_parser_missing,
    parser_wrong_family,
    prompt_tokens_details_off,
)
