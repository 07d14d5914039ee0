"""The options of `bench`, each declared once."""

from collections.abc import Callable
from typing import Any, TypeVar

import click

from longreach.cli.params import FILE, SHARE, TOKENS, FiniteRange, Share, json_option

Decorated = TypeVar("Decorated", bound=Callable[..., Any])


_STATES = {"cold": "cold", "warm": "warm", "evicted": "evicted", "as-is": "as_it_comes"}


class _States(click.ParamType[tuple[str, ...]]):
    """Cache states, separated by commas."""

    name = "states"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> tuple[str, ...]:
        names = str(value).split(",")
        unknown = [name for name in names if name not in _STATES]
        if unknown:
            self.fail(f"'{unknown[0]}' is none of {', '.join(_STATES)}.", param, ctx)
        return tuple(_STATES[name] for name in names)


_COUNT = click.IntRange(min=1)
_SECONDS = FiniteRange(min=1)
_ABOVE_0 = FiniteRange(min=0, min_open=True)
_SPREAD = Share(least_open=False, most_open=True, number=float)
_ARRIVALS = click.Choice(["closed", "poisson", "constant", "trace"])

_VALUES: tuple[tuple[str, click.ParamType[Any], str, str], ...] = (
    ("--instance", click.STRING, "NAME", "Which instance of the plan. Default: its longest."),
    ("--model", click.STRING, "NAME", "Name of the served model. Default: the plan's, or the only one."),
    ("--tokenizer", click.STRING, "PATH|ID", "Folder, tokenizer.json or hub id. Default: the plan's model."),
    ("--api-key-env", click.STRING, "NAME", "Environment variable that holds the API key."),
    ("--sampling", click.STRING, "JSON", "Fields of the request body: '{\"temperature\": 0.6}'."),
    ("--input-tokens", TOKENS, "TOKENS", "Prompt length at the server. Default: the plan's mean, if an answer fits."),
    ("--output-tokens", TOKENS, "TOKENS", "Tokens to generate. Default: 128; of a trace its own, cut to this."),
    ("--num-requests", _COUNT, "N", "Prompts, or conversations. Default: 10; of a text or a trace all."),
    ("--input-spread", _SPREAD, "SHARE", "Vary --input-tokens evenly by up to this share (20%)."),
    ("--shared-prefix-tokens", TOKENS, "TOKENS", "Of every prompt so many are the same."),
    ("--num-prefixes", _COUNT, "N", "Shared prefixes, dealt out over the prompts. Default: 1."),
    ("--rounds", _COUNT, "N", "Every prompt comes so often, the same but for its last line."),
    ("--text", FILE, "FILE|FOLDER", "Cut the prompts from this text."),
    ("--trace", FILE, "FILE", "Replay a request trace (Mooncake format)."),
    ("--sessions", SHARE, "SHARE", "Of a trace: this share of its sessions, each whole (1/4)."),
    ("--time-scale", _ABOVE_0, "FACTOR", "Of a trace: 2 stretches its clock to twice the length."),
    ("--turns", _COUNT, "N", "Conversations that grow, of so many turns each."),
    ("--turn-tokens", TOKENS, "TOKENS", "What each turn adds. Default: a tenth of --input-tokens."),
    ("--workload", FILE, "FILE", "Send what --save-workload wrote, to the letter."),
    ("--save-workload", FILE, "FILE", "Write every prompt to FILE, for another run."),
    ("--concurrency", _COUNT, "N", "Keep N requests under way. Default: 1. In an open loop: at most N."),
    ("--rate", _ABOVE_0, "PER_S", "Send so many a second, whatever the server does."),
    ("--arrivals", _ARRIVALS, "", "Default: closed; with --rate poisson; with --trace its own times."),
    ("--states", _States(), "LIST", "cold[,warm][,evicted], or as-is. Default: cold; as-is where prompts share or grow."),
    ("--warmup", _COUNT, "N", "First send N such requests that no figure contains. Default: none."),
    ("--flood-tokens", TOKENS, "TOKENS", "Other prompts that evict. Default: what the GPU's KV cache holds."),
    ("--cache-salt", click.STRING, "TEXT", "A run with the salt of another meets what that left. Default: a fresh one."),
    ("--slo", click.STRING, "LIMITS", "Count the requests within these limits: ttft=60s,itl=80ms,e2e=5m."),
    ("--first-token-timeout", _SECONDS, "SECONDS", "Longest wait for the first token. Default: 3600."),
    ("--stall-timeout", _SECONDS, "SECONDS", "Longest gap after the first token. Default: 120."),
    ("--html", FILE, "FILE", "Write the report as one web page."),
    ("--save-answers", FILE, "FILE.jsonl", "Write the text of every answer."),
)  # fmt: skip

_OTHERS = (
    click.option("--api", type=click.Choice(["chat", "completions"]), default="chat", show_default=True),
    click.option("--seed", default="longreach", show_default=True, help="All that is drawn depends on it alone."),
    click.option("--no-ignore-eos", is_flag=True, help="Let answers end by themselves on vLLM too."),
    click.option(
        "-o", "--output", type=FILE, metavar="FILE.jsonl", help="Results as they come. Default: in the state folder."
    ),
    click.option("--resume", is_flag=True, help="Send only what the results file lacks."),
    click.option("--label", default="", metavar="TEXT", help="A name for this run, shown in reports."),
    click.option(
        "--allow-failures",
        type=click.IntRange(min=0),
        default=0,
        show_default=True,
        metavar="N",
        help="Exit code 0 with up to N failed requests.",
    ),
    click.option("--dry-run", is_flag=True, help="Print what would be sent, and send nothing."),
    json_option,
)


def bench_options(function: Decorated) -> Decorated:
    """All of them, in the order of the help."""
    valued = (click.option(flag, type=kind, metavar=name or None, help=text) for flag, kind, name, text in _VALUES)
    for option in reversed((*valued, *_OTHERS)):
        function = option(function)
    return function
