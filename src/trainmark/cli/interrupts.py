"""Signals that end a command interrupt it anywhere, but wait for an import to end.

They are Ctrl-C; SIGTERM, with which batch systems end jobs; SIGHUP, when the terminal is closed;
and SIGQUIT, which a terminal sends for Ctrl and backslash.

A compiled module may swallow an exception raised while it is imported: `numpy.random` does. The
command would continue, and you would have to interrupt it again.
"""

from __future__ import annotations

import signal
import time
from functools import partial
from types import FrameType

from trainmark.execute.parent.undisturbed import ENDING_SIGNALS

LONGEST_IMPORT = 3.0
"""Seconds after which an import is interrupted anyway, since it may hang."""
_LOOK_AGAIN = 0.02
"""Seconds until the next look at whether the import has ended."""
_AT_ONCE = 1.0
"""Seconds within which several signals count as one.

A shell and a batch system may both send one, and people press keys repeatedly.
"""


def install() -> None:
    """Make the signals raise KeyboardInterrupt with their names.

    One that the parent ignores, as ``nohup`` does, stays ignored; SIGTERM never is.
    """
    ends = _Ends()
    for which in ENDING_SIGNALS:
        if signal.getsignal(which) in (signal.SIG_DFL, signal.default_int_handler):
            signal.signal(which, ends)
    signal.signal(signal.SIGTERM, ends)


def forget() -> None:
    """Ignore the signals, since the command has ended, and drop one that is still waiting."""
    signal.setitimer(signal.ITIMER_REAL, 0)
    for which in ENDING_SIGNALS:
        signal.signal(which, signal.SIG_IGN)


class _Ends:
    def __init__(self) -> None:
        self._until: float | None = None
        self._deaf_until = 0.0

    def __call__(self, number: int, frame: FrameType | None) -> None:
        now = time.monotonic()
        if now < self._deaf_until:
            return
        if _is_importing(frame):
            self._until = self._until or now + LONGEST_IMPORT
            if now < self._until:
                # It is sent again, not raised, since other code may block signals by then.
                signal.signal(signal.SIGALRM, partial(_send_again, number))
                signal.setitimer(signal.ITIMER_REAL, _LOOK_AGAIN)
                return
        self._until = None
        self._deaf_until = now + _AT_ONCE
        signal.setitimer(signal.ITIMER_REAL, 0)
        name = signal.Signals(number).name
        raise KeyboardInterrupt("Ctrl-C" if number == signal.SIGINT else name)


def _send_again(number: int, _alarm: int, _frame: FrameType | None) -> None:
    signal.raise_signal(number)


def _is_importing(frame: FrameType | None) -> bool:
    while frame is not None:
        if frame.f_code.co_filename.startswith("<frozen importlib"):
            return True
        frame = frame.f_back
    return False
