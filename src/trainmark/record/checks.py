"""Checks of single training steps against the float64 reference."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Literal, get_args

CheckedPart = Literal["input", "forward", "loss", "gradient", "update", "state", "order", "dropout"]
PARTS: tuple[CheckedPart, ...] = get_args(CheckedPart)
"""Parts of a training, in the order of computation: later ones inherit a mistake."""


@dataclass(frozen=True)
class Check:
    """One result of a side next to the reference's.

    Args:
        name: the layer, weight or step; empty for the whole.
        error: the difference, relative to the reference; infinite if a value is not finite.
        bound: how large rounding may make it.
        factor: the side's values as a multiple of the reference's, by least squares; None if not
            computed.
    """

    part: CheckedPart
    name: str
    error: float
    bound: float
    factor: float | None = None

    @property
    def share(self) -> float:
        """The error as a share of its bound; above 1 is a mistake."""
        if not math.isfinite(self.error + self.bound):
            return math.inf
        if not self.error:
            return 0.0
        return self.error / self.bound if self.bound else math.inf * self.error


@dataclass(frozen=True)
class StepChecks:
    """The checks of one step.

    Args:
        step: number of updates before it; None for checks that belong to no single step.
        near_kinks: units within rounding of a kink.
        loss: the side's loss.
        reference_loss: the reference's.
    """

    step: int | None
    checks: tuple[Check, ...]
    near_kinks: int = 0
    loss: float | None = None
    reference_loss: float | None = None
