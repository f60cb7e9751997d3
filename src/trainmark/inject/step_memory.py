"""How much memory a training has at its steps."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

_PAGES = Path("/proc/self/statm")
"""Where Linux has the sizes of this process in pages: total, resident, shared, then others."""
_LEAST_SECONDS = 0.1
"""Least time between two readings; one takes about ten microseconds."""
_SHARE_OF_TIME = 0.005
"""Readings are at least this share of the elapsed time apart, so that they cost less and less in a
long training."""
_MOST_READINGS = 96
"""When this many readings are kept, every second one is dropped."""


class StepMemory:
    """Readings of the memory at some steps.

    Args:
        device_bytes: returns how many bytes are allocated on the device; None if unknown.
    """

    def __init__(self, device_bytes: Callable[[], int | None]) -> None:
        self._device_bytes = device_bytes
        self._began: float | None = None
        self._next_at = 0.0
        self._least = _LEAST_SECONDS
        self._readings: list[list[int | None]] = []

    def stepped(self, step: int, now: float) -> None:
        """Read the memory after a step if it is time to.

        Args:
            step: its number, from 1.
            now: the time in seconds.
        """
        if now < self._next_at:
            return
        if self._began is None:
            self._began = now
        self._next_at = now + max(self._least, _SHARE_OF_TIME * (now - self._began))
        self._readings.append([step, own_bytes(), self._device_bytes()])
        if len(self._readings) >= _MOST_READINGS:
            self._readings = self._readings[::2]
            self._least *= 2

    def readings(self) -> list[list[int | None]]:
        """Return number, bytes of this process and bytes on the device of some steps.

        What is unknown is None.
        """
        return list(self._readings)


def own_bytes() -> int | None:
    """Return the resident memory of this process that it shares with no file and no other process.

    The result is None where the system doesn't tell, as outside of Linux.
    """
    try:
        _, resident, shared, *_ = _PAGES.read_text("ascii").split()
    except (OSError, ValueError):
        return None
    return (int(resident) - int(shared)) * os.sysconf("SC_PAGE_SIZE")
