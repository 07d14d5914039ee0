"""One instance or two for a mix of prompts: the decision, and both sides of it in figures. Pure."""

from dataclasses import replace

from longreach.errors import UsageError
from longreach.plan.build import assemble
from longreach.plan.request_time import middle
from longreach.plan.values import Choice, Plan, VariantName
from longreach.plan.variants import MixRequest, PlannedVariant, plan_one, plan_two
from longreach.units import format_duration, format_tokens

_LEAST_THROUGHPUT = 0.5  # of one instance: more than half of it is not given for what YaRN does to short prompts


def plan_mix(asked: MixRequest, wanted: VariantName | None = None) -> Plan:
    """The plan of the chosen variant, or of the `wanted` one, with both variants in it."""
    _check_length(asked)
    one, two = plan_one(asked), plan_two(asked)
    if isinstance(two, str):
        if wanted == "two":
            raise UsageError("there is no variant 'two' for this mix", two, "leave --variant out")
        return _with_variants(asked, [one], two)
    name, why = _choose(one, two)
    if wanted is not None and wanted != name:
        why = f"asked for; {name} would be chosen: {why}"
    return _with_variants(asked, [one, two] if (wanted or name) == "one" else [two, one], why)


def _check_length(asked: MixRequest) -> None:
    longest = asked.classes[-1].prompt_tokens + (asked.goal.mean_output_tokens or 0)
    given = asked.goal.max_model_len
    if given is not None and longest > given:
        raise UsageError(
            f"--mix has requests of {format_tokens(longest)} tokens",
            f"no request is longer than --max-model-len, which is {format_tokens(given)} tokens",
            f"--max-model-len {longest}, or leave it out",
        )


def _choose(one: PlannedVariant, two: PlannedVariant) -> tuple[VariantName, str]:
    for taken, other in ((one, two), (two, one)):
        if taken.grade < other.grade and not other.fits_surely:
            return taken.variant.name, f"{_words(other)} {other.obstacle}"
    if not one.fits:
        return "one", f"neither fits: {_words(one)} {one.obstacle}; {_words(two)} {two.obstacle}"
    rates = _rates(one, two)
    if rates is not None and rates[1] < _LEAST_THROUGHPUT * rates[0]:
        return (
            "one",
            f"two instances would serve {rates[1]:,.0f} instead of {rates[0]:,.0f} requests of the mix an hour",
        )
    slowest = middle(one.variant.classes[-1].ttft_cold_s)
    wait = "" if slowest is None else f" (up to {format_duration(slowest)} on one instance)"
    work = "" if rates is None else f"; {rates[1]:,.0f} instead of {rates[0]:,.0f} requests of the mix an hour"
    factor = one.variant.classes[0].yarn_factor or 1
    why = f"short prompts run without YaRN factor {factor:g} and wait behind no long one{wait}{work}"
    return "two", why


def _rates(one: PlannedVariant, two: PlannedVariant) -> tuple[float, float] | None:
    rates = one.variant.requests_per_hour, two.variant.requests_per_hour
    return None if rates[0] is None or rates[1] is None else (rates[0], rates[1])


def _words(planned: PlannedVariant) -> str:
    return "one instance" if planned.variant.name == "one" else "two instances"


def _with_variants(asked: MixRequest, ranked: list[PlannedVariant], why: str) -> Plan:
    """The first is taken."""
    taken, *others = ranked
    variants = [
        replace(taken.variant, chosen=True, why=why),
        *(replace(other.variant, why=other.obstacle or _price(other)) for other in others),
    ]
    length = taken.plan.instances[-1].max_model_len
    choices: tuple[Choice, ...] = (
        Choice("--variant", taken.variant.name, why),
        Choice(
            "--max-model-len",
            format_tokens(length),
            f"the longest prompt and {format_tokens(asked.answer_tokens)} for its answer",
        ),
    )
    if asked.goal.max_model_len == length:
        choices = choices[:1]
    ordered = sorted(variants, key=lambda variant: variant.name)
    whole = taken.plan if taken.fits else assemble(asked.model, asked.machine, asked.release, taken.planned)
    return replace(
        whole,
        choices=(*choices, *taken.plan.choices),
        alternatives=tuple(item for item in whole.alternatives if item.serves),  # the mix sets lengths and counts
        variants=tuple(ordered),
    )


def _price(other: PlannedVariant) -> str:
    """What speaks against a variant that fits."""
    if other.variant.name == "one":
        factor = other.variant.classes[0].yarn_factor or 1
        return f"YaRN factor {factor:g} changes short prompts, too (LR203), and they wait behind long ones"
    return "each instance holds all weights on its part of the GPUs"
