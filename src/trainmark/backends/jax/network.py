"""The network as a pure function of its weights. JAX computes in the canonical layout, so nothing is transposed."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import jax
import jax.numpy as jnp
from jax import Array, lax

from trainmark.errors import assert_never
from trainmark.workload import layers
from trainmark.workload.model import LayerPlan, Model

Parameters = dict[str, Array]
Network = Callable[[Parameters, Array, Array | None], Array]


def build(model: Model, product_dtype: Any) -> Network:
    """Return a function from weights, inputs ``[batch, ...]`` and a dropout key to outputs ``[batch, classes]``.

    Without a key, dropout is off.

    Args:
        product_dtype: type that the factors of products are rounded to.
    """

    def network(weights: Parameters, x: Array, key: Array | None) -> Array:
        for _, output in outputs(model, product_dtype, weights, x, key):
            x = output
        return x

    return network


def outputs(
    model: Model, product_dtype: Any, weights: Parameters, x: Array, key: Array | None
) -> Iterator[tuple[str, Array]]:
    """Yield the name and the output of each layer."""
    for index, plan in enumerate(model.layers):
        x = _apply(plan, weights, x, None if key is None else jax.random.fold_in(key, index), product_dtype)
        yield plan.name, x


def convolve(padding: list[tuple[int, int]], x: Array, kernel: Array) -> Array:
    """Convolve ``[batch, height, width, in]`` with ``[size, size, in, out]``, stride 1.

    Args:
        padding: zeros to add before and after, for rows and for columns.
    """
    return lax.conv_general_dilated(x, kernel, (1, 1), padding, dimension_numbers=("NHWC", "HWIO", "NHWC"))


def _apply(plan: LayerPlan, weights: Parameters, x: Array, key: Array | None, product_dtype: Any) -> Array:
    match layer := plan.layer:
        case layers.Dense():
            kernel, bias = weights[plan.kernel_name].astype(product_dtype), weights[plan.bias_name]
            return jnp.matmul(x.astype(product_dtype), kernel, preferred_element_type=x.dtype) + bias
        case layers.Conv2D():
            kernel, bias = weights[plan.kernel_name].astype(product_dtype), weights[plan.bias_name]
            padding = [layers.padding_of(layer.size, 1, width, layer.padding) for width in x.shape[1:3]]
            return convolve(padding, x.astype(product_dtype), kernel).astype(x.dtype) + bias
        case layers.MaxPool():
            padding = [layers.padding_of(layer.size, layer.stride, width, layer.padding) for width in x.shape[1:3]]
            window, strides = (1, layer.size, layer.size, 1), (1, layer.stride, layer.stride, 1)
            return lax.reduce_window(x, -jnp.inf, lax.max, window, strides, ((0, 0), *padding, (0, 0)))
        case layers.LocalResponseNorm():
            ones, radius = (1,) * x.ndim, layer.radius
            around = (*((0, 0) for _ in x.shape[1:]), (radius, radius))
            total = lax.reduce_window(x * x, 0.0, lax.add, (*ones[1:], 2 * radius + 1), ones, around)
            return x / (layer.bias + layer.alpha * total) ** layer.beta
        case layers.ReLU():
            return jax.nn.relu(x)
        case layers.Dropout():
            return _dropped(x, layer.rate, x.shape, key)
        case layers.ChannelDropout():
            return _dropped(x, layer.rate, (x.shape[0], 1, 1, x.shape[-1]), key)
        case layers.Flatten():
            return x.reshape(x.shape[0], -1)
        case layers.LogSoftmax():
            return jax.nn.log_softmax(x)
        case _:
            assert_never(layer)


def _dropped(x: Array, rate: float, shape: tuple[int, ...], key: Array | None) -> Array:
    if key is None or not rate:
        return x
    return jnp.where(jax.random.bernoulli(key, 1 - rate, shape), x / (1 - rate), 0)
