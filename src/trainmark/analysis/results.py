"""The results of a comparison, as frozen data.

Field names are the keys of ``trainmark compare --json``.
"""

from __future__ import annotations

import dataclasses
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
from trainmark.record.named_metric import Better, NamedMetric


@dataclass(frozen=True)
class MedianInterval:
    """A median over runs; for its interval, see ``statistics.median_interval``."""

    median: float | None
    low: float | None
    high: float | None

    @classmethod
    def of(cls, values: Sequence[float]) -> MedianInterval:
        """Return the median of these runs."""
        return cls(median(values), *(median_interval(values) or (None, None)))


SpeedOf = Literal["slice", "epoch", "process"]
"""The compared quantity."""


@dataclass(frozen=True)
class Speedup:
    """Reference seconds / these seconds with its interval; above 1 is faster.

    It is a 95 % interval; for slices, a 97 % interval. An obvious difference in two rounds has one
    bound instead: "at least this much faster" or "slower" (:mod:`~trainmark.analysis.obvious`).

    ``of`` interleaved slices; else of a steady epoch, or of the whole process if a command reports
    no epochs.
    """

    ratio: float | None
    low: float | None
    high: float | None
    verdict: SpeedVerdict
    of: SpeedOf = "epoch"

    @property
    def at_least(self) -> float | None:
        """How many times faster or slower it is at least; None unless it has a single bound."""
        if self.verdict == "faster" and self.high is None:
            return self.low
        if self.verdict == "slower" and self.low is None and self.high is not None:
            return 1 / self.high
        return None


@dataclass(frozen=True)
class Learning:
    """Final accuracy minus the reference's, as a fraction, with its 95 % interval.

    For text, it is the reference's final loss minus this one.

    Args:
        quantity: ``test_accuracy``, or ``train_accuracy`` if nothing was tested; for text, likewise
            the loss. For a command, the figure that --metric names.
        difference: above 0 if this group learnt more.
        better: which values of the named figure are better; None for trainmark's own quantities.
    """

    quantity: str | None
    difference: float | None
    low: float | None
    high: float | None
    verdict: LearningVerdict
    better: Better | None = None


@dataclass(frozen=True)
class MetricResult:
    """The figure on one side.

    Args:
        name, better: what the user asks for.
        mean, low, high: mean of the last values of the runs, with its 95 % interval; None with too
            few.
        best: mean of the best values.
        best_at: when the best value came, if there is a single run.
        counted_in: what ``best_at`` counts.
        is_percentage: whether the values are percentages.
        runs: number of runs with a finite last value.
        not_finite: number of runs whose last value is not finite.
        lacking: number of complete runs without a value.
        unfinished: number of runs that trainmark ended before the end of their training.
        by_budget: whether the budget ended one of these.
        example: the figure in a run that lacks it; None if none does.
    """

    name: str
    better: Better
    mean: float | None
    low: float | None
    high: float | None
    best: float | None
    best_at: float | None
    counted_in: str | None
    is_percentage: bool
    runs: int
    not_finite: int
    lacking: int
    unfinished: int
    by_budget: bool = False
    example: NamedMetric | None = None

    @property
    def is_comparable(self) -> bool:
        """Whether each complete run has a finite value."""
        return self.mean is not None and not (self.lacking or self.not_finite)


@dataclass(frozen=True)
class Reached:
    """How the runs of a group reached their target.

    Args:
        target: target, such as ``test_accuracy>=0.98``.
        runs: number of runs that reached it.
        seconds: median training time of all, without compilation and evaluation; infinite for those
            that missed it.
        low, high: the interval of ``seconds``; None with too few runs.
        epochs: median number of epochs, likewise.
    """

    target: str
    runs: int
    seconds: float | None
    low: float | None
    high: float | None
    epochs: float | None


@dataclass(frozen=True)
class BestThreads:
    """The number of CPU threads that was found to be the fastest, next to an accelerator.

    Args:
        chosen: that number; the group was measured with it.
        default: number of threads that the framework would have used.
        slowdown: time of a step with the framework's number / time with the best number, from a few
            steps each.
    """

    chosen: int
    default: int
    slowdown: float


@dataclass(frozen=True)
class GroupResult:
    """One group compared with its reference.

    Figures are medians over its runs; accuracies are means.

    Args:
        runs: number of measured runs.
        trainings: number of those that trained to the end; the others are rounds of slices.
        failed: number of runs that failed, timed out or were interrupted, and are excluded.
        reference: position of the group it is compared with; its own for a reference, None without
            one.
        epochs: number of epochs of the longest run.
        steps: number of its steps.
        by_steps: whether the length was requested in steps, not epochs.
        process_seconds: duration of a whole command, from start to end; unknown for trainmark's own
            trainings, and if --steps or --budget ended it.
        efficiency: relative to the device's measured limit; None if unknown.
        reached: None if the runs had no target.
        breaks: whether runs failed and none was completed, so its speed says nothing yet.
        best_threads: None for an accelerator, or if no search had a result.
        tokens, tokens_per_second, test_perplexity: tokens per example, and figures of text; None
            for images.
        metric: the figure that --metric names; None without the option.
        learning_unseen: why the loss of a command does not show whether it learns; None if it may.
    """

    key: Key
    runs: int
    trainings: int
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
    best_threads: BestThreads | None = None
    tokens: int | None = None
    tokens_per_second: float | None = None
    test_perplexity: float | None = None
    breaks: bool = False
    learning_unseen: str | None = None
    metric: MetricResult | None = None

    @property
    def conditions(self) -> Key:
        """The key, with the best number of CPU threads instead of the user's, if one was found."""
        if self.best_threads is None:
            return self.key
        return dataclasses.replace(self.key, threads=self.best_threads.chosen)

    @property
    def learns(self) -> bool:
        """Whether all runs of the group learnt."""
        return Caveat.NOT_LEARNING not in self.caveats


@dataclass(frozen=True)
class DeviceReference:
    """A group of runs compared with a reference device.

    Args:
        position: position of the group in its comparison.
        device: the reference device.
        same_model: whether the group ran on the same model.
        samples_per_second: the reference device's throughput, with its fastest backend and style.
        how: that backend and style.
        source: who measured or published it.
        ratio: the group's throughput / that one.
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
        margin: largest difference that counts as the same speed, as a fraction.
        learning_margin, loss_margin: largest difference in accuracy, as a fraction, and in the loss
            of a text, that counts as learning the same.
        differences: differences between the machines, if those are compared.
        references: the groups compared with reference devices, if requested.
        measured: the records of each group.
    """

    groups: tuple[GroupResult, ...]
    published: tuple[PublishedResult, ...]
    by: Dimension | None
    baseline: tuple[str, str] | None
    margin: float
    learning_margin: float
    loss_margin: float
    differences: tuple[Difference, ...] = ()
    references: tuple[DeviceReference, ...] = ()
    measured: tuple[Repeats, ...] = ()

    @property
    def data(self) -> dict[str, object]:
        """Return the output of ``trainmark compare --json``: everything except the records."""
        return {name: value for name, value in vars(self).items() if name != "measured"}

    @property
    def by_workload(self) -> list[list[int]]:
        """The positions of the groups, by workload and schedule, in the order measured."""
        by_workload: dict[tuple[str, str, str], list[int]] = {}
        for position, group in enumerate(self.groups):
            by_workload.setdefault(group.key.same_work, []).append(position)
        return list(by_workload.values())

    def is_reference(self, position: int) -> bool:
        """Return whether others are compared with the group at ``position``."""
        return self.groups[position].reference == position
