"""The figure of a command that ``trainmark measure --metric`` names."""

from __future__ import annotations

from typing import Literal

from msgspec import Struct, field

Better = Literal["lower", "higher"]
MetricSource = Literal["logged", "printed", "reported"]


class WantedMetric(Struct, frozen=True):
    """What the user asks for.

    Args:
        name: name of a printed field or of a logged scalar.
        better: which values are better.
    """

    name: str
    better: Better

    def is_better(self, value: float, than: float) -> bool:
        """Return whether a value is better than another one, which may be NaN."""
        if than != than:
            return value == value
        return value < than if self.better == "lower" else value > than


class NamedMetric(Struct, frozen=True):
    """The values of the figure in one run.

    Args:
        name: its name, as the user gave it.
        better: which values are better, as the user says.
        source: ``logged`` to a library such as TensorBoard, ``printed`` on the command's output, or
            ``reported`` by the hook; null if it was not found.
        found_as: its name there; null if it was not found.
        count: how many values there were.
        values: the first 2,000 of them, then every hundredth.
        at: when each of them came: the number of steps before it if it was logged, the number of
            the step or the epoch in the same line if it was printed; null if unknown.
        counted_in: what ``at`` counts, such as ``step``; null if unknown.
        last: the last value.
        best: the best value.
        best_at: when it came, as in ``at``.
        is_percentage: whether each value was printed with a percent sign.
        is_final: whether the training ran to its end, or to ``--steps``.
        candidates: the names that it was printed under, if there are several; none is chosen.
        others: other names with a number, if this one was not found.
        not_numbers: what was printed instead of a number.
    """

    name: str
    better: Better
    source: MetricSource | None = None
    found_as: str | None = None
    count: int = 0
    values: list[float] = field(default_factory=list)
    at: list[float | None] = field(default_factory=list)
    counted_in: str | None = None
    last: float | None = None
    best: float | None = None
    best_at: float | None = None
    is_percentage: bool = False
    is_final: bool = True
    candidates: list[str] = field(default_factory=list)
    others: list[str] = field(default_factory=list)
    not_numbers: list[str] = field(default_factory=list)
