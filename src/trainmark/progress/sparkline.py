"""A few figures as a row of bars, for a line that moves."""

from __future__ import annotations

from collections import deque

_BARS = "▁▂▃▄▅▆▇█"


class Sparkline:
    """The last values of one quantity.

    Args:
        width: how many are drawn.
    """

    def __init__(self, width: int = 10) -> None:
        self._values: deque[float] = deque(maxlen=width)

    def add(self, value: float) -> None:
        """One more on the right."""
        self._values.append(value)

    def drawn(self, highest: float) -> str:
        """The bars, the tallest for ``highest`` and above."""
        if highest <= 0:
            return ""
        return "".join(_BARS[min(int(value / highest * len(_BARS)), len(_BARS) - 1)] for value in self._values)
