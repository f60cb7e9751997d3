"""Hold signals that end a command back during an operation that must not be interrupted."""

from __future__ import annotations

import contextlib
import signal
import threading
from collections.abc import Iterator

ENDING_SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGQUIT)
"""What ends a command early: Ctrl-C, a batch system, a closed terminal, and Ctrl with backslash."""


@contextlib.contextmanager
def undisturbed() -> Iterator[None]:
    """Hold :data:`ENDING_SIGNALS` back, and deliver the first one afterwards.

    Blocking them for this thread is not enough: the system then delivers them to another thread,
    such as the one that draws the progress, and Python interrupts this one anyway.
    """
    # Python runs signal handlers in the main thread only.
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    came: list[int] = []

    def keep(number: int, _: object) -> None:
        came.append(number)

    before = {which: signal.signal(which, keep) for which in ENDING_SIGNALS}
    try:
        yield
    finally:
        for which, handler in before.items():
            signal.signal(which, signal.SIG_DFL if handler is None else handler)
    if came:  # an exception, if any, ends the command anyway and says why
        signal.raise_signal(came[0])
