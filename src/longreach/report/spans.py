"""Ranges in a table cell: the expected ends alone, without the bounds."""

from longreach.forecast.values import Span
from longreach.units import format_duration


def time_range(span: Span | None) -> str:
    """`6 min 54 s to 14 min 18 s`."""
    if span is None or span.low is None or span.high is None:
        return "unknown"
    return f"{format_duration(span.low)} to {format_duration(span.high)}"


def rate_range(span: Span | None) -> str:
    """`50 to 175`."""
    if span is None or span.low is None or span.high is None:
        return "unknown"
    return f"{span.low:,.0f} to {span.high:,.0f}"
