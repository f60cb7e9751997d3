"""The network as a pure function of its weights. JAX computes in the canonical layout, so nothing is transposed."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
from jax import Array

from trainmark.backends.jax.chance import Masks
from trainmark.backends.jax.convolution import Convolve
from trainmark.workload.layers import (
    ChannelDropout,
    Conv2D,
    Dense,
    Dropout,
    LocalResponseNorm,
    LogSoftmax,
    MaxPool,
    ReLU,
    padding_of,
)
from trainmark.workload.model import LayerPlan, Model

Parameters = dict[str, Array]
Network = Callable[[Parameters, Array, Masks | None], Array]


def build(model: Model, product_dtype: Any, convolve: Convolve) -> Network:
    """A function of weights, inputs ``[batch, ...]`` and masks (None turns dropout off) to ``[batch, classes]``.

    Args:
        product_dtype: what the factors of products are rounded to.
        convolve: one of :mod:`trainmark.backends.jax.convolution`.
    """

    def network(weights: Parameters, x: Array, masks: Masks | None) -> Array:
        for index, plan in enumerate(model.layers):
            x = _apply(index, plan, weights, x, masks, product_dtype, convolve)
        return x

    return network


def _apply(
    index: int,
    plan: LayerPlan,
    weights: Parameters,
    x: Array,
    masks: Masks | None,
    product_dtype: Any,
    convolve: Convolve,
) -> Array:
    layer = plan.layer
    if isinstance(layer, Dense):
        kernel, bias = weights[plan.kernel_name], weights[plan.bias_name]
        product = jnp.matmul(x.astype(product_dtype), kernel.astype(product_dtype), preferred_element_type=x.dtype)
        return product + bias
    if isinstance(layer, Conv2D):
        kernel, bias = weights[plan.kernel_name], weights[plan.bias_name]
        padding = [padding_of(layer.size, 1, width, layer.padding) for width in x.shape[1:3]]
        return convolve(x.astype(product_dtype), kernel.astype(product_dtype), padding).astype(x.dtype) + bias
    if isinstance(layer, MaxPool):
        return _pooled(layer, x)
    if isinstance(layer, LocalResponseNorm):
        return _normalized(layer, x)
    if isinstance(layer, ReLU):
        return jax.nn.relu(x)
    if isinstance(layer, LogSoftmax):
        return jax.nn.log_softmax(x)
    if isinstance(layer, (Dropout, ChannelDropout)):
        if masks is None or not layer.rate:
            return x
        shape = (x.shape[0], 1, 1, x.shape[-1]) if isinstance(layer, ChannelDropout) else x.shape
        return x * masks(index, shape, layer.rate, x.dtype)
    return x.reshape(x.shape[0], -1)  # flatten


def _normalized(layer: LocalResponseNorm, x: Array) -> Array:
    channels, width = x.shape[-1], 2 * layer.radius + 1
    squares = jnp.pad(x * x, ((0, 0),) * (x.ndim - 1) + ((layer.radius, layer.radius),))
    total = sum((squares[..., first : first + channels] for first in range(width)), jnp.zeros((), x.dtype))
    return x / (layer.bias + layer.alpha * total) ** layer.beta


def _pooled(layer: MaxPool, x: Array) -> Array:
    """The largest of each window, as a chain of comparisons between shifted views.

    XLA's own window maximum has a gradient (select-and-scatter) that is many times slower on a CPU. Among equals the
    first wins, there as here.
    """
    (top, bottom), (left, right) = (padding_of(layer.size, layer.stride, w, layer.padding) for w in x.shape[1:3])
    x = jnp.pad(x, ((0, 0), (top, bottom), (left, right), (0, 0)), constant_values=-jnp.inf)
    rows, columns = ((width - layer.size) // layer.stride * layer.stride + 1 for width in x.shape[1:3])
    largest = None
    for row in range(layer.size):
        for column in range(layer.size):
            view = x[:, row : row + rows : layer.stride, column : column + columns : layer.stride]
            largest = view if largest is None else jnp.where(view > largest, view, largest)
    assert largest is not None
    return largest
