"""What was published about a workload, and when a re-run is faithful.

It has the exact protocol, the figures, and the tolerance.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Annotated, Literal

from trainmark.workload.decode import Bound, Bounded, Count, Positive, require
from trainmark.workload.schedule import Evaluate, Protocol

Quantity = Literal[
    "train_loss", "train_accuracy", "test_loss", "test_accuracy", "step_loss", "step_l2_loss"
]
Timing = Literal["epoch_seconds", "training_seconds", "samples_per_second"]


def _is_several(count: int) -> bool:
    return count > 1


@dataclass(frozen=True)
class Seeds(Bounded):
    """What right runs with different seeds gave for a figure.

    Args:
        count: number of runs.
        mean: their mean.
        sd: their standard deviation.
    """

    count: Annotated[int, Bound(_is_several, "a whole number above 1")]
    mean: float
    sd: Positive


@dataclass(frozen=True)
class PublishedValue(Bounded):
    """One figure that a re-run is judged by.

    The re-run agrees if it is in ``[low, high]``, or in the prediction interval of ``seeds``.

    Without ``epochs`` and ``steps`` it is the value at the end of a run; without ``repeat``, the
    median over repeats.

    Args:
        value: as printed; the string ``nan`` if the published run failed; None if only bounds are
            known.
        device: the kind of device it was published for; None is any.
        epochs: first and last epoch of the mean, from 1; [0, 0] is the evaluation before the first
            step.
        steps: first step, last step and stride of the mean, from 0.
        repeat: which repeat, from 1.
        needs_whole_dataset: whether the tolerance only holds for the whole dataset, or if no test
            example counts, for the whole training set.
        seeds: what right runs gave; replaces ``low`` and ``high``.
    """

    quantity: Quantity
    value: float | Literal["nan"] | None = None
    low: float | None = None
    high: float | None = None
    device: Literal["cpu", "gpu"] | None = None
    epochs: tuple[int, int] | None = field(default=None, metadata={"places": "[first, last]"})
    steps: tuple[int, int, int] | None = field(
        default=None, metadata={"places": "[first, last, every]"}
    )
    repeat: Count | None = None
    needs_whole_dataset: bool = False
    seeds: Seeds | None = None

    def __post_init__(self) -> None:
        first, last = self.epochs or (0, 0)
        require(
            first == last == 0 or 1 <= first <= last,
            "epochs",
            "[first, last] from 1, or [0, 0]",
            self.epochs,
        )
        start, end, every = self.steps or (0, 0, 1)
        require(
            0 <= start <= end and every > 0, "steps", "[first, last, every], from 0", self.steps
        )
        wrong = "epochs" if self.quantity.startswith("step_") else "steps"
        require(
            getattr(self, wrong) is None, wrong, f"none for {self.quantity}", getattr(self, wrong)
        )
        super().__post_init__()

    @property
    def is_of_training(self) -> bool:
        """Whether only the training set decides it."""
        return not self.quantity.startswith("test_")

    @property
    def where(self) -> str:
        """Where in a run the value applies, for the user."""
        if self.epochs is not None:
            first, last = self.epochs
            if last == 0:
                return "before step 0"
            return f"epoch {first}" if first == last else f"mean of epochs {first} to {last}"
        if self.steps is not None:
            first, last, every = self.steps
            if first == last:
                return f"step {first}"
            return f"mean of steps {first} to {last}, every {every}"
        return "end"


@dataclass(frozen=True)
class PublishedTiming:
    """One published duration or rate.

    It is shown next to the measured one and never judged: the hardware differs.
    """

    quantity: Timing
    value: float
    device: Literal["cpu", "gpu"]
    hardware: str
    includes: str


@dataclass(frozen=True)
class PublishedEpoch:
    """One line of a published log, as printed; None if it has no such value.

    The seconds are the log's.
    """

    epoch: int
    seconds: float | None = None
    train_accuracy: float | None = None
    test_accuracy: float | None = None
    train_loss: float | None = None
    test_loss: float | None = None


@dataclass(frozen=True)
class PublishedRun(Bounded):
    """One published experiment: how its schedule differs from the workload's, and its figures.

    Args:
        precisions: those that its figures apply to; fp32 if empty.
    """

    name: str
    epochs: int | None = None
    steps: int | None = None
    steps_per_epoch: int | None = None
    pytorch_seed: int | None = None
    repeats: Count = 1
    protocol: Protocol = "fresh"
    evaluate: Evaluate | None = None
    only_on: Literal["cpu", "accelerator"] | None = None
    precisions: tuple[str, ...] = ()
    note: str = ""
    values: tuple[PublishedValue, ...] = ()
    timings: tuple[PublishedTiming, ...] = ()
    log: tuple[PublishedEpoch, ...] = ()

    def __post_init__(self) -> None:
        require(
            (self.epochs is None) != (self.steps is None),
            "epochs",
            "either 'epochs' or 'steps'",
            self.epochs,
        )
        one = self.pytorch_seed is None or self.repeats == 1
        require(one, "repeats", "1, since 'pytorch_seed' makes all repeats alike", self.repeats)
        super().__post_init__()


@dataclass(frozen=True)
class Published:
    """Everything that was published about a workload, and where."""

    source: str
    runs: tuple[PublishedRun, ...]
