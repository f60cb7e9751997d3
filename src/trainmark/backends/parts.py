"""Steps without one of their parts, for ``trainmark explain``.

In the order in which they are taken away, each from what is left of the step:

``fetch``: reading a result on the host before the epoch is over, which makes the host wait for the device.
``input``: making a batch. Every step takes one that was made before, on the host where batches are made there. (Not
the distortions of a workload, which are best left out of the workload itself.)
``copy``: bringing the batch to the device. It lies there already; leaving this out leaves out ``input``, too.
``optimizer``: the update of weights, states and averages. The gradients are still computed, all of them.
``loss``: what the workload learns from. In its place stands the mean of all outputs, whose gradient costs next to
nothing and goes back through the same layers.
"""

from __future__ import annotations

from typing import Protocol, get_args, runtime_checkable

from trainmark.backends.base import Options, Part
from trainmark.workload.losses import Loss
from trainmark.workload.spec import Workload

PARTS: tuple[Part, ...] = get_args(Part)


@runtime_checkable
class Separable(Protocol):
    """A backend whose trainers honour :attr:`Options.without`; optional for plug-ins."""

    def parts(self, options: Options) -> frozenset[Part]:
        """The parts of a step that a trainer with these options has and can omit."""


def loss_left(workload: Workload, options: Options) -> Loss | None:
    """The loss to learn from; None if it is omitted and the mean of all outputs replaces it."""
    return None if "loss" in options.without else workload.loss
