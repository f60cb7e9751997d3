"""How the duration of a step changes over a training."""

from __future__ import annotations

_MOST_PARTS = 96
"""Most parts of a training, each with its shortest step. Two of them are joined when there are
more. They all must fit into one message."""
_DIGITS = 9
"""Decimals of seconds that are kept."""


class StepTimes:
    """The shortest step of each part of a training.

    A mean would show who else uses the machine; the shortest step shows what a step needs.
    """

    def __init__(self) -> None:
        self._width = 1
        self._in_part = 0
        self._parts: list[list[float]] = []

    def add(self, step: int, seconds: float, amount: float) -> None:
        """Add a step.

        Args:
            step: its number, from 1.
            seconds: its duration.
            amount: number of its tokens or, without any, examples.
        """
        if self._in_part == 0:
            self._parts.append([step, seconds, amount])
        elif seconds < self._parts[-1][1]:
            self._parts[-1] = [step, seconds, amount]
        self._in_part += 1
        if self._in_part >= self._width:
            self._in_part = 0
            if len(self._parts) >= _MOST_PARTS:
                self._join()

    def parts(self) -> list[list[float]]:
        """Return number, seconds and amount of the shortest step of each complete part."""
        parts = self._parts[:-1] if self._in_part else self._parts
        return [[step, round(seconds, _DIGITS), amount] for step, seconds, amount in parts]

    def _join(self) -> None:
        pairs = zip(self._parts[::2], self._parts[1::2])  # noqa: B905  (Python 3.8)
        self._parts = [min(pair, key=_seconds) for pair in pairs]
        self._width *= 2


def _seconds(part: list[float]) -> float:
    return part[1]
