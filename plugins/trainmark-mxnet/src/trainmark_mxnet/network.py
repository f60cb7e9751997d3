"""The network as a symbol, and conversion of weights between the canonical layout and MXNet's.

MXNet uses NCHW images. So loading weights transposes convolution kernels, and reorders the kernel
rows of a dense layer after a flatten to channel-first order.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

import mxnet as mx
import numpy as np
from numpy.typing import DTypeLike, NDArray

from trainmark.errors import Unsupported
from trainmark.workload.layers import (
    ChannelDropout,
    Conv2D,
    Dense,
    Dropout,
    Flatten,
    LocalResponseNorm,
    LogSoftmax,
    MaxPool,
    ReLU,
    Shape,
    padding_of,
)
from trainmark.workload.model import LayerPlan, Model

DATA = "data"
LABEL = "softmax_label"  # the names that Module expects


def build(plans: Iterable[LayerPlan]) -> mx.sym.Symbol:
    """Build these layers of a network, with an input named ``data``, ``[batch, channels, height,
    width]`` if images."""
    x = mx.sym.Variable(DATA)
    for plan in plans:
        x = _apply(plan, x)
    return x


def log_softmax(x: mx.sym.Symbol) -> mx.sym.Symbol:
    """Compute ``x - log Σ exp x``; MXNet's operator is off by up to 4e-6 on the CPU, always in the
    same direction, and fails the conformance test of the losses in float32."""
    shifted = mx.sym.broadcast_sub(x, mx.sym.BlockGrad(mx.sym.max(x, axis=1, keepdims=True)))
    total = mx.sym.sum(mx.sym.exp(shifted), axis=1, keepdims=True)
    return mx.sym.broadcast_sub(shifted, mx.sym.log(total))


def kernel(plan: LayerPlan) -> str:
    """Return MXNet's name of a layer's kernel."""
    return f"{plan.name}_weight"


def bias(plan: LayerPlan) -> str:
    """Return MXNet's name of a layer's bias."""
    return f"{plan.name}_bias"


def to_mxnet(model: Model, weights: Mapping[str, NDArray[Any]]) -> dict[str, np.ndarray]:
    """Convert canonical weights to MXNet's layout and names."""
    arrays = {}
    for plan, flattened in _weighted(model):
        arrays[kernel(plan)] = np.ascontiguousarray(
            _channels_first(weights[plan.kernel_name], flattened)
        )
        arrays[bias(plan)] = weights[plan.bias_name]
    return arrays


def from_mxnet(
    model: Model, arrays: Mapping[str, mx.nd.NDArray], dtype: DTypeLike = np.float32
) -> dict[str, NDArray[Any]]:
    """Convert MXNet's arrays, one for each weight, to canonical layout."""
    weights = {}
    for plan, flattened in _weighted(model):
        found = arrays[kernel(plan)].asnumpy().astype(dtype)
        weights[plan.kernel_name] = np.ascontiguousarray(_channels_last(found, flattened))
        weights[plan.bias_name] = arrays[bias(plan)].asnumpy().astype(dtype)
    return weights


def outputs_from_mxnet(
    model: Model, outputs: Iterable[mx.nd.NDArray]
) -> dict[str, NDArray[np.float64]]:
    """Convert the outputs of all layers to canonical layout, by the layer's name."""
    arrays = {}
    for (plan, flattened), output in zip(_flattened(model), outputs, strict=True):
        # examples come first, as the outputs do in a kernel
        values = output.asnumpy().astype(np.float64)
        last = _channels_last(values, None if plan.kernel_shape else flattened)
        arrays[plan.name] = np.moveaxis(last, -1, 0)
    return arrays


def _weighted(model: Model) -> Iterator[tuple[LayerPlan, Shape | None]]:
    """Yield each layer with weights, and the image shape that was flattened before it."""
    return ((plan, flattened) for plan, flattened in _flattened(model) if plan.kernel_shape)


def _flattened(model: Model) -> Iterator[tuple[LayerPlan, Shape | None]]:
    """Yield each layer, and the image shape that was flattened since the last layer with
    weights."""
    flattened: Shape | None = None
    for plan in model.layers:
        if isinstance(plan.layer, Flatten) and len(plan.input_shape) == 3:
            flattened = plan.input_shape
        yield plan, flattened
        if plan.kernel_shape:
            flattened = None


def _channels_first(values: np.ndarray, flattened: Shape | None) -> np.ndarray:
    if values.ndim == 4:
        return values.transpose(3, 2, 0, 1)
    if flattened is not None:
        values = values.reshape(*flattened, -1).transpose(2, 0, 1, 3).reshape(values.shape)
    return values.T


def _channels_last(values: np.ndarray, flattened: Shape | None) -> np.ndarray:
    if values.ndim == 4:
        return values.transpose(2, 3, 1, 0)
    values = values.T
    if flattened is not None:
        height, width, channels = flattened
        values = (
            values.reshape(channels, height, width, -1).transpose(1, 2, 0, 3).reshape(values.shape)
        )
    return values


def _apply(plan: LayerPlan, x: mx.sym.Symbol) -> mx.sym.Symbol:
    layer = plan.layer
    match layer:
        case Dense():
            return mx.sym.FullyConnected(x, num_hidden=layer.units, name=plan.name)
        case Conv2D():
            return _convolution(plan, layer, x)
        case MaxPool():
            return _max_pool(plan, layer, x)
        case LocalResponseNorm():
            return _local_response_norm(plan, layer, x)
        case Dropout(rate):
            return mx.sym.Dropout(x, p=rate)
        case ChannelDropout(rate):
            return mx.sym.Dropout(x, p=rate, axes=(2, 3))
        case ReLU():
            return mx.sym.Activation(x, act_type="relu")
        case Flatten():
            return mx.sym.Flatten(x)
        case LogSoftmax():
            return log_softmax(x)
        case _:
            raise Unsupported(f"MXNet does not have the layer {layer.kind!r}")


def _convolution(plan: LayerPlan, layer: Conv2D, x: mx.sym.Symbol) -> mx.sym.Symbol:
    padding = [padding_of(layer.size, 1, width, layer.padding) for width in plan.input_shape[:2]]
    pad = tuple(before for before, _ in padding)
    if any(before != after for before, after in padding):
        x = _padded(x, padding, 0.0)
        pad = (0, 0)
    return mx.sym.Convolution(
        x, num_filter=layer.filters, kernel=(layer.size,) * 2, pad=pad, name=plan.name
    )


def _max_pool(plan: LayerPlan, layer: MaxPool, x: mx.sym.Symbol) -> mx.sym.Symbol:
    padding = [
        padding_of(layer.size, layer.stride, width, layer.padding) for width in plan.input_shape[:2]
    ]
    pad = tuple(before for before, _ in padding)
    convention = "valid"
    if any(before != after for before, after in padding):
        if layer.size >= layer.stride > 1:
            convention = "full"  # a window may extend past the end, as with one more row of padding
        else:
            x = _padded(x, padding, float("-inf"))
            pad = (0, 0)
    return mx.sym.Pooling(
        x,
        pool_type="max",
        kernel=(layer.size,) * 2,
        stride=(layer.stride,) * 2,
        pad=pad,
        pooling_convention=convention,
    )


def _local_response_norm(
    plan: LayerPlan, layer: LocalResponseNorm, x: mx.sym.Symbol
) -> mx.sym.Symbol:
    """Compute the sum over neighbouring channels as a pooling, because MXNet's ``LRN`` does not
    support float64."""
    # channels as the height
    rows = mx.sym.reshape(mx.sym.square(x), shape=(0, 1, plan.input_shape[2], -1))
    window = {"kernel": (2 * layer.radius + 1, 1), "pad": (layer.radius, 0), "stride": (1, 1)}
    total = mx.sym.reshape_like(mx.sym.Pooling(rows, pool_type="sum", **window), x)
    return x * (layer.bias + layer.alpha * total) ** -layer.beta


def _padded(x: mx.sym.Symbol, padding: list[tuple[int, int]], value: float) -> mx.sym.Symbol:
    (top, bottom), (left, right) = padding
    return mx.sym.pad(
        x, mode="constant", constant_value=value, pad_width=(0, 0, 0, 0, top, bottom, left, right)
    )
