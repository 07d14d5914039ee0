"""How long an open loop lasts, in words, before it begins."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Self

from longreach.units import format_duration

_LONG_S = 300.0
_HANDY_S = 60.0


@dataclass(frozen=True, slots=True)
class OpenTiming:
    """When the last request of a pass is due after the first, 0 in a closed loop. `time_scale` is that of a trace: another
    can be chosen.
    """

    last_due_s: float = 0.0
    time_scale: float | None = None

    @classmethod
    def of(cls, requests: Sequence[Any], settings: Any, seed: str, *, is_trace: bool) -> Self:
        """Of the first pass; others follow at the same pace."""
        from longreach.measure.bench.loops import last_due_s
        from longreach.measure.bench.settings import plan_phases

        first = plan_phases(settings.states, is_hybrid=None)[0].name
        scale = settings.load.time_scale if is_trace and settings.load.arrivals == "trace" else None
        return cls(last_due_s(settings.load, requests, f"{seed} {first}"), scale)

    @property
    def is_long(self) -> bool:
        """Longer than anybody waits without having been told."""
        return self.last_due_s > _LONG_S

    def describe(self) -> str:
        """One line, with the way to make it short."""
        text = f"last request is due after {format_duration(self.last_due_s)}"
        if self.time_scale is None or not self.is_long:
            return text
        factor = float(f"{_HANDY_S / self.last_due_s:.1g}")
        scale = f"{self.time_scale * factor:g}"
        return f"{text} (--time-scale {scale} makes it {format_duration(self.last_due_s * factor)})"
