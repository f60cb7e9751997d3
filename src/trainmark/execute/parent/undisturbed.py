"""Hold Ctrl-C back during an operation that must not be interrupted."""

from __future__ import annotations

import contextlib
import signal
import threading
from collections.abc import Iterator

_HELD = (signal.SIGINT, signal.SIGTERM)


@contextlib.contextmanager
def undisturbed() -> Iterator[None]:
    """Hold Ctrl-C and SIGTERM back, and deliver them afterwards.

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

    before = {which: signal.signal(which, keep) for which in _HELD}
    try:
        yield
    finally:
        for which, handler in before.items():
            signal.signal(which, signal.SIG_DFL if handler is None else handler)
    if came:  # an exception, if any, ends the command anyway and says why
        signal.raise_signal(came[0])
