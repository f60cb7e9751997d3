"""A moment in which Ctrl-C waits, for what must be done whole or not at all."""

from __future__ import annotations

import contextlib
import signal
import threading
from collections.abc import Iterator

_HELD = (signal.SIGINT, signal.SIGTERM)


@contextlib.contextmanager
def undisturbed() -> Iterator[None]:
    """Hold Ctrl-C and SIGTERM back, and let them come afterwards.

    Blocking them for this thread would not do: the system then gives them to another thread, such as the one that draws
    the progress, and Python interrupts this one all the same.
    """
    if threading.current_thread() is not threading.main_thread():  # only the main thread is ever interrupted
        yield
        return
    came: list[int] = []
    before = {which: signal.signal(which, lambda number, _: came.append(number)) for which in _HELD}
    try:
        yield
    finally:
        for which, handler in before.items():
            signal.signal(which, signal.SIG_DFL if handler is None else handler)
    if came:  # not where an error goes its way: that ends the command, too, and has something to say
        signal.raise_signal(came[0])
