"""Set and read what a step changes, for ``trainmark parity``.

With it, a step is compared from any state, so that rounding can't grow from step to step. Optional
for plug-ins.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Protocol, runtime_checkable

import numpy as np
from numpy.typing import NDArray

Arrays = Mapping[str, NDArray[Any]]
"""Arrays by name of the weight, or of the layer, in canonical layout, in the trainer's own
precision."""


@dataclass(frozen=True)
class State:
    """Everything that a step changes.

    Args:
        weights: the weights.
        slots: the optimiser's arrays, by name of the slot
            (:func:`trainmark.workload.optimizers.slots_of`).
        average: the averaged weights; empty if the workload keeps none.
        step: number of updates so far.
    """

    weights: Arrays
    slots: Mapping[str, Arrays] = field(default_factory=dict)
    average: Arrays = field(default_factory=dict)
    step: int = 0


@runtime_checkable
class Stepwise(Protocol):
    """A trainer whose state can be set and read."""

    def set_state(self, state: State) -> None:
        """Continue from a state; the next step is ``state.step``, counted from 0.

        Args:
            state: values that the trainer's precision represents exactly.
        """

    def state(self) -> State:
        """Copy the current state to the host.

        Returns:
            Arrays that further training does not change.
        """

    def gradients(self) -> Arrays:
        """Copy the gradients of the last step, L2 terms included and weight decay not, to the host.

        They are kept with :attr:`trainmark.backends.base.Options.keeps_gradients`.

        Returns:
            Arrays like the weights.
        """

    def activations(self, examples: NDArray[np.int64], *, training: bool) -> Arrays:
        """Compute the output of every layer for training examples.

        The examples are prepared as the training prepares them.

        Args:
            examples: indices of the examples, none of which is distorted.
            training: whether dropout is on.

        Returns:
            ``input``, then each layer's output by its name.
        """
