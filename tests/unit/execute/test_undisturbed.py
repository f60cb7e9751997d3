from __future__ import annotations

import os
import signal
import threading
import time
from collections.abc import Iterator

import pytest

from trainmark.execute.parent.undisturbed import ENDING_SIGNALS, undisturbed


@pytest.fixture
def another_thread() -> Iterator[None]:
    """Start a thread that the system may give signals to, like the one that draws the progress."""
    done = threading.Event()
    thread = threading.Thread(target=done.wait)
    thread.start()
    yield
    done.set()
    thread.join()


def interrupt(how: signal.Signals = signal.SIGINT) -> None:
    os.kill(os.getpid(), how)
    time.sleep(0.05)  # Python looks at signals between two instructions


def test_ctrl_c_is_raised_at_the_end(another_thread: None) -> None:
    done: list[str] = []
    with pytest.raises(KeyboardInterrupt):
        with undisturbed():
            interrupt()
            interrupt()
            done.append("all of it")
        done.append("more")
    assert done == ["all of it"]


def test_afterwards_signals_work_as_before(another_thread: None) -> None:
    before = [signal.getsignal(which) for which in ENDING_SIGNALS]
    with undisturbed():
        pass
    assert [signal.getsignal(which) for which in ENDING_SIGNALS] == before
    with pytest.raises(KeyboardInterrupt):
        interrupt()


@pytest.mark.parametrize("how", ENDING_SIGNALS)
def test_each_signal_that_ends_a_command_waits(how: signal.Signals) -> None:
    came: list[int] = []
    before = signal.signal(how, lambda number, _: came.append(number))
    try:
        with undisturbed():
            interrupt(how)
            assert not came
        assert came == [how]
    finally:
        signal.signal(how, before)


def test_errors_are_raised_as_usual() -> None:
    with pytest.raises(ValueError, match="mine"), undisturbed():
        interrupt()
        raise ValueError("mine")


def test_other_threads_are_never_interrupted() -> None:
    seen: list[str] = []

    def work() -> None:
        with undisturbed():
            seen.append("done")

    thread = threading.Thread(target=work)
    thread.start()
    thread.join()
    assert seen == ["done"]
