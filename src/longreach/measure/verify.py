"""Prove a running server: ask it who it is, send one long prompt cold and again warm, and judge by its own counts."""

import asyncio
import secrets
import time
from collections.abc import Sequence

from longreach.errors import ServerError, UsageError
from longreach.forecast.values import Span
from longreach.measure.client import Client, open_client
from longreach.measure.endpoint import read_endpoint
from longreach.measure.preparing import Prepared, prepare_file, prepare_generated
from longreach.measure.progress import OnEvent, VerifyEvent, report_phase
from longreach.measure.send_checks import check_sends, is_proven_warm
from longreach.measure.sending import Sender
from longreach.measure.server_checks import check_server
from longreach.measure.server_state import choose_model, fetch_models, fetch_server_state
from longreach.measure.target import VerifySettings, VerifyTarget
from longreach.measure.verify_report import ChecklistItem, PromptReport, SendReport, ServerState, Verdict, VerifyReport
from longreach.units import format_duration
from longreach.wire.bodies import ServedModel, check_extra_fields


def _ignore(_event: VerifyEvent) -> None:
    """For callers that do not watch."""


async def verify(target: VerifyTarget, settings: VerifySettings, on_event: OnEvent = _ignore) -> VerifyReport:
    """Verify one server. What the server does wrong is in the report; what was asked wrongly is raised as UsageError or
    InputFileError before anything long starts.

    Cancelling (Ctrl-C under `asyncio.run`) closes the request, so that the server stops too, and returns what is known
    so far with `interrupted` set.
    """
    check_extra_fields(settings.extra_body)
    endpoint = read_endpoint(target.base_url, target.api_key_env)
    async with open_client(endpoint, settings.timeouts) as client:
        verification = _Verification(client, target, settings, on_event)
        interrupted = False
        try:
            await verification.run()
        except asyncio.CancelledError:
            interrupted = True
            task = asyncio.current_task()
            if task is not None:
                task.uncancel()
        return verification.report(interrupted=interrupted)


_STEPS = (
    ("server_answers", "server answers"),
    ("model_served", "model served under its name"),
    ("requests_complete", "every request answered to its end"),
)


class _Verification:
    """A verification under way: what is known so far can be reported at any moment."""

    def __init__(self, client: Client, target: VerifyTarget, settings: VerifySettings, on_event: OnEvent) -> None:
        self._client = client
        self._target = target
        self._settings = settings
        self._on_event = on_event
        self._model = target.model
        self._state = ServerState()
        self._prompt: PromptReport | None = None
        self._sends: list[SendReport] = []
        self._items: list[ChecklistItem] = []
        self._cut_off: str | None = None

    async def run(self) -> None:
        """Every step in order; a server that fails one ends it."""
        try:
            async with report_phase(self._on_event, "reach"):
                served = await fetch_models(self._client)
                self._judge("server_answers", "server answers", "pass", f"at {self._client.endpoint.root}")
                sender = await self._choose_sender(served)
            async with report_phase(self._on_event, "prompt"):
                prepared = await self._prepare(sender)
        except ServerError as error:
            known = {item.name for item in self._items}
            name, title = next(step for step in _STEPS if step[0] not in known)
            self._judge(name, title, "fail", f"{error.what}: {error.why}", error.fix)
            return
        self._prompt = prepared.report
        await self._send_all(sender, prepared)

    def _judge(self, name: str, title: str, verdict: Verdict, evidence: str, fix: str | None = None) -> None:
        self._items.append(ChecklistItem(name, title, verdict, evidence, fix))

    async def _choose_sender(self, served: Sequence[ServedModel]) -> Sender:
        chosen = choose_model(served, self._target.model)
        self._model = chosen.model_id
        self._state = await fetch_server_state(self._client, chosen)
        version = f"vLLM {self._state.version}" if self._state.version else "a server without a vLLM version"
        self._judge("model_served", "model served under its name", "pass", f"{chosen.model_id} by {version}")
        self._items.extend(check_server(self._target.expected, self._state))
        return Sender(self._client, chosen.model_id, self._settings.api, self._settings.body_fields)

    async def _prepare(self, sender: Sender) -> Prepared:
        settings = self._settings
        salt = settings.salt or secrets.token_hex(8)
        if settings.prompt_file is not None:
            is_vllm = self._state.version is not None
            return prepare_file(sender, settings, settings.prompt_file, salt, is_vllm=is_vllm)
        return await prepare_generated(sender, settings, self._target.tokenizer, self._choose_length(), salt)

    def _choose_length(self) -> int:
        settings = self._settings
        longest = self._target.expected.max_model_len or self._state.max_model_len
        if settings.prompt_tokens is not None:
            return settings.prompt_tokens
        if longest is None:
            raise UsageError(
                "how long a prompt to send is not known",
                "neither a plan nor the server names a longest request",
                "--length TOKENS",
            )
        return longest - settings.output_tokens

    async def _send_all(self, sender: Sender, prepared: Prepared) -> None:
        """Cold once, then warm until the prefix is proven cached or no further repeat is due."""
        cold = await self._send(sender, prepared, "cold")
        if cold.failure is not None:
            return
        expected = self._target.expected
        num_warm = 1 if expected.is_hybrid is False or not expected.prefix_caching else self._settings.max_warm_sends
        for number in range(1, num_warm + 1):
            warm = await self._send(sender, prepared, f"warm {number}")
            if warm.failure is not None or is_proven_warm(warm, self._state.block_size):
                return

    async def _send(self, sender: Sender, prepared: Prepared, label: str) -> SendReport:
        async with report_phase(self._on_event, "send", label, self._estimate_s(label)):
            began = time.monotonic()
            try:
                send = await sender.send(label, prepared.body, prepared.report.needles)
            except asyncio.CancelledError:
                elapsed = format_duration(time.monotonic() - began)
                self._cut_off = f"{label}: you stopped it after {elapsed}, before its answer was complete"
                raise
        self._sends.append(send)
        return send

    def _estimate_s(self, label: str) -> float | None:
        """What the forecast expects of the first token, at the slow end."""
        speed = self._target.expected.speed
        if speed is None:
            return None
        span: Span = speed.ttft_cold_s if label == "cold" else speed.ttft_warm_s
        return span.high

    def report(self, *, interrupted: bool) -> VerifyReport:
        """All that is known."""
        items = list(self._items)
        if self._prompt is not None:
            expected, settings = self._target.expected, self._settings
            items += check_sends(expected, settings, self._state, self._prompt, self._sends, self._cut_off)
        return VerifyReport(
            base_url=self._client.endpoint.root,
            model=self._model,
            server=self._state,
            prompt=self._prompt,
            sends=tuple(self._sends),
            items=tuple(items),
            interrupted=interrupted,
        )
