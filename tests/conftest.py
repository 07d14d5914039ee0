"""What holds for every test."""

import signal


def pytest_configure() -> None:
    """A run under nohup ignores hang-ups, and so would every process that a test starts."""
    if hasattr(signal, "SIGHUP"):  # Windows has none
        signal.signal(signal.SIGHUP, signal.SIG_DFL)
