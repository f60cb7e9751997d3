"""A multilayer perceptron: flatten, dense and ReLU in any order, softmax cross-entropy at the
end."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from trainmark.workload.layers import Dense, Flatten
from trainmark.workload.model import Model, Weights

Array = NDArray[np.float32]


def forward(model: Model, weights: Weights, x: Array) -> list[Array]:
    """Return the input of every layer and, last, the logits ``[batch, classes]``."""
    values = [x]
    for plan in model.layers:
        if isinstance(plan.layer, Dense):
            x = x @ weights[plan.kernel_name] + weights[plan.bias_name]
        elif isinstance(plan.layer, Flatten):
            x = x.reshape(len(x), -1)
        else:
            x = np.maximum(x, 0)
        values.append(x)
    return values


def backward(model: Model, weights: Weights, values: list[Array], gradient: Array) -> Weights:
    """Return the gradients of all weights, from that of the logits and the result of
    :func:`forward`."""
    gradients: Weights = {}
    for plan, x in zip(reversed(model.layers), reversed(values[:-1]), strict=True):
        if isinstance(plan.layer, Dense):
            kernel = weights[plan.kernel_name]
            gradients[plan.kernel_name] = x.T @ gradient + np.float32(plan.l2) * kernel
            gradients[plan.bias_name] = gradient.sum(axis=0)
            gradient = gradient @ kernel.T
        elif isinstance(plan.layer, Flatten):
            gradient = gradient.reshape(x.shape)
        else:
            gradient = gradient * (x > 0)
    return gradients


def cross_entropy(logits: Array, labels: NDArray[Any]) -> tuple[Array, Array]:
    """Return the loss of each example ``[batch]``, and the gradient of their mean ``[batch,
    classes]``."""
    rows = np.arange(len(labels))
    shifted = logits - logits.max(axis=1, keepdims=True)
    log_p = shifted - np.log(np.exp(shifted).sum(axis=1, keepdims=True))
    gradient = np.exp(log_p)
    gradient[rows, labels] -= 1
    return -log_p[rows, labels], gradient / np.float32(len(labels))
