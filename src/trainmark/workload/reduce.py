"""Reduced variants of a workload, for measuring what the removed part costs."""

from __future__ import annotations

import dataclasses

from trainmark.workload.layers import ChannelDropout, Conv2D, Dense, Dropout, Layer, LocalResponseNorm, MaxPool, ReLU
from trainmark.workload.model import lay_out
from trainmark.workload.spec import Workload

_ELEMENTWISE = (ReLU, Dropout, ChannelDropout, LocalResponseNorm)
"""Layers that read and write every value but compute little; removing them does not change the shapes."""


def shrunk(workload: Workload) -> Workload:
    """Keep the number of operations but make each tiny: one example per step, one unit or filter per layer."""
    weighted = [index for index, layer in enumerate(workload.model) if isinstance(layer, (Dense, Conv2D))]
    last = max(weighted, default=None)  # its width is the number of classes
    model = tuple(layer if index == last else _narrow(layer) for index, layer in enumerate(workload.model))
    return dataclasses.replace(with_batch(workload, 1), model=model)


def without_elementwise(workload: Workload) -> Workload:
    """Keep only products and convolutions; pooling becomes subsampling if the shapes allow it."""
    kept = tuple(layer for layer in workload.model if not isinstance(layer, _ELEMENTWISE))
    with_pooling = dataclasses.replace(workload, model=kept)
    unpooled = (dataclasses.replace(layer, size=1) if isinstance(layer, MaxPool) else layer for layer in kept)
    plain = dataclasses.replace(workload, model=tuple(unpooled))
    return plain if lay_out(plain).training_flops == lay_out(workload).training_flops else with_pooling


def without_distortions(workload: Workload) -> Workload:
    """Return the workload with the same images in every epoch."""
    return dataclasses.replace(workload, input=dataclasses.replace(workload.input, distortions=None))


def without_chance(workload: Workload) -> Workload:
    """Return the workload without dropout and distortions, evaluated only at the end."""
    plain = dataclasses.replace(
        workload.deterministic(), metrics=dataclasses.replace(workload.metrics, train="running"), published=None
    )
    return plain.with_schedule(evaluate="end", protocol="fresh")


def with_batch(workload: Workload, size: int) -> Workload:
    """Return the workload with ``size`` examples per step; drops a smaller batch at the end of a pass."""
    return dataclasses.replace(workload, batches=dataclasses.replace(workload.batches, size=size, last="drop"))


def _narrow(layer: Layer) -> Layer:
    if isinstance(layer, Dense):
        return dataclasses.replace(layer, units=1)
    if isinstance(layer, Conv2D):
        return dataclasses.replace(layer, filters=1)
    return layer
