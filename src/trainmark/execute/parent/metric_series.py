"""The values of one figure, in the order in which they came."""

from __future__ import annotations

from collections.abc import Sequence

from trainmark.record.named_metric import WantedMetric

MOST_VALUES = 2_000
"""Number of values, from the first one on, of which every one is kept."""
THEN_EVERY = 100
"""After these values, one in this many is kept."""
_MOST_THINNED = 20_000
"""Most values of a series that arrives with gaps."""


class MetricSeries:
    """Counts all values, and keeps as many as a record may have.

    Args:
        wanted: the figure, which says what the best value is.

    Attributes:
        count: how many values there were.
        values: those that are kept.
        at: when each of these came; None if unknown.
        counted_in: what ``at`` counts; None if unknown.
        last: the last value; None without any.
        best: the best value; None without any.
        best_at: when that came; None if unknown.
        percentages: how many values had a percent sign.
    """

    def __init__(self, wanted: WantedMetric) -> None:
        self._wanted = wanted
        self.count = 0
        self.values: list[float] = []
        self.at: list[float | None] = []
        self.counted_in: str | None = None
        self.last: float | None = None
        self.best: float | None = None
        self.best_at: float | None = None
        self.percentages = 0

    def add(self, value: float, at: float | None = None, counted_in: str | None = None) -> None:
        """Add a value.

        Args:
            value: a number, which may be NaN or infinite.
            at: when it came.
            counted_in: what ``at`` counts. The first word holds for the whole series.
        """
        self.counted_in = self.counted_in or counted_in
        known_at = at if counted_in == self.counted_in else None
        if self.count < MOST_VALUES or self.count % THEN_EVERY == 0:
            self.values.append(value)
            self.at.append(known_at)
        self.count += 1
        self.last = value
        self.take_best(value, known_at)

    def add_thinned(self, values: Sequence[tuple[float, float]], count: int) -> None:
        """Add values of which only some are left.

        Args:
            values: the number of steps before each value, and the value.
            count: how many values there were up to the last one of these.
        """
        self.counted_in = "step"
        for at, value in values:
            if len(self.values) < _MOST_THINNED:
                self.values.append(value)
                self.at.append(at)
            self.last = value
            self.take_best(value, at)
        self.count = count

    def take_best(self, value: float, at: float | None) -> None:
        """Keep a value if it is the best one so far."""
        if self.best is None or self._wanted.is_better(value, self.best):
            self.best = value
            self.best_at = at
