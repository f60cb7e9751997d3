"""The number of steps, their order, and the evaluations between them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from trainmark.errors import SpecError
from trainmark.workload.decode import require

Protocol = Literal["fresh", "continued"]
Evaluate = Literal["every-epoch", "end"]
Shuffle = Literal["every-epoch", "once", "never", "with-replacement"]


Quantity = Literal["test_accuracy", "train_accuracy", "test_loss", "train_loss"]


@dataclass(frozen=True)
class Target:
    """Where a run may stop, after an epoch.

    It needs an accuracy of at least ``bound``, or a loss of at most that.
    """

    quantity: Quantity
    bound: float

    def __post_init__(self) -> None:
        if self.is_accuracy:
            require(0 <= self.bound <= 1, "bound", "a fraction from 0 to 1", self.bound)

    @property
    def is_accuracy(self) -> bool:
        """Whether higher is better."""
        return self.quantity.endswith("accuracy")

    def met_by(self, value: float | None) -> bool:
        """Whether ``value`` reaches it; an unknown value or NaN does not."""
        if value is None:
            return False
        return value >= self.bound if self.is_accuracy else value <= self.bound

    def __str__(self) -> str:
        return f"{self.quantity}{'>=' if self.is_accuracy else '<='}{self.bound:g}"


MOST_STEPS = 10**7
"""Most steps of a run."""
_MOST = {
    "epochs": 10**6,
    "steps": MOST_STEPS,
    "steps_per_epoch": MOST_STEPS,
    "dataset_repeats": MOST_STEPS,
}
"""Largest lengths of a schedule; more is probably a typing error and would fill the memory."""


@dataclass(frozen=True)
class Schedule:
    """How long one run trains, and when it evaluates.

    Args:
        epochs: passes over the dataset; time is read at the start and end of each.
        steps: stop after this many steps in total, if necessary in the middle of an epoch; None
            runs all epochs.
        steps_per_epoch: end each epoch after this many steps; None uses the whole dataset.
        shuffle: order of the training examples; ``once`` draws one order and keeps it,
            ``with-replacement`` draws each example anew from all.
        dataset_repeats: how often an epoch passes over the dataset.
        evaluate: evaluate after every epoch, or once at the end of a run.
        protocol: ``fresh`` starts every repeat from new weights; ``continued`` keeps the weights
            and rebuilds the optimiser.
        until: stop after the first epoch that reaches this; ``epochs`` and ``steps`` are then upper
            limits.
        pytorch_seed: draw weights and windows as nanoGPT does after ``torch.manual_seed`` with this
            seed; None draws them from the run's seed.
    """

    epochs: int
    steps: int | None = None
    steps_per_epoch: int | None = None
    shuffle: Shuffle = "every-epoch"
    dataset_repeats: int = 1
    evaluate: Evaluate = "every-epoch"
    protocol: Protocol = "fresh"
    until: Target | None = None
    pytorch_seed: int | None = None

    def __post_init__(self) -> None:
        for field, most in _MOST.items():
            value = getattr(self, field)
            require(value is None or value > 0, field, "a whole number above 0", value)
            require(value is None or value <= most, field, f"at most {most:,}", value)
        seed = self.pytorch_seed
        require(
            seed is None or 0 <= seed < 1 << 32,
            "pytorch_seed",
            "a whole number from 0 to 4,294,967,295",
            seed,
        )
        evaluates = self.until is None or self.evaluate == "every-epoch"
        require(
            evaluates,
            "evaluate",
            "'every-epoch', since the schedule has a target ('until')",
            self.evaluate,
        )


@dataclass(frozen=True)
class Batches:
    """How a dataset is cut into batches.

    Args:
        size: examples per step; ``full`` is the whole dataset.
        last: whether a smaller batch at the end of a pass is kept or dropped.
    """

    size: int | Literal["full"]
    last: Literal["keep", "drop"] = "keep"

    def __post_init__(self) -> None:
        require(
            self.size == "full" or self.size > 0,
            "size",
            "a whole number above 0, or 'full'",
            self.size,
        )

    def sizes(self, examples: int) -> tuple[int, ...]:
        """Return the size of each batch of one pass over ``examples``."""
        if self.size == "full":
            return (examples,)
        whole, rest = divmod(examples, self.size)
        return (self.size,) * whole + ((rest,) if rest and self.last == "keep" else ())


@dataclass(frozen=True)
class Metrics:
    """Which metrics of its training the workload reports.

    Args:
        train: ``running`` averages the batches of an epoch, each before its update and with
            dropout; ``exact`` evaluates the whole training set.
        loss_includes_l2: whether the reported training loss includes the layers' L2 terms.
        sample: random batches that each evaluation draws from a split; None evaluates all of it.
        before: whether to evaluate the initial weights, too.
    """

    train: Literal["running", "exact"] = "running"
    loss_includes_l2: bool = False
    sample: int | None = None
    before: bool = False

    def __post_init__(self) -> None:
        require(
            self.sample is None or self.sample > 0, "sample", "a whole number above 0", self.sample
        )


def epoch_sizes(schedule: Schedule, batches: Batches, examples: int) -> tuple[tuple[int, ...], ...]:
    """Return the batch sizes of one run, as ``[epoch][step]``.

    Raises SpecError for too many steps.
    """
    one_pass = batches.sizes(examples)
    if len(one_pass) * schedule.dataset_repeats > MOST_STEPS:
        raise SpecError(
            "an epoch has too many steps",
            expected=f"at most {MOST_STEPS:,}",
            found=f"{schedule.dataset_repeats:,} times {len(one_pass):,}",
        )
    epoch = (one_pass * schedule.dataset_repeats)[: schedule.steps_per_epoch]
    if not epoch:
        return ()
    if schedule.steps is None:
        return (epoch,) * schedule.epochs
    whole, rest = divmod(schedule.steps, len(epoch))
    return (epoch,) * whole + ((epoch[:rest],) if rest else ())
