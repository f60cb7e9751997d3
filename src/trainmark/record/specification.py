"""What readers of a record need of its specification, with types.

The specification itself is kept whole, as plain data: a later trainmark may add keys that this one
doesn't know, and a table of such a record can still be drawn. Whoever needs the workload itself, to
lay out its network or to train again, gets it from :attr:`WorkloadRef.workload`.
"""

from __future__ import annotations

from typing import Annotated, Any, Literal

import msgspec
from msgspec import Meta, Struct, field

from trainmark.workload.schedule import Target

_Count = Annotated[int, Meta(gt=0)]


class InputView(Struct, frozen=True):
    """The network's input.

    Args:
        kind: ``tokens`` for windows of a text.
        length: number of tokens of a window; null for images.
    """

    kind: str | None = None
    length: _Count | None = None

    def __post_init__(self) -> None:
        if self.is_text and self.length is None:
            raise ValueError("an input of tokens needs a length")

    @property
    def is_text(self) -> bool:
        """Whether the examples are windows of a text."""
        return self.kind == "tokens"


class BatchesView(Struct, frozen=True):
    """How the dataset is cut into batches.

    Args:
        size: examples per step; ``full`` is the whole dataset.
    """

    size: _Count | Literal["full"]


class ScheduleView(Struct, frozen=True):
    """How long the training is.

    Args:
        steps: number of steps, if that was requested instead of epochs.
        until: the target at which it may stop.
    """

    steps: _Count | None = None
    until: Target | None = None


class MetricsView(Struct, frozen=True):
    """Which metrics the workload reports.

    Args:
        sample: number of random batches of each evaluation; null if it evaluates everything.
    """

    sample: _Count | None = None


class Specification(Struct, frozen=True):
    """A typed view of a specification.

    Args:
        input: the network's input.
        batches: how the dataset is cut into batches; null for a command.
        schedule: how long the training is.
        metrics: which metrics it reports.
        command: of a command, its words with their placeholders; null for a workload.
    """

    input: InputView = field(default_factory=InputView)
    batches: BatchesView | None = None
    schedule: ScheduleView = field(default_factory=ScheduleView)
    metrics: MetricsView = field(default_factory=MetricsView)
    command: list[str] | None = None


def view_of(spec: dict[str, Any]) -> Specification:
    """Return the typed view of a specification.

    Raises:
        ValueError: a key has a value of another type or out of its bounds.
    """
    try:
        return msgspec.convert(spec, Specification)
    except msgspec.ValidationError as error:
        raise ValueError(f"in its specification: {error}") from error
