"""Run a workload against a server and hand back what was seen: the one entry of `longreach bench`."""

import asyncio
import secrets
from datetime import datetime

import orjson

from longreach._version import __version__
from longreach.errors import ServerError
from longreach.measure.bench.asking import Asking
from longreach.measure.bench.events import BenchEvent, OnBenchEvent
from longreach.measure.bench.fitting import require_fit
from longreach.measure.bench.flood import choose_flood_tokens
from longreach.measure.bench.loops import schedule
from longreach.measure.bench.reach import Reached, not_reached, reach
from longreach.measure.bench.running import Run, RunPlan
from longreach.measure.bench.settings import BenchSettings, BenchTarget, plan_phases
from longreach.measure.bench.store import Store, open_store
from longreach.measure.bench.values import BenchHeader, BenchResult
from longreach.measure.client import Client, open_client
from longreach.measure.endpoint import read_endpoint
from longreach.measure.loop_lag import LoopLagMeter
from longreach.measure.sending import Sender
from longreach.measure.workload.values import Workload
from longreach.wire.bodies import check_extra_fields

_PATIENCE_S = 5.0  # of somebody who has pressed Ctrl-C, with a server that may hang


def _ignore(_event: BenchEvent) -> None:
    """For callers that do not watch."""


async def run_bench(
    target: BenchTarget, settings: BenchSettings, workload: Workload, on_event: OnBenchEvent = _ignore
) -> BenchResult:
    """Send the workload once for each phase. What the server does wrong is in the records; what was asked wrongly is
    raised as UsageError or InputFileError before anything is sent, and a server that answers but does not serve the model
    as ServerError.

    Cancelling (Ctrl-C under `asyncio.run`) closes every connection, so that the server stops too, and returns what is
    known so far with `interrupted` set; the results file is whole and can be continued.
    """
    check_extra_fields(settings.extra_body)
    if settings.load.arrivals != "closed":
        schedule(settings.load, workload.requests, workload.seed)  # raises what it would raise in mid-run
    endpoint = read_endpoint(target.base_url, target.api_key_env)
    async with open_client(endpoint, settings.timeouts) as client, LoopLagMeter() as lag:
        on_event(BenchEvent("reach"))
        reached = await reach(client, target) if workload.nobody is None else not_reached(target, workload.nobody)
        planned, told = target.expected.max_model_len, reached.state.max_model_len
        longest = None if planned is None else told or planned  # a bare server's own word is not the last, see fit_wish
        _check_reached(client.endpoint.root, settings, workload, reached, longest)
        header = _make_header(client, target, settings, workload, reached)
        plan = _plan(target, settings, workload, reached)
        with open_store(settings, header) as store:
            sender = Sender(client, store.log.header.model, settings.api, settings.body_fields)
            run = Run(
                client, _make_asking(sender, settings, workload, reached, store), plan, store, on_event, reached.error
            )
            interrupted = await _run_until_cancelled(run, lag)
            store.end(lag.p99_s, interrupted=interrupted)
            on_event(BenchEvent("finished"))
            return store.log.result()


def _check_reached(
    url: str, settings: BenchSettings, workload: Workload, reached: Reached, longest: int | None
) -> None:
    if reached.error is not None and settings.needs_server:
        why = f"{reached.error}; is it started, and is this its address and port?"
        fix = f"longreach up PLAN, or see who answers: curl -i {url}/v1/models"
        raise ServerError(f"nothing answers at {url}", why, fix, "unreachable")
    if reached.error is None and longest is not None:
        require_fit(workload.requests, longest)


async def _run_until_cancelled(run: Run, lag: LoopLagMeter) -> bool:
    """True when it was cancelled; what the server counted until then is recorded all the same."""
    try:
        await run.run(lag)
    except asyncio.CancelledError:
        task = asyncio.current_task()
        if task is not None:
            task.uncancel()
        await run.close_phase(_PATIENCE_S)
        return True
    return False


def _make_header(
    client: Client, target: BenchTarget, settings: BenchSettings, workload: Workload, reached: Reached
) -> BenchHeader:
    return BenchHeader(
        started_at=datetime.now().astimezone().isoformat(timespec="seconds"),
        base_url=client.endpoint.root,
        model=reached.model,
        server=reached.state,
        workload_digest=workload.digest,
        workload_source=workload.source,
        seed=workload.seed,
        tokenizer=workload.tokenizer,
        template_tokens=workload.template_tokens,
        num_requests=len(workload.requests),
        load=settings.load,
        phases=plan_phases(settings.states, is_hybrid=target.expected.is_hybrid, warms_up=settings.num_warm_up > 0),
        api=settings.api,
        longreach_version=__version__,
        label=settings.label,
        cache_salt=settings.cache_salt or secrets.token_hex(8),
        is_hybrid=target.expected.is_hybrid,
        is_deterministic=target.expected.is_deterministic,
        notes=(*workload.notes, *_note_settings(settings, reached)),
    )


def _note_settings(settings: BenchSettings, reached: Reached) -> list[str]:
    """What of the settings decides on answers and their length."""
    notes = []
    if settings.extra_body:
        notes.append(f"request fields: {orjson.dumps(dict(settings.extra_body)).decode()}")
    if not (settings.exact_output and reached.is_vllm):
        notes.append("answers may end by themselves before the wanted length")
    return notes


def _plan(target: BenchTarget, settings: BenchSettings, workload: Workload, reached: Reached) -> RunPlan:
    expected, state = target.expected, reached.state
    floods = "evicted" in settings.states and reached.error is None
    capacities = (state.kv_capacity_tokens, expected.kv_capacity_tokens)
    return RunPlan(
        requests=workload.requests,
        load=settings.load,
        seed=workload.seed,
        template_tokens=workload.template_tokens,
        block_size=state.block_size or expected.block_size,
        is_hybrid=expected.is_hybrid,
        num_warm_up=settings.num_warm_up,
        flood_tokens=choose_flood_tokens(settings.flood_tokens, *capacities) if floods else 0,
    )


def _make_asking(sender: Sender, settings: BenchSettings, workload: Workload, reached: Reached, store: Store) -> Asking:
    header = store.log.header
    return Asking(
        sender=sender,
        workload=workload,
        salt=store.log.salt or header.cache_salt or "",
        salts=dict(store.log.salts),
        is_vllm=reached.is_vllm,
        exact_output=settings.exact_output,
    )
