import os
import signal
import threading

import pytest

from longreach.launch.signals import StopSignals


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_a_stop_signal_is_noted_and_acted_upon_when_asked(number: signal.Signals) -> None:
    with StopSignals() as signals:
        signals.check()
        os.kill(os.getpid(), number)
        assert signals.is_requested
        with pytest.raises(KeyboardInterrupt):
            signals.check()


def test_a_second_signal_while_stopping_means_at_once() -> None:
    with StopSignals() as signals:
        os.kill(os.getpid(), signal.SIGINT)
        assert not signals.is_hurried()
        signals.begin_stopping()
        assert not signals.is_hurried()
        os.kill(os.getpid(), signal.SIGINT)
        assert signals.is_hurried()


def test_the_handlers_are_put_back() -> None:
    before = [signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM, signal.SIGPIPE)]
    with StopSignals():
        assert signal.getsignal(signal.SIGPIPE) == signal.SIG_IGN
    assert [signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM, signal.SIGPIPE)] == before


def test_another_thread_may_use_it_too() -> None:
    seen: list[bool] = []

    def use() -> None:
        with StopSignals() as signals:
            seen.append(signals.is_requested)

    thread = threading.Thread(target=use)
    thread.start()
    thread.join()
    assert seen == [False]


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGHUP])
def test_an_ignored_signal_stays_ignored(number: signal.Signals) -> None:
    before = signal.signal(number, signal.SIG_IGN)
    try:
        with StopSignals() as signals:
            os.kill(os.getpid(), number)
            assert not signals.is_requested
        assert signal.getsignal(number) == signal.SIG_IGN
    finally:
        signal.signal(number, before)
