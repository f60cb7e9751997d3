"""How many examples and tokens steps have."""

from __future__ import annotations

from collections import Counter
from typing import NamedTuple

_NEARLY_ALL = 0.9
"""Share of the steps for which something must hold to be true of a training."""


class Since(NamedTuple):
    """What was added up since the last step of any optimiser.

    Args:
        waited: seconds of waiting for loaders.
        apart: seconds of evaluations.
        loaded: number of examples that loaders delivered.
        rows: number of rows of the network's inputs, with gradients.
        tokens: number of tokens of these inputs.
        odd: number of forward passes with gradients whose input shows no number of examples.
        again: number of these passes that came after another one, and before its backward pass.
        elements: number of elements of these inputs.
        passes: number of forward passes with gradients, without those of closures and those that
            needed no look, because a loader counts the examples.
    """

    waited: float = 0.0
    apart: float = 0.0
    loaded: float = 0
    rows: float = 0
    tokens: float = 0
    odd: float = 0
    again: float = 0
    elements: float = 0
    passes: float = 0

    def and_then(self, later: Since) -> Since:
        """Return these sums and later ones."""
        return Since(*(one + other for one, other in zip(self, later)))  # noqa: B905

    def plus(self, **more: float) -> Since:
        """Return the sums with some more."""
        return self._replace(**{name: getattr(self, name) + each for name, each in more.items()})


class Amounts:
    """Examples and tokens of a number of steps.

    Attributes:
        steps: number of steps.
        tokens: number of tokens.
    """

    def __init__(self) -> None:
        self.steps = 0
        self.tokens = 0.0
        self._loaded = 0.0
        self._loading = 0
        self._rows: Counter[float] = Counter()
        self._odd = 0
        self._again = 0
        self._passes: Counter[float] = Counter()

    def add(self, since: Since, steps: int = 1) -> None:
        """Add steps that were taken at once."""
        self.steps += steps
        self.tokens += since.tokens
        self._loaded += since.loaded
        self._loading += steps * bool(since.loaded)
        self._rows[since.rows / steps] += steps
        self._odd += steps * bool(since.odd)
        self._again += steps * bool(since.again)
        self._passes[since.passes / steps] += steps

    @property
    def are_loaded(self) -> bool:
        """Whether loaders deliver examples for nearly every step."""
        return self._loading >= _NEARLY_ALL * self.steps > 0

    def examples(self) -> float | None:
        """Return the number of examples of all steps; None if unknown.

        They are what loaders delivered, if they did so for nearly every step. Else they are the
        rows of the network's inputs, if nearly all steps have as many.
        """
        if self.are_loaded:
            return self._loaded
        if self.unknown():
            return None
        return sum(rows * steps for rows, steps in self._rows.items())

    def unknown(self) -> str | None:
        """Return why the number of examples is unknown; None if it is known."""
        if self.are_loaded:
            return None
        if not self.steps:
            return "only one step ran, and a part of it may not have been seen"
        if self._odd > (1 - _NEARLY_ALL) * self.steps:
            return "the network's input has no dimension that is surely that of the batch"
        if self._again > (1 - _NEARLY_ALL) * self.steps:
            return "several forward passes come before a backward pass, of the same examples or not"
        ((rows, often),) = self._rows.most_common(1)
        if not rows:
            return "neither a loader nor a call of a network was seen in its steps"
        if often < _NEARLY_ALL * self.steps:
            least = min(self._rows)
            most = max(self._rows)
            return f"the network's inputs have from {least:g} to {most:g} rows a step"
        return None

    def passes(self) -> tuple[float, float] | None:
        """Return the fewest and the most forward passes of a step; None if nearly all have as many.

        Those of an agent differ if each one chooses an action of an episode.
        """
        often = max(self._passes.values(), default=0)
        if often >= _NEARLY_ALL * self.steps:
            return None
        return min(self._passes), max(self._passes)
