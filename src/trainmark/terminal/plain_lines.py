"""Progress without a terminal, as in a log or a pipe: an occasional line on stderr."""

from __future__ import annotations

import signal
import threading
import time
from collections.abc import Callable
from types import TracebackType

from rich.console import Console

from trainmark import units

FIRST_SECONDS = 10.0
"""Seconds until the first line, and between any two lines."""
EVERY_SECONDS = 30.0
"""Seconds from one line about progress to the next."""


class PlainLines:
    """Prints the text of ``words``, unless it is empty, after 10 s and then every 30 s.

    Args:
        screen: console to print on; one with a live line gets none.
        words: returns the text.
    """

    def __init__(self, screen: Console, words: Callable[[], str]) -> None:
        self._screen = screen
        self._words = words
        self._wanted = not screen.is_terminal or screen.is_dumb_terminal
        self._started = time.monotonic()
        self._due = self._started + FIRST_SECONDS
        self._over = threading.Event()
        self._beside: threading.Thread | None = None

    def print_if_due(self) -> None:
        """Print a line, if one is due."""
        now = time.monotonic()
        if not self._wanted or now < self._due:
            return
        words = self._words()
        if words:
            spent = f"{units.seconds(float(round(now - self._started)))} so far"
            self._screen.print(f"{words}; {spent}", soft_wrap=True, markup=False, highlight=False)
            self._due = now + EVERY_SECONDS

    def another_said(self) -> None:
        """Note that another line was printed, which shows progress as well."""
        self._due = max(self._due, time.monotonic() + FIRST_SECONDS)

    def __enter__(self) -> PlainLines:
        """Start a thread that prints the lines."""
        if self._wanted:
            # Signals must go to the main thread: only it holds them back while it writes.
            before = signal.pthread_sigmask(signal.SIG_BLOCK, signal.valid_signals())
            try:
                self._beside = threading.Thread(target=self._look_by_itself, daemon=True)
                self._beside.start()
            finally:
                signal.pthread_sigmask(signal.SIG_SETMASK, before)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: object, trace: TracebackType | None
    ) -> None:
        self._over.set()
        if self._beside is not None:
            self._beside.join()

    def _look_by_itself(self) -> None:
        while not self._over.wait(max(self._due - time.monotonic(), 0.1)):
            self.print_if_due()
