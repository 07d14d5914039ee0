"""Expectations against what physics and measurements allow: LR801 to LR805. Pure."""

from collections.abc import Iterator
from math import ceil

from longreach.forecast.values import SpeedForecast
from longreach.rules.deployment import Deployment
from longreach.rules.rule import Diagnosis, Rule, rule
from longreach.units import format_duration

_CLIENT_TIMEOUT_S = 60  # what many clients and proxies wait for the first byte
_READING_TOKENS_PER_S = 10  # a fast reader's pace


def _work(speed: SpeedForecast) -> str:
    work = speed.work
    least = "at least " if work.linear_flops is None else ""
    return (
        f"{least}{((work.linear_flops or 0) + work.attention_flops) / 1e15:.3g} PFLOP for {speed.prompt_tokens} tokens"
    )


@rule("LR801", "error", "ttft_wish_below_bound", "the wished first token is faster than physics allows")
def ttft_wish_below_bound(deployment: Deployment) -> Iterator[Diagnosis]:
    """The bound takes the best matrix rate ever measured on the card and the link's own rate."""
    wish, speed = deployment.ttft_wish_s, deployment.speed_at_full_length
    if wish is None or speed is None or speed.ttft_cold_s.lower_bound is None or wish >= speed.ttft_cold_s.lower_bound:
        return
    bound = speed.ttft_cold_s.lower_bound
    least = f"{_work(speed)} take at least {format_duration(bound)} on these GPUs"
    yield Diagnosis(
        f"a first token after {format_duration(wish)} is impossible for {speed.prompt_tokens} cold tokens",
        "; ".join(speed.arithmetic[:2]) or least,
        "send shorter prompts, keep the prefix warm, or use more or faster GPUs; no setting changes the bound",
    )


@rule("LR802", "warning", "ttft_wish_unlikely", "the wished first token is faster than measurements support")
def ttft_wish_unlikely(deployment: Deployment) -> Iterator[Diagnosis]:
    """Between the bound and the expected range."""
    wish, speed = deployment.ttft_wish_s, deployment.speed_at_full_length
    if wish is None or speed is None or speed.ttft_cold_s.low is None or wish >= speed.ttft_cold_s.low:
        return
    cold = speed.ttft_cold_s
    if cold.lower_bound is not None and wish < cold.lower_bound:
        return
    high = f" to {format_duration(cold.high)}" if cold.high is not None else ""
    yield Diagnosis(
        f"a first token after {format_duration(wish)} is not to be expected for {speed.prompt_tokens} cold tokens",
        f"{_work(speed)}: {format_duration(cold.low or 0)}{high} are expected from measurements of such boxes",
        "measure it with longreach verify before you promise it; a warm prefix comes back far sooner",
    )


@rule("LR803", "advice", "client_times_out", "clients give up before the first token")
def client_times_out(deployment: Deployment) -> Iterator[Diagnosis]:
    """Nothing is sent while a prompt is read: idle time-outs fire."""
    speed = deployment.speed_at_full_length
    if speed is None or speed.ttft_cold_s.low is None or speed.ttft_cold_s.low <= _CLIENT_TIMEOUT_S:
        return
    cold = speed.ttft_cold_s
    longest = cold.high or cold.low or 0
    setting = ceil(1.5 * longest / 60) * 60
    yield Diagnosis(
        f"the first token of {speed.prompt_tokens} cold tokens takes {format_duration(cold.low or 0)} to "
        f"{format_duration(longest)}: a client time-out of {_CLIENT_TIMEOUT_S} s fires",
        f"{_work(speed)} in {speed.num_prefill_chunks} chunks, and no byte is sent before the last one",
        f"raise the read time-out of clients and proxies to {setting} s, and use streaming",
    )


@rule("LR804", "advice", "decode_slower_than_reading", "answers come slower than people read")
def decode_slower_than_reading(deployment: Deployment) -> Iterator[Diagnosis]:
    """Every answer token reads all weights and the whole KV of its request once."""
    speed = deployment.speed_at_full_length
    if speed is None:
        return
    rate = speed.decode_tokens_per_s
    most = rate.high if rate.high is not None else rate.upper_bound
    if most is None or most >= _READING_TOKENS_PER_S:
        return
    yield Diagnosis(
        f"at {speed.prompt_tokens} tokens an answer comes at {most:.1f} tokens/s at most",
        f"each token reads the weights and {speed.prompt_tokens} tokens of KV from GPU memory once",
        "use MTP where the model has it, FP8 KV, weights of fewer bytes, or more GPUs per instance",
    )


@rule("LR805", "advice", "attention_outgrows_weights", "most of prefill is attention")
def attention_outgrows_weights(deployment: Deployment) -> Iterator[Diagnosis]:
    """Beyond this length the time grows with the square of the prompt."""
    speed = deployment.speed_at_full_length
    if speed is None or speed.work.linear_flops is None or deployment.machine.gpu is None:
        return
    attention, linear = speed.work.attention_flops, speed.work.linear_flops
    if attention <= linear:
        return
    share = attention / (attention + linear)
    half = (attention / 4 + linear / 2) / (attention + linear)
    yield Diagnosis(
        f"attention is {share:.0%} of the prefill of {speed.prompt_tokens} tokens",
        f"{attention / 1e15:.3g} PFLOP grow with the square of the prompt, {linear / 1e15:.3g} PFLOP with its length",
        f"half the prompt takes {half:.0%} of the computing; shorten prompts before you buy GPUs",
    )


RULES: tuple[Rule, ...] = (
    ttft_wish_below_bound,
    ttft_wish_unlikely,
    client_times_out,
    decode_slower_than_reading,
    attention_outgrows_weights,
)
