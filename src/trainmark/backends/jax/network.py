"""The network as a pure function of its weights.

JAX computes in the canonical layout, so nothing is transposed.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any

import jax
import jax.numpy as jnp
from jax import Array, lax

from trainmark.errors import assert_never
from trainmark.workload import layers
from trainmark.workload.model import LayerPlan, Model

Parameters = dict[str, Array]
"""Weights, or arrays that belong to some or all of them, by the keys of the weights."""
Attend = Callable[[Array, Array, Array], Array]
"""Causal attention without dropout, of queries, keys and values ``[batch, length, heads,
width]``."""


class Network:
    """A function of all weights, inputs ``[batch, ...]`` and a dropout key.

    Without a key, dropout is off and batch norm uses its running averages.

    Args:
        product_dtype: type that the factors of products are rounded to.
        attend: computes attention without dropout.
    """

    def __init__(self, model: Model, product_dtype: Any, attend: Attend | None = None) -> None:
        self._plans = model.layers
        self._product_dtype = product_dtype
        self._attend = attend or _attended
        self._numbers = {plan.name: number for number, plan in enumerate(model.every_layer)}

    def __call__(
        self, weights: Parameters, x: Array, key: Array | None
    ) -> tuple[Array, Parameters]:
        """Return outputs ``[batch, ..., classes]`` and, in training, the new running averages."""
        running: Parameters = {}
        for _, output in self.outputs(weights, x, key, running):
            x = output
        return x, running

    def outputs(
        self, weights: Parameters, x: Array, key: Array | None, running: Parameters
    ) -> Iterator[tuple[str, Array]]:
        """Yield the name and the output of each layer; put new running averages in ``running``."""
        return self._run(self._plans, weights, x, key, running)

    def _run(
        self,
        plans: Sequence[LayerPlan],
        weights: Parameters,
        x: Array,
        key: Array | None,
        running: Parameters,
    ) -> Iterator[tuple[str, Array]]:
        for plan in plans:
            if isinstance(plan.layer, layers.Residual):
                y = other = x
                for name, y in self._run(plan.body, weights, x, key, running):
                    yield name, y
                for name, other in self._run(plan.shortcut, weights, x, key, running):
                    yield name, other
                x = y + other
            else:
                x = self._apply(plan, weights, x, key, running)
            yield plan.name, x

    def _apply(  # noqa: C901  (one case a layer)
        self, plan: LayerPlan, weights: Parameters, x: Array, key: Array | None, running: Parameters
    ) -> Array:
        own = {name: weights[plan.key(name)] for name in plan.weights}
        layer = plan.layer
        match layer:
            case layers.Dense():
                return _biased(self._product(x, own["kernel"]), own)
            case layers.Conv2D():
                padding = layers.paddings(layer, x.shape[1:])
                kernel = own["kernel"].astype(self._product_dtype)
                y = convolve(padding, x.astype(self._product_dtype), kernel, layer.stride)
                return _biased(y.astype(x.dtype), own)
            case layers.MaxPool():
                padding = [(0, 0), *layers.paddings(layer, x.shape[1:]), (0, 0)]
                window = (1, layer.size, layer.size, 1)
                strides = (1, layer.stride, layer.stride, 1)
                return lax.reduce_window(x, -jnp.inf, lax.max, window, strides, padding)
            case layers.AveragePool(size=size, stride=stride):
                return (
                    lax.reduce_window(
                        x, 0.0, lax.add, (1, size, size, 1), (1, stride, stride, 1), "VALID"
                    )
                    / size**2
                )
            case layers.GlobalAveragePool():
                return x.mean(axis=(1, 2))
            case layers.LocalResponseNorm():
                ones = (1,) * x.ndim
                radius = layer.radius
                around = (*((0, 0) for _ in x.shape[1:]), (radius, radius))
                total = lax.reduce_window(
                    x * x, 0.0, lax.add, (*ones[1:], 2 * radius + 1), ones, around
                )
                return x / (layer.bias + layer.alpha * total) ** layer.beta
            case layers.BatchNorm():
                if key is None:
                    return _normal(x, own["mean"], own["variance"], layer.epsilon, own)
                mean = x.mean(axis=(0, 1, 2))
                variance = x.var(axis=(0, 1, 2))
                values = x.size // x.shape[-1]
                for name, now in (("mean", mean), ("variance", variance * (values / (values - 1)))):
                    running[plan.key(name)] = own[name] + layer.momentum * (now - own[name])
                return _normal(x, mean, variance, layer.epsilon, own)
            case layers.LayerNorm():
                mean = x.mean(axis=-1, keepdims=True)
                variance = x.var(axis=-1, keepdims=True)
                return _normal(x, mean, variance, layer.epsilon, own)
            case layers.TokenEmbedding():
                return own["table"].at[x].get(mode="promise_in_bounds")
            case layers.PositionEmbedding():
                return x + own["table"][: x.shape[1]]
            case layers.Attention():
                return self._attention(plan, layer, own, x, key)
            case layers.TiedHead():
                return self._product(x, weights[plan.table].T)
            case layers.ReLU():
                return jax.nn.relu(x)
            case layers.GELU():
                return jax.nn.gelu(x, approximate=False)
            case layers.Scale():
                return layer.factor * x
            case layers.Dropout():
                return self._dropped(plan, x, layer.rate, x.shape, key)
            case layers.ChannelDropout():
                return self._dropped(plan, x, layer.rate, (x.shape[0], 1, 1, x.shape[-1]), key)
            case layers.Flatten():
                return x.reshape(x.shape[0], -1)
            case layers.LogSoftmax():
                return jax.nn.log_softmax(x)
            case layers.Residual() | layers.Repeat():
                raise AssertionError("layers of other layers")
            case _:
                assert_never(layer)

    def _product(self, x: Array, kernel: Array) -> Array:
        # Flattened to rows: for sequences, XLA's CPU compiler copies vectors one by one in the
        # kernel's gradient.
        rows = x.reshape(-1, x.shape[-1]).astype(self._product_dtype)
        # The output keeps the factors' type; otherwise both gradient products would be computed in
        # float32.
        product = jnp.matmul(rows, kernel.astype(self._product_dtype)).astype(x.dtype)
        return product.reshape(*x.shape[:-1], -1)

    def _attention(
        self, plan: LayerPlan, layer: layers.Attention, own: Parameters, x: Array, key: Array | None
    ) -> Array:
        joined = self._product(x, own["qkv"]).astype(self._product_dtype)
        q, k, v = (
            each.reshape(*x.shape[:2], layer.heads, -1) for each in jnp.split(joined, 3, axis=-1)
        )
        if key is None or not layer.dropout:
            mixed = self._attend(q, k, v)
        else:

            def drop(shares: Array) -> Array:
                return self._dropped(plan, shares, layer.dropout, shares.shape, key)

            mixed = _attended(q, k, v, drop)
        return self._product(mixed.reshape(x.shape).astype(x.dtype), own["out"])

    def _dropped(
        self, plan: LayerPlan, x: Array, rate: float, shape: tuple[int, ...], key: Array | None
    ) -> Array:
        if key is None or not rate:
            return x
        kept = jax.random.bernoulli(
            jax.random.fold_in(key, self._numbers[plan.name]), 1 - rate, shape
        )
        return jnp.where(kept, x / (1 - rate), 0)


def convolve(padding: Sequence[tuple[int, int]], x: Array, kernel: Array, stride: int = 1) -> Array:
    """Convolve ``[batch, height, width, in]`` with ``[size, size, in, out]``.

    Args:
        padding: zeros to add before and after, for rows and for columns.
    """
    return lax.conv_general_dilated(
        x, kernel, (stride, stride), padding, dimension_numbers=("NHWC", "HWIO", "NHWC")
    )


def _biased(x: Array, own: Parameters) -> Array:
    return x + own["bias"] if "bias" in own else x


def _normal(x: Array, mean: Array, variance: Array, epsilon: float, own: Parameters) -> Array:
    y = (x - mean) * lax.rsqrt(variance + epsilon) * own["scale"]
    return y + own["shift"] if "shift" in own else y


def _keep(shares: Array) -> Array:
    return shares


def _attended(q: Array, k: Array, v: Array, drop: Callable[[Array], Array] = _keep) -> Array:
    """Compute causal attention plainly.

    ``drop`` acts on the softmax's output ``[batch, heads, length, length]``.
    """
    wide = jnp.promote_types(q.dtype, jnp.float32)
    scores = jnp.einsum("bqhd,bkhd->bhqk", q, k).astype(wide) * q.shape[-1] ** -0.5
    seen = jnp.tril(jnp.ones(scores.shape[-2:], bool))
    shares = drop(jax.nn.softmax(jnp.where(seen, scores, -jnp.inf)))
    return jnp.einsum("bhqk,bkhd->bqhd", shares.astype(q.dtype), v).astype(wide)
