"""Inspect every tensor of one training step on NumPy, to find the first that is not finite."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from trainmark.backends.numpy import layers, losses
from trainmark.record.inspection import Tensor, TensorKind
from trainmark.workload.model import Model, Weights
from trainmark.workload.spec import Workload

_ENOUGH = 32


@dataclass(frozen=True)
class StepTensors:
    """The tensors of one step.

    Args:
        tensors: in the order of computation.
        losses: loss of each example.
        gap: the largest difference between the largest and the true logit; None if a logit is not
            finite.
    """

    tensors: tuple[Tensor, ...]
    losses: NDArray[np.float64]
    gap: float | None


def inspect_step(
    workload: Workload, model: Model, weights: Weights, x: NDArray[Any], labels: NDArray[np.uint8]
) -> StepTensors:
    """Run a step of ``workload``, which has no dropout, from ``weights`` on a batch, in float32.

    Args:
        x: what the network takes, as :func:`~trainmark.workload.pixels.prepare` makes it.
        labels: true classes, ``[batch]``, or tokens, ``[batch, length]``.
    """
    with np.errstate(all="ignore"):
        tensors, each, logits = _step(workload, model, weights, x, labels.astype(np.int64))
    gap = None
    if len(labels) and np.isfinite(logits).all():
        true = np.take_along_axis(logits, labels[..., None].astype(np.int64), axis=-1)
        gap = float((logits.max(axis=-1, keepdims=True) - true).max())
    return StepTensors(tuple(tensors), each.astype(np.float64), gap)


def _step(
    workload: Workload, model: Model, weights: Weights, x: NDArray[Any], labels: NDArray[np.int64]
) -> tuple[list[Tensor], NDArray[Any], NDArray[Any]]:
    own: layers.Parameters = {name: value.astype(np.float32) for name, value in weights.items()}
    gradients: layers.Parameters = {}
    modules = [
        layers.build(plan, own, gradients, np.random.default_rng(0)) for plan in model.layers
    ]
    found = [
        _tensor("input", "images", x),
        *(_tensor("weight", name, value) for name, value in own.items()),
    ]
    # The last output is kept
    for plan, x in layers.outputs(model.layers, modules, x, True):  # noqa: B020
        last = plan is model.layers[-1]
        dead = _dead(x) if plan.layer.kind == "relu" else None
        found.append(_tensor("logit" if last else "activation", plan.name, x, dead))
    each, gradient = losses.loss_and_gradient(workload.loss, x, labels)
    found += [
        _tensor("loss", workload.loss.kind, each),
        _tensor("gradient", f"{model.layers[-1].name} (output)", gradient),
    ]
    for plan, module in reversed(
        list(zip(model.layers, modules, strict=True))[model.first_weighted :]
    ):
        known = set(gradients)
        gradient = module.backward(gradient)
        found += [
            _tensor("gradient", name, value)
            for name, value in gradients.items()
            if name not in known
        ]
        if gradient.size:
            found.append(_tensor("gradient", f"{plan.name} (input)", gradient))
    return found, each, x


def _dead(x: NDArray[Any]) -> float | None:
    """Return the share of units or filters that are 0 everywhere.

    The result is None with too few values per unit to say so.
    """
    each = x.reshape(-1, x.shape[-1])
    return float((each <= 0).all(axis=0).mean()) if len(each) >= _ENOUGH else None


def _tensor(kind: TensorKind, name: str, values: NDArray[Any], dead: float | None = None) -> Tensor:
    finite = np.isfinite(values)
    largest = float(np.abs(values[finite]).max()) if finite.any() else 0.0
    return Tensor(kind, name, bool(finite.all()), largest, float((values == 0).mean()), dead)
