"""What holds for every test."""

import signal


def pytest_configure() -> None:
    """A run under nohup ignores hang-ups, one in the background of a script Ctrl-C, and so would all that a test starts."""
    signal.signal(signal.SIGINT, signal.default_int_handler)
    if hasattr(signal, "SIGHUP"):  # Windows has none
        signal.signal(signal.SIGHUP, signal.SIG_DFL)
