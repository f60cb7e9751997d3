"""What a step of JAX computes."""

from __future__ import annotations

import math
from collections.abc import Collection
from typing import Any

from .calls import Call, at, rows
from .moved import Moved
from .trials import Trials


class Weights:
    """Stands for the weights of a training, which several functions may change."""


class Training:
    """What a step computes.

    Args:
        loss: position of the loss among the results.
        batch: position of the batch among the arguments.
        trials: tells where trainings begin.
        weights: stands for its weights.
        moved: tells which calls are steps, if the weights are changed outside of them.

    Attributes:
        weight: position of a weight among the results of the step.
        positions: those of all weights, and of other arrays that the next step is given.
    """

    def __init__(
        self,
        loss: int | None,
        batch: int | None,
        trials: Trials,
        weights: Weights,
        moved: Moved | None = None,
    ) -> None:
        self._loss = loss
        self._batch = batch
        self.trials = trials
        self.weights = weights
        self.moved = moved
        self.loss: Any = None
        self.examples: int | None = None
        self.weight: int | None = None
        self.positions: list[int] = []

    def called(self, given: list[Any], returned: list[Any]) -> None:
        """Keep loss and number of examples of a call."""
        self.loss = at(returned, self._loss)
        self.examples = rows(at(given, self._batch))

    def weights_among(self, returned: list[Any]) -> list[Any]:
        """Return the weights among the results of a step."""
        return [returned[at] for at in self.positions if at < len(returned)]

    def called_earlier(self, call: Call) -> None:
        """Keep those of an earlier call."""
        self.loss = self.loss_of(call)
        self.examples = self.examples_of(call)

    def loss_of(self, call: Call) -> Any:
        """Return the loss of an earlier call."""
        return None if self._loss is None else call.losses.get(self._loss)

    def examples_of(self, call: Call) -> int | None:
        """Return the number of examples of an earlier call."""
        found: int | None = at(call.examples, self._batch)
        return found


def batch_of(
    sizes: list[tuple[int, tuple[int, ...]]],
    state: Collection[int],
    weights: Collection[tuple[int, ...]],
) -> int | None:
    """Return the position of the batch: the largest argument that is no weight.

    Args:
        sizes: id and shape of each argument.
        state: ids of arguments that are the function's own results.
        weights: shapes of weights; other networks, such as a target network, have the same.
    """
    batches = [
        (math.prod(shape), -position)
        for position, (key, shape) in enumerate(sizes)
        if shape and key not in state and shape not in weights
    ]
    return -max(batches)[1] if batches else None
