"""Both variants of a mix of prompts, class by class."""

from collections.abc import Sequence

from longreach.plan.values import ClassFigures, Variant
from longreach.report.spans import rate_range, time_range
from longreach.report.style import Paint, table
from longreach.units import format_tokens

_TITLES = {"one": "One instance for all prompts", "two": "Two instances"}
_VERDICTS = {"fits": "fits", "does_not_fit": "does not fit", "unknown": "unknown"}
_HEADER = ("share", "prompt tokens", "instance", "YaRN", "at once", "first token, cold", "decode tokens/s")


def render_variants(variants: Sequence[Variant], paint: Paint) -> list[str]:
    """The chosen one is marked; every figure is of its class alone on an idle instance."""
    rows = [[_row(figures) for figures in variant.classes] for variant in variants]
    numbers = frozenset({0, 1, 4, 5, 6})
    lines = table([_HEADER, *(row for group in rows for row in group)], numbers)
    rendered, at = [lines[0]], 1
    for variant, group in zip(variants, rows, strict=True):
        rendered += [_title(variant, paint), *lines[at : at + len(group)]]
        at += len(group)
    if len(variants) > 1:
        other = next(variant.name for variant in variants if not variant.chosen)
        rendered.append(f"  the other one: the same command with --variant {other}")
    return [paint("The mix of prompts", "bold"), *rendered]


def _title(variant: Variant, paint: Paint) -> str:
    rate = (
        "" if variant.requests_per_hour is None else f", {variant.requests_per_hour:,.0f} requests of the mix an hour"
    )
    taken = f" - {paint('chosen', 'bold')}" if variant.chosen else ""
    why = f": {variant.why}" if variant.why else ""
    return f"  {_TITLES[variant.name]} ({_VERDICTS[variant.verdict]}{rate}){taken}{why}"


def _row(figures: ClassFigures) -> tuple[str, ...]:
    return (
        f"{figures.share:.0%}",
        format_tokens(figures.prompt_tokens),
        figures.instance,
        "none" if figures.yarn_factor is None else f"{figures.yarn_factor:g}",
        "" if figures.concurrency is None else f"{figures.concurrency:,.1f}",
        time_range(figures.ttft_cold_s),
        rate_range(figures.decode_tokens_per_s),
    )
