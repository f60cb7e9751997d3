"""Ablation of a training step, for ``trainmark explain``.

The parts, in the order in which they are removed, each in addition to the previous ones:

``fetch``: reading a result on the host before the end of the epoch, which makes the host wait for
the device. ``input``: making a batch. Every step uses one that was made before, on the host if
batches are made there. (Not the distortions of a workload, which are better removed from the
workload.) ``copy``: copying the batch to the device. It is already there; omitting this also omits
``input``. ``optimizer``: the update of weights, states and averages. All gradients are still
computed. ``loss``: the loss of the workload. The mean of all outputs replaces it; its gradient
costs almost nothing and goes back through the same layers.
"""

from __future__ import annotations

from typing import Protocol, get_args, runtime_checkable

from trainmark.backends.base import Options, StepPart
from trainmark.workload.losses import Loss
from trainmark.workload.spec import Workload

PARTS: tuple[StepPart, ...] = get_args(StepPart)


@runtime_checkable
class Separable(Protocol):
    """A backend with trainers that honour :attr:`Options.without`; optional for plug-ins."""

    def parts(self, options: Options) -> frozenset[StepPart]:
        """Return the parts of a step that a trainer with these options has and can omit."""


def loss_left(workload: Workload, options: Options) -> Loss | None:
    """Return the loss to train on.

    The result is None if it is omitted and the mean of all outputs replaces it.
    """
    return None if "loss" in options.without else workload.loss
