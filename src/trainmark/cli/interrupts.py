"""Ctrl-C, and SIGTERM, with which a batch system ends a job: they interrupt a command anywhere, but an import after it.

A compiled module may take what is raised while it is imported for its own affair and drop it: `numpy.random` does. The
command would go on, and whoever asked it to end would have to ask again.
"""

from __future__ import annotations

import signal
import time
from types import FrameType

LONGEST_IMPORT = 3.0
"""Seconds after which an import is interrupted all the same, whatever it makes of that: it may hang."""
_LOOK_AGAIN = 0.02
_HAS_TIMER = hasattr(signal, "setitimer")


def hear() -> None:
    """From now on both raise KeyboardInterrupt. Where whoever started us has Ctrl-C ignored, it stays so."""
    ends = _Ends()
    if signal.getsignal(signal.SIGINT) is signal.default_int_handler:
        signal.signal(signal.SIGINT, ends)
    signal.signal(signal.SIGTERM, ends)


def forget() -> None:
    """What waited for an import that was the command's last has come too late to end it."""
    if _HAS_TIMER:
        signal.setitimer(signal.ITIMER_REAL, 0)


class _Ends:
    def __init__(self) -> None:
        self._until: float | None = None

    def __call__(self, number: int, frame: FrameType | None) -> None:
        if _is_importing(frame) and _HAS_TIMER:
            now = time.monotonic()
            self._until = self._until or now + LONGEST_IMPORT
            if now < self._until:
                # Sent again, not raised: by then others may hold signals back.
                signal.signal(signal.SIGALRM, lambda *_: signal.raise_signal(number))
                signal.setitimer(signal.ITIMER_REAL, _LOOK_AGAIN)
                return
        self._until = None
        forget()
        raise KeyboardInterrupt


def _is_importing(frame: FrameType | None) -> bool:
    while frame is not None:
        if frame.f_code.co_filename.startswith("<frozen importlib"):
            return True
        frame = frame.f_back
    return False
