"""What a comparison says, as frozen data; its field names are the keys of ``trainmark compare --json``."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Literal

from trainmark.analysis.agreement import PublishedResult
from trainmark.analysis.cost import Cost
from trainmark.analysis.differences import Difference
from trainmark.analysis.efficiency import Efficiency
from trainmark.analysis.groups import Repeats
from trainmark.analysis.statistics import LearningVerdict, SpeedVerdict, median, median_interval
from trainmark.record.caveats import Caveat
from trainmark.record.facts import Dimension, Key


@dataclass(frozen=True)
class MedianInterval:
    """A median over runs with the interval of :func:`~trainmark.analysis.statistics.median_interval`."""

    median: float | None
    low: float | None
    high: float | None

    @classmethod
    def of(cls, values: Sequence[float]) -> MedianInterval:
        """The median of these runs."""
        return cls(median(values), *(median_interval(values) or (None, None)))


SpeedOf = Literal["slice", "epoch", "process"]
"""What the compared seconds are of."""


@dataclass(frozen=True)
class Speedup:
    """Reference seconds / these seconds, above 1 is faster, with its 95 % interval.

    ``of`` slices that took turns; else of a steady epoch, or of the whole process where a command reports no epochs.
    """

    ratio: float | None
    low: float | None
    high: float | None
    verdict: SpeedVerdict
    of: SpeedOf = "epoch"


@dataclass(frozen=True)
class Learning:
    """Accuracy at the end, these less reference, as a fraction, with its 95 % interval.

    Args:
        quantity: ``test_accuracy``, or ``train_accuracy`` where nothing was tested.
        difference: above 0 where these learnt more.
    """

    quantity: str | None
    difference: float | None
    low: float | None
    high: float | None
    verdict: LearningVerdict


@dataclass(frozen=True)
class Reached:
    """How the runs of a group came to their target.

    Args:
        target: such as ``test_accuracy>=0.98``.
        runs: how many reached it.
        seconds: the median of those; training alone, without compilation and evaluation.
    """

    target: str
    runs: int
    seconds: float | None


@dataclass(frozen=True)
class GroupResult:
    """One group compared with its reference. Figures are medians over its runs.

    Args:
        runs: how many were measured.
        failed: how many more failed, timed out or were interrupted, and are left out.
        reference: position of the group it is compared with, its own for a reference, None without one.
        epochs: how many a run had, the longest.
        steps: how many it had in all.
        by_steps: whether steps were asked for, not epochs.
        process_seconds: of a whole command, from start to end; unknown of trainings of ours.
        efficiency: against the device's measured limit; None where none is known.
        reached: None where the runs had no target.
    """

    key: Key
    runs: int
    failed: int
    reference: int | None
    epochs: int
    steps: int
    by_steps: bool
    epoch_seconds: MedianInterval
    process_seconds: MedianInterval
    samples_per_second: float | None
    training_seconds: float | None
    compile_seconds: float | None
    train_accuracy: float | None
    test_accuracy: float | None
    train_loss: float | None
    test_loss: float | None
    speedup: Speedup
    learning: Learning
    caveats: tuple[Caveat, ...]
    efficiency: Efficiency | None = None
    cost: Cost = field(default_factory=Cost)
    reached: Reached | None = None


@dataclass(frozen=True)
class Beside:
    """A group of runs compared with a reference device.

    Args:
        position: of the group in its comparison.
        device: the known one.
        same_model: whether the group ran on the same model.
        samples_per_second: of the known one, with its fastest backend and style.
        how: which those are.
        source: who measured or published it.
        ratio: the group's pace / that one.
    """

    position: int
    device: str
    same_model: bool
    samples_per_second: float
    how: str
    source: str
    ratio: float


@dataclass(frozen=True)
class Comparison:
    """Groups in the order they were measured.

    Args:
        margin: what still counts as the same speed, a fraction.
        learning_margin: what still counts as learning the same, a fraction of accuracy.
        differences: between the machines, where those are compared.
        references: the groups next to known devices, if requested.
        measured: the records of each group.
    """

    groups: tuple[GroupResult, ...]
    published: tuple[PublishedResult, ...]
    by: Dimension | None
    baseline: tuple[str, str] | None
    margin: float
    learning_margin: float
    differences: tuple[Difference, ...] = ()
    references: tuple[Beside, ...] = ()
    measured: tuple[Repeats, ...] = ()

    @property
    def data(self) -> dict[str, object]:
        """What ``trainmark compare --json`` prints: all but the records."""
        return {name: value for name, value in vars(self).items() if name != "measured"}

    @property
    def works(self) -> list[list[int]]:
        """The positions of the groups of each workload and schedule, in the order measured."""
        found: dict[tuple[str, str, str], list[int]] = {}
        for position, group in enumerate(self.groups):
            found.setdefault(group.key.same_work, []).append(position)
        return list(found.values())

    def is_reference(self, position: int) -> bool:
        """Whether the group at ``position`` is what others are compared with."""
        return self.groups[position].reference == position
