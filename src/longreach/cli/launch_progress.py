"""Progress of a start, on stderr: a line that lives on a terminal, plain lines elsewhere."""

from longreach.cli.live_line import LiveLine
from longreach.launch import up_events
from longreach.report.launch_text import render_comparison
from longreach.report.style import Paint
from longreach.units import format_duration

_PLAIN_EVERY_S = 15.0


class LaunchProgress:
    """Call it with every launch event; `close` ends the live line. `shows_comparison`: for a start that does not return."""

    def __init__(self, *, shows_comparison: bool = False) -> None:
        self._shows_comparison = shows_comparison
        self._line = LiveLine()
        self._line.update("starting")
        self._last_plain_s: dict[str, float] = {}

    def __call__(self, event: up_events.LaunchEvent) -> None:
        """Draw one event."""
        match event:
            case up_events.EngineStarted(instance, pid, _, log_path):
                self._line.say(f"{instance}: started as pid {pid}, log {log_path}")
                self._line.start()
            case up_events.PhaseBegan(instance, phase, finished, elapsed_s):
                done = f"{finished.phase} took {format_duration(finished.seconds)}"
                self._line.say(f"{instance}: {phase} ({done}, {format_duration(elapsed_s)} in all)")
            case up_events.StillStarting():
                self._tick(event)
            case up_events.EngineReady(instance, base_url, elapsed_s, _):
                self._line.say(f"{instance}: ready at {base_url} after {format_duration(elapsed_s)}")
            case up_events.EngineStopping(instance, pid):
                self._line.say(f"{instance}: stopping pid {pid}")
            case up_events.EngineStopped(instance, _, removed_files):
                files = f", removed {len(removed_files)} file(s) from shared memory" if removed_files else ""
                self._line.say(f"{instance}: stopped{files}")
            case up_events.EngineCompared() if self._shows_comparison:
                self._line.say("\n".join(render_comparison(event.observations, event.findings, Paint())))
                self._line.say("it runs until you stop it: Ctrl-C here, or longreach down")
                self.close()
            case up_events.EngineSaid() | up_events.EngineCompared():
                pass

    def close(self) -> None:
        """End the live line."""
        self._line.close()

    def _tick(self, event: up_events.StillStarting) -> None:
        detail = f", {event.detail}" if event.detail else ""
        silent = f", log silent for {format_duration(event.silent_s)}" if event.silent_s > 20 else ""
        text = f"{event.instance}: {event.phase}{detail}, {format_duration(event.elapsed_s)}{silent}"
        if self._line.is_live:
            self._line.update(text)
        elif event.elapsed_s - self._last_plain_s.get(event.instance, 0.0) >= _PLAIN_EVERY_S:
            self._last_plain_s[event.instance] = event.elapsed_s
            self._line.say(text)
