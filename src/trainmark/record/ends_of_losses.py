"""The loss of a command in the beginning and at the end of its training."""

from __future__ import annotations

import math
from collections.abc import Sequence

from trainmark.record.record import Epoch

_SHARE = 5
"""The ends of the losses of steps are this part of them, at either end."""


def ends_of_losses(
    epochs: Sequence[Epoch], losses: Sequence[float], training_starts: Sequence[int] = ()
) -> tuple[float, float] | None:
    """Return the loss in the beginning and at the end; None with too few losses.

    They are those of the first and the last epoch, or else the means of a fifth of the steps.

    Args:
        epochs: the reported epochs.
        losses: the observed losses of steps.
        training_starts: number of steps before each training; only the first one counts.
    """
    of_epochs = [epoch.train_loss for epoch in epochs if epoch.train_loss is not None]
    if len(of_epochs) >= 2:
        return of_epochs[0], of_epochs[-1]
    of_steps = losses[: training_starts[1]] if len(training_starts) > 1 else losses
    part = len(of_steps) // _SHARE
    if not part:
        return None
    return math.fsum(of_steps[:part]) / part, math.fsum(of_steps[-part:]) / part
