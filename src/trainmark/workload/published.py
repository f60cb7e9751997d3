"""What was published about a workload: the exact protocol, the figures, and how near a faithful re-run must come."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Literal

from trainmark.workload.decode import Bounded, Count, require
from trainmark.workload.schedule import Evaluate, Protocol

Quantity = Literal["train_loss", "train_accuracy", "test_loss", "test_accuracy", "step_loss", "step_l2_loss"]
Timing = Literal["epoch_seconds", "training_seconds", "samples_per_second"]


@dataclass(frozen=True)
class PublishedValue:
    """One figure that a re-run is judged by: it agrees when it lies in ``[low, high]``.

    Without ``epochs`` and ``steps`` the value at the end of a run is meant; without ``repeat`` the median over repeats.

    Args:
        value: as printed; the string ``nan`` where the published run failed; None where only bounds are known.
        device: the kind of device it was printed for, or None where it is not tied to one.
        epochs: first and last epoch, from 1, whose mean is meant.
        steps: first, last and distance of the steps, from 0, whose mean is meant.
        repeat: which repeat, from 1.
        needs_whole_dataset: the tolerance does not hold for a part of the dataset.
    """

    quantity: Quantity
    value: float | Literal["nan"] | None = None
    low: float | None = None
    high: float | None = None
    device: Literal["cpu", "gpu"] | None = None
    epochs: tuple[int, int] | None = field(default=None, metadata={"places": "[first, last]"})
    steps: tuple[int, int, int] | None = field(default=None, metadata={"places": "[first, last, every]"})
    repeat: int | None = None
    needs_whole_dataset: bool = False

    @property
    def where(self) -> str:
        """Where in a run the value applies, for the user."""
        if self.epochs is not None:
            first, last = self.epochs
            return f"epoch {first}" if first == last else f"mean of epochs {first} to {last}"
        if self.steps is not None:
            first, last, every = self.steps
            return f"step {first}" if first == last else f"mean of steps {first} to {last}, every {every}"
        return "end"


@dataclass(frozen=True)
class PublishedTiming:
    """One published duration or rate. It is shown next to the measured one and never judged: the hardware differs."""

    quantity: Timing
    value: float
    device: Literal["cpu", "gpu"]
    hardware: str
    includes: str


@dataclass(frozen=True)
class PublishedEpoch:
    """One line of a published log, as printed; seconds as the log counted them."""

    epoch: int
    seconds: float
    train_accuracy: float
    test_accuracy: float
    train_loss: float | None = None
    test_loss: float | None = None


@dataclass(frozen=True)
class PublishedRun(Bounded):
    """One published experiment: the schedule where it differs from the workload's own, and its figures."""

    name: str
    epochs: int | None = None
    steps: int | None = None
    repeats: Count = 1
    protocol: Protocol = "fresh"
    evaluate: Evaluate | None = None
    only_on: Literal["cpu", "accelerator"] | None = None
    note: str = ""
    values: tuple[PublishedValue, ...] = ()
    timings: tuple[PublishedTiming, ...] = ()
    log: tuple[PublishedEpoch, ...] = ()

    def __post_init__(self) -> None:
        require((self.epochs is None) != (self.steps is None), "epochs", "either 'epochs' or 'steps'", self.epochs)
        super().__post_init__()


@dataclass(frozen=True)
class Published:
    """All that was published about a workload, and where."""

    source: str
    runs: tuple[PublishedRun, ...]
