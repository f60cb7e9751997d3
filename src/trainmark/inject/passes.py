"""Forward passes in training mode without a backward pass: an evaluation, or a part of a step.

Many scripts never set their network to evaluation mode, some never turn gradients off, and others
compute without gradients as a part of training, as to collect what they learn from. What the passes
read tells the difference.
"""

from __future__ import annotations

import weakref
from collections.abc import Callable
from types import FrameType
from typing import Any, NamedTuple

from .amounts import Since
from .places import users_place


def _nothing() -> Any:
    return None


class TrainingData:
    """The tensor that all steps are computed from, if there is one.

    A script without a loader may compute each step from the same tensor, or from parts of it.
    """

    def __init__(self) -> None:
        self._data: Callable[[], Any] = _nothing
        self._is_repeated = False

    def trained_on(self, data: object) -> None:
        """A step is computed from this tensor, or from a part of it."""
        self._is_repeated = self._data() is data
        if not self._is_repeated:
            self._data = weakref.ref(data)

    def is_other(self, data: object) -> bool:
        """Whether all steps are computed from a tensor, and this is another one."""
        training = self._data()
        is_known = training is not None and data is not None
        return is_known and self._is_repeated and training is not data


class Passes:
    """Forward passes without gradients in training mode, since the last ones with gradients.

    Args:
        began: when the first one began.

    Attributes:
        source: number of a loader that no step has read, from which some of them come; else 0.
        since: what was added up until the last of these.
        opened: when that loader was opened.
        place: where the first of these is.
    """

    def __init__(self, began: float) -> None:
        self.began = began
        self.source = 0
        self.since = Since()
        self.opened = began
        self.place = ""
        self._number = 0
        self._data: Callable[[], Any] = _nothing

    def read(self, data: object, place: str) -> None:
        """One of them has read a tensor that no step is computed from, or something else.

        Args:
            data: the tensor; None for something else.
            place: where that was.
        """
        self.place = self.place or place
        self._number += 1
        if self._number == 1 and data is not None:
            self._data = weakref.ref(data)
        elif self._data() is not data:
            self._data = _nothing

    @property
    def are_held_out(self) -> bool:
        """Whether all of them read one tensor that no step is computed from and that still exists.

        What an agent sees, or what a network draws, changes from pass to pass, and is soon gone.
        """
        return self._data() is not None


class Prediction(NamedTuple):
    """Forward passes with gradients between two steps.

    Args:
        began: when the first of them began.
        ended: when the batch of the next step was asked for.
        place: where the first of them is, as ``file:line``.
    """

    began: float
    ended: float
    place: str


class Predictions:
    """Forward passes with gradients that no loss follows, where a loader delivers the batches.

    They come before the batch of the next step is asked for, which has a forward pass, too. Without
    the latter, the batch was only asked for ahead. What every step does is a part of the step.
    """

    def __init__(self) -> None:
        self._began = 0.0
        self._place = ""
        self._steps = -1
        self._steps_before = -1
        self._found: Prediction | None = None

    def passed(self, now: float, steps: int, frame: FrameType) -> None:
        """A pass begins before a batch is asked for, after a number of steps."""
        if self._began:
            return
        if steps != self._steps:
            self._steps_before = self._steps
            self._steps = steps
        is_usual = self._steps_before == steps - 1
        if not is_usual:
            self._began = now
            self._place = users_place(frame) or ""

    def fetches(self, now: float) -> None:
        """A batch for a step is asked for."""
        if self._began:
            self._found = Prediction(self._began, now, self._place)
            self._began = 0.0

    def found(self) -> Prediction | None:
        """Return what came before this pass, which has a batch; None if it was no prediction."""
        found = self._found
        self.forget()
        return found

    def forget(self) -> None:
        """A loss is differentiated, or a step has ended."""
        self._began = 0.0
        self._found = None
