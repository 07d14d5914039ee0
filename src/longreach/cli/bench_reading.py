"""What the options of `bench` mean together: the source of the prompts, the load, the settings."""

from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from longreach.cli.bench_outputs import check_outputs
from longreach.cli.params import json_object
from longreach.errors import UsageError

_SHAPE = ("input_tokens", "output_tokens", "num_requests")
_TAKES: Mapping[str, tuple[str, ...]] = {
    "workload": (),
    "trace": ("output_tokens", "num_requests", "sessions", "time_scale"),
    "text": _SHAPE,
    "turns": (*_SHAPE, "turn_tokens"),
    "generated": (*_SHAPE, "input_spread", "shared_prefix_tokens", "num_prefixes", "rounds"),
}
"""Each source by the option that chooses it, and the options that shape it."""

_SOURCES = tuple(_TAKES)[:-1]
_NEED_A_LENGTH = ("turns", "generated")
_DEFAULT_OUTPUT_TOKENS = 128
_DEFAULT_NUM_REQUESTS = 10


def _option(name: str) -> str:
    return f"--{name.replace('_', '-')}"


def choose_source_name(values: Mapping[str, Any]) -> str:
    """Which source is asked for; UsageError for two of them, and for an option that has no meaning for the one."""
    asked = [name for name in _SOURCES if values[name] is not None]
    if len(asked) > 1:
        first, second = map(_option, asked[:2])
        raise UsageError(
            f"{first} and {second} are both given",
            "each of them says where the prompts come from",
            f"leave {second} out",
        )
    source = asked[0] if asked else "generated"
    for name in dict.fromkeys(name for names in _TAKES.values() for name in names):
        if values[name] is not None and name not in _TAKES[source]:
            kind = "generated prompts" if source == "generated" else _option(source)
            fitting = next((_option(other) for other in _SOURCES if name in _TAKES[other]), None)
            fix = f"leave {_option(name)} out" + (
                f", or use it with {fitting}" if source == "generated" and fitting else ""
            )
            raise UsageError(f"{_option(name)} does not go with {kind}", "it has no meaning there", fix)
    return source


def read_wish(values: Mapping[str, Any], default_length: Callable[[int], Any]) -> Any:
    """The WorkloadWish of these options; None when a workload file is given. `default_length` gives the length of prompts
    whose answers take so many tokens, and why; None when nobody says.
    """
    from longreach.measure.workload.wishes import WorkloadWish

    name = choose_source_name(values)
    if name == "workload":
        return None
    default = None
    if name in _NEED_A_LENGTH and values["input_tokens"] is None:
        default = default_length(values["output_tokens"] or _DEFAULT_OUTPUT_TOKENS)
    source = _read_source(name, values, default.tokens if default else None)
    return WorkloadWish(source, values["seed"], notes=(default.note,) if default else ())


def _read_source(name: str, values: Mapping[str, Any], default_input_tokens: int | None) -> Any:
    from longreach.measure.workload import wishes

    num_requests, output_tokens = values["num_requests"], values["output_tokens"]
    if name == "trace":
        source = wishes.TraceSource(values["trace"], num_requests, max_output_tokens=output_tokens)
        given = {field: values[field] for field in ("sessions", "time_scale") if values[field] is not None}
        return replace(source, **given)
    output_tokens = output_tokens or _DEFAULT_OUTPUT_TOKENS
    if name == "text":
        return wishes.TextSource(values["text"], output_tokens, values["input_tokens"], num_requests)
    input_tokens = values["input_tokens"] or default_input_tokens
    if input_tokens is None:
        raise UsageError(
            "how long the prompts are to be is not known", "only a plan names a mean length", "--input-tokens 32k"
        )
    num_requests = num_requests or _DEFAULT_NUM_REQUESTS
    if name == "turns":
        turn_tokens = values["turn_tokens"] or max(1, input_tokens // 10)
        return wishes.ConversationSource(num_requests, values["turns"], input_tokens, turn_tokens, output_tokens)
    if values["num_prefixes"] is not None and values["shared_prefix_tokens"] is None:
        why, fix = "nothing says how long they are", "--shared-prefix-tokens 16k"
        raise UsageError("--num-prefixes needs prefixes", why, fix)
    given = {field: values[field] for field in _TAKES["generated"][3:] if values[field] is not None}
    return wishes.SyntheticSource(num_requests, input_tokens, output_tokens, **given)


def read_load(values: Mapping[str, Any], workload: Any) -> Any:
    """The Load of these options. UsageError for those that exclude each other."""
    from longreach.measure.bench.values import Load

    rate, arrivals, concurrency = values["rate"], values["arrivals"], values["concurrency"]
    has_times = values["trace"] is not None or _has_times(workload)
    if arrivals is None:
        arrivals = "poisson" if rate else "trace" if has_times and concurrency is None else "closed"
    if rate is not None and arrivals in ("closed", "trace"):
        raise UsageError(
            f"--rate does not go with --arrivals {arrivals}",
            "there the answers, or the trace, say when a request is sent",
            "--arrivals poisson or constant, or leave --rate out",
        )
    if rate is None and arrivals in ("poisson", "constant"):
        raise UsageError(f"--arrivals {arrivals} needs a rate", "it sends so many a second", "--rate 0.5")
    if arrivals == "trace" and not has_times:
        fix = "--trace FILE, or --rate 0.5"
        raise UsageError("--arrivals trace needs a trace", "nothing else has arrival times", fix)
    if arrivals == "closed":
        concurrency = concurrency or 1
    return Load(arrivals, concurrency, rate, values["time_scale"] or 1.0)


def _has_times(workload: Any) -> bool:
    return workload is not None and all(request.arrival_s is not None for request in workload.requests)


def choose_states(values: Mapping[str, Any], workload: Any) -> tuple[Any, ...]:
    """As asked; else cold, and what comes as it is where prompts have parts in common."""
    shares = any(values[name] is not None for name in ("trace", "turns", "shared_prefix_tokens", "rounds"))
    if workload is not None:
        shares = any(request.reusable_tokens or request.session is not None for request in workload.requests)
    states: tuple[Any, ...] = values["states"] or (("as_it_comes",) if shares else ("cold",))
    if values["flood_tokens"] is not None and "evicted" not in states:
        why, fix = "nothing is to be evicted", "--states cold,evicted"
        raise UsageError("--flood-tokens does not go without evicted prompts", why, fix)
    return states


def read_settings(values: Mapping[str, Any], workload: Any) -> Any:
    """The BenchSettings of these options; `workload` is that of the file, if one is given. UsageError for all that can be
    refused before anything is asked or written.
    """
    from longreach.measure.bench.journal import refuse_existing
    from longreach.measure.bench.settings import BenchSettings, plan_phases
    from longreach.measure.client import Timeouts
    from longreach.wire.bodies import check_extra_fields

    if values["resume"] and values["output"] is None:
        raise UsageError("--resume needs the results file", "it says what was sent already", "-o FILE.jsonl --resume")
    if values["output"] is not None and not values["resume"]:
        refuse_existing(values["output"])
    journal = values["output"] or _default_journal()
    check_outputs(values, journal)
    states = choose_states(values, workload)
    plan_phases(states, is_hybrid=None)  # refuses states that do not follow from each other
    extra = json_object(values["sampling"], "--sampling", '{"temperature": 0.6}') if values["sampling"] else {}
    check_extra_fields(extra)
    _check_salt(values["cache_salt"], extra)
    given = {"first_token_s": values["first_token_timeout"], "stall_s": values["stall_timeout"]}
    return BenchSettings(
        load=read_load(values, workload),
        states=states,
        api=values["api"],
        extra_body=extra,
        exact_output=not values["no_ignore_eos"],
        cache_salt=values["cache_salt"],
        flood_tokens=values["flood_tokens"],
        timeouts=Timeouts(**{name: value for name, value in given.items() if value is not None}),
        journal=journal,
        resume=values["resume"],
        answers=values["save_answers"],
        num_warm_up=values["warmup"] or 0,
        label=values["label"],
    )


def _check_salt(salt: str | None, extra: Mapping[str, object]) -> None:
    if "cache_salt" in extra:
        why = "it decides what is cold, and every flood has one of its own"
        raise UsageError("sampling field 'cache_salt' cannot be passed through", why, "--cache-salt TEXT")
    if salt is not None and not salt.strip():
        raise UsageError("--cache-salt is empty", "prompts would meet what every other run left", "--cache-salt TEXT")


def _default_journal() -> Path:
    from datetime import datetime

    from longreach.launch.state import default_state_folder

    return default_state_folder().path / "bench" / f"{datetime.now().astimezone():%Y%m%d-%H%M%S-%f}.jsonl"
