"""Write docs/accuracy.md anew: `python -m tests.accuracy.write`, or `make accuracy`."""

from importlib import import_module
from importlib.util import find_spec
from pathlib import Path

PAGE = Path(__file__).parents[2] / "docs" / "accuracy.md"
SECTIONS = ("capacity", "memory", "speed", "lint")

_TOP = """# Accuracy

What longreach says beside what was published: every figure of this page is computed by `make accuracy` from `tests/corpus`, and a
test fails when the page is not what the code gives. Every row is somebody else's measurement or log; nothing was run for it.
"""


def page() -> str:
    """The whole page."""
    modules = (f"tests.accuracy.{name}" for name in SECTIONS)
    return "\n".join((_TOP, *(import_module(name).section() for name in modules if find_spec(name) is not None)))


if __name__ == "__main__":
    PAGE.write_text(page(), encoding="utf-8")
