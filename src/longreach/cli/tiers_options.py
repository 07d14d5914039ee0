"""The options of `tiers`, each declared once, and what they mean together."""

from collections.abc import Callable, Mapping
from typing import Any, TypeVar

import click

from longreach.cli.params import BYTES, FILE, SHARE, TOKENS, FiniteRange, Share, engine_option, json_option
from longreach.errors import UsageError

Decorated = TypeVar("Decorated", bound=Callable[..., Any])

_COUNT = click.IntRange(min=1)
_MARGIN = Share(0, 0.9, least_open=False, number=float)
_ABOVE_0 = FiniteRange(min=0, min_open=True)

_VALUES: tuple[tuple[str, click.ParamType[Any], str, str], ...] = (
    ("--instance", click.STRING, "NAME", "Which instance of the plan. Default: its longest."),
    ("--input-tokens", TOKENS, "TOKENS", "Prompt length at the server. Default: the plan's mean."),
    ("--prompts", _COUNT, "N", "Different prompts. Default: enough to ask each tier."),
    ("--rounds", _COUNT, "N", "How often each prompt comes. Default: 3; with a disk tier 4."),
    ("--concurrency", _COUNT, "N", "Keep N requests under way. Default: 1; of a trace its own times."),
    ("--trace", FILE, "FILE", "Replay a request trace (Mooncake format)."),
    ("--sessions", SHARE, "SHARE", "Of a trace: this share of its sessions, each whole (1/4)."),
    ("--time-scale", _ABOVE_0, "FACTOR", "Of a trace: 2 stretches its clock to twice the length."),
    ("--workload", FILE, "FILE", "Send what `bench --save-workload` wrote."),
    ("--write-plan", FILE, "FILE", "Write the plan with the tiers that paid."),
    ("--html", FILE, "FILE", "Write the comparison as one web page."),
    ("--ssd-tbw", BYTES, "SIZE", "What the drive is rated to bear (1200TB): says how long it lasts."),
)  # fmt: skip

_DEFAULTS: tuple[tuple[str, click.ParamType[Any], Any, str, str], ...] = (
    ("--repeats", _COUNT, 1, "N", "Starts of each variant, in turns."),
    ("--margin", _MARGIN, "5%", "SHARE", "Of the time to first token, what a tier must surely save."),
    ("--output-tokens", TOKENS, 16, "TOKENS", "Tokens of each answer; of a trace its own, cut to this."),
    ("--seed", click.STRING, "longreach", "TEXT", "All that is drawn depends on it alone."),
    ("--stall", FiniteRange(min=1), 300, "SECONDS", "Give a start up when its log has not moved for so long."),
)  # fmt: skip

_SWITCHES = (
    ("--arc", "Try the best variant under ARC, too; LRU stays unless ARC wins."),
    ("--no-reuse", "Send every prompt once: what do tiers cost where nothing comes back?"),
    ("--shuffle", "Another order each time; else always the same, the worst for LRU."),
    ("--resume", "Take over the runs that have ended in the results folder."),
    ("--keep-disk", "Leave what the disk tier wrote."),
    ("--dry-run", "Print what would be started and sent, and start nothing."),
)


def tiers_options(function: Decorated) -> Decorated:
    """All of them, in the order of the help."""
    options = (
        *(click.option(flag, type=kind, metavar=name, help=text) for flag, kind, name, text in _VALUES),
        *(
            click.option(flag, type=kind, default=default, show_default=True, metavar=name, help=text)
            for flag, kind, default, name, text in _DEFAULTS
        ),
        *(click.option(flag, is_flag=True, help=text) for flag, text in _SWITCHES),
        click.option(
            "-o", "--output", type=FILE, metavar="FOLDER", help="Results, one file a run. Default: in the state folder."
        ),
        json_option,
    )
    for option in reversed(options):
        function = option(function)
    return engine_option(function)


_GENERATED = ("input_tokens", "prompts", "rounds", "no_reuse", "shuffle")
_NOT_FOR = {
    "workload": (*_GENERATED, "sessions", "time_scale"),
    "trace": _GENERATED,
    "generated": ("sessions", "time_scale"),
}


def check_source(values: Mapping[str, Any]) -> str:
    """`workload`, `trace` or `generated`; UsageError for two of them, and for an option without a meaning for the one."""
    if values["trace"] is not None and values["workload"] is not None:
        raise UsageError("--trace and --workload are both given", "each of them says what is sent", "leave one out")
    source = next((name for name in ("workload", "trace") if values[name] is not None), "generated")
    wrong = next((name for name in _NOT_FOR[source] if values[name]), None)
    if wrong is not None:
        option, kind = f"--{wrong.replace('_', '-')}", "generated prompts" if source == "generated" else f"--{source}"
        raise UsageError(f"{option} does not go with {kind}", "it has no meaning there", f"leave {option} out")
    if values["no_reuse"] and values["rounds"]:
        raise UsageError("--no-reuse and --rounds are both given", "--no-reuse is one round", "leave one of them out")
    if values["resume"] and values["output"] is None:
        raise UsageError("--resume needs the results folder", "it says which runs have ended", "-o FOLDER --resume")
    return source


def read_sizing_wish(values: Mapping[str, Any]) -> Any:
    """What a generated workload is sized for."""
    from longreach.measure.tiers.sizing import SizingWish

    given = {"sends": 1 if values["no_reuse"] else values["rounds"]}
    return SizingWish(
        prompt_tokens=values["input_tokens"],
        num_prompts=values["prompts"],
        is_shuffled=values["shuffle"],
        output_tokens=values["output_tokens"],
        **{name: value for name, value in given.items() if value is not None},
    )
