"""The Prometheus text format, as far as an engine's /metrics page uses it. Pure."""

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

_LINE = re.compile(r'([A-Za-z_:][\w:]*)(?:\{((?:[^"}]|"(?:[^"\\]|\\.)*")*)\})?\s+([^\s{}]+)(?:\s+-?\d+)?(?:\s+#.*)?$')
_LABEL = re.compile(r'([A-Za-z_]\w*)="((?:[^"\\]|\\.)*)"')
_ESCAPE = re.compile(r"\\(.)")


@dataclass(frozen=True, slots=True)
class Sample:
    """One line of the page. `name` is as scraped, with `_total`, `_sum` or `_count`."""

    name: str
    labels: Mapping[str, str]
    value: float


def parse_samples(text: str) -> tuple[Sample, ...]:
    """Every sample of a page; comments and lines that are no samples are left out (a page may be cut anywhere)."""
    return tuple(_samples(text))


def _samples(text: str) -> Iterator[Sample]:
    for line in text.splitlines():
        match = None if line.startswith("#") else _LINE.match(line.strip())
        if match is None:
            continue
        try:
            value = float(match[3])
        except ValueError:
            continue
        labels = {name: _ESCAPE.sub(_unescape, raw) for name, raw in _LABEL.findall(match[2] or "")}
        yield Sample(match[1], labels, value)


def _unescape(match: re.Match[str]) -> str:
    return "\n" if match[1] == "n" else match[1]
