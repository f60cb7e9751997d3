"""The least that one training step must move through memory, from the specification alone: two bounds, in bytes."""

from __future__ import annotations

import math

from trainmark.errors import assert_never
from trainmark.workload.model import LayerPlan, Model
from trainmark.workload.optimizers import SGD, Adam, Optimizer, RMSprop

FLOAT32_BYTES = 4


def states(optimizer: Optimizer) -> int:
    """State arrays a parameter."""
    match optimizer:
        case SGD():
            return int(optimizer.momentum > 0)
        case Adam():
            return 2
        case RMSprop():
            return 1
        case _:
            assert_never(optimizer)


def compulsory(model: Model, optimizer: Optimizer, batch: float, value_bytes: int = FLOAT32_BYTES) -> float:
    """Bound A: the batch is read once; parameters and their states are read once and written once."""
    updated = 2 + 2 * states(optimizer)
    return value_bytes * (batch * math.prod(model.input_shape) + model.parameters * updated)


def layer_by_layer(model: Model, optimizer: Optimizer, batch: float, value_bytes: int = FLOAT32_BYTES) -> float:
    """Bound B: nothing stays in the cache from one product to the next; element-wise work is fused for free.

    Of every layer with weights ``W`` the forward pass moves ``X, W, Y``, the gradient of the weights ``X, dY, dW``,
    the gradient of the input (but of the first) ``dY, W, dX``, and the update ``dW``, ``W`` and the states twice.
    """
    moved = sum(_layer(plan, batch, first=not index) for index, plan in enumerate(model.weighted_layers))
    return value_bytes * (moved + model.parameters * (3 + 2 * states(optimizer)))


def _layer(plan: LayerPlan, batch: float, *, first: bool) -> float:
    x, y = batch * math.prod(plan.input_shape), batch * math.prod(plan.output_shape)
    return 2 * (x + y + plan.parameters) + (0 if first else x + y + plan.parameters)
