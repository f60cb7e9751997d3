"""Start a training again in the same process, as if nothing had been trained before.

The sides of a comparison first train a few slices, to compare their speed, and then the whole
training. Starting a framework can take more than ten seconds, so both happen in one process.
Optional: without it, the worker makes a new trainer, which compiles again.
"""

from __future__ import annotations

from typing import Protocol, runtime_checkable

from trainmark.workload.model import Weights


@runtime_checkable
class Restartable(Protocol):
    """A trainer that can start again."""

    def restart(self, weights: Weights) -> None:
        """Set the weights, make a new optimiser, and restore the random numbers.

        Their state becomes that after the first ``load``.

        Compiled code stays valid.

        Args:
            weights: arrays by name, in canonical layout.
        """
