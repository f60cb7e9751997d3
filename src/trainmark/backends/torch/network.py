"""The network as a ``torch.nn.Sequential``, and weights between the canonical layout and PyTorch's.

PyTorch computes images as NCHW. So convolution kernels are transposed, and the kernel of a dense layer behind a
flatten has its rows put into channel-first order, once, when weights are loaded.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn import functional

from trainmark.errors import assert_never
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
    padding_of,
)
from trainmark.workload.model import LayerPlan, Model, Shape, Weights


def build(layers: Iterable[LayerPlan]) -> nn.Sequential:
    """These layers of a network, under their own names."""
    network = nn.Sequential()
    for plan in layers:
        network.add_module(plan.name, _module(plan))
    return network


def load_weights(network: nn.Sequential, model: Model, weights: Weights) -> None:
    """Copy canonical weights into the layers that the network has, in place."""
    with torch.no_grad():
        for plan, module, flattened in _weighted(network, model):
            kernel = torch.from_numpy(np.ascontiguousarray(_to_torch(weights[plan.kernel_name], flattened)))
            module.weight.copy_(kernel)
            module.bias.copy_(torch.from_numpy(weights[plan.bias_name]))


def read_weights(network: nn.Sequential, model: Model) -> Weights:
    """The weights of the layers that the network has, float32, in canonical layout."""
    weights: Weights = {}
    for plan, module, flattened in _weighted(network, model):
        kernel = module.weight.detach().to("cpu", torch.float32).numpy()
        weights[plan.kernel_name] = np.ascontiguousarray(_from_torch(kernel, flattened))
        weights[plan.bias_name] = module.bias.detach().to("cpu", torch.float32).numpy().copy()
    return weights


def _weighted(network: nn.Sequential, model: Model) -> Iterator[tuple[LayerPlan, nn.Module, Shape | None]]:
    """Each layer with weights, its module, and the image shape that was flattened right before it."""
    modules = dict(network.named_children())
    flattened: Shape | None = None
    for plan in model.layers:
        if isinstance(plan.layer, Flatten):
            flattened = plan.input_shape if len(plan.input_shape) == 3 else None
        elif plan.kernel_shape:
            if plan.name in modules:
                yield plan, modules[plan.name], flattened
            flattened = None


def _to_torch(kernel: np.ndarray, flattened: Shape | None) -> np.ndarray:
    if kernel.ndim == 4:
        return kernel.transpose(3, 2, 0, 1)
    if flattened is not None:
        kernel = kernel.reshape(*flattened, -1).transpose(2, 0, 1, 3).reshape(kernel.shape)
    return kernel.T


def _from_torch(kernel: np.ndarray, flattened: Shape | None) -> np.ndarray:
    if kernel.ndim == 4:
        return kernel.transpose(2, 3, 1, 0)
    kernel = kernel.T
    if flattened is not None:
        height, width, channels = flattened
        kernel = kernel.reshape(channels, height, width, -1).transpose(1, 2, 0, 3).reshape(kernel.shape)
    return kernel


def _module(plan: LayerPlan) -> nn.Module:
    match layer := plan.layer:
        case Dense():
            return nn.Linear(plan.input_shape[0], layer.units)
        case Conv2D():
            padding = [padding_of(layer.size, 1, width, layer.padding) for width in plan.input_shape[:2]]
            even = [before for before, after in padding if before == after]
            if len(even) == 2:
                return nn.Conv2d(plan.input_shape[2], layer.filters, layer.size, padding=even)
            return PaddedConv2d(plan.input_shape[2], layer.filters, layer.size, padding)
        case MaxPool():
            padding = [padding_of(layer.size, layer.stride, width, layer.padding) for width in plan.input_shape[:2]]
            pool = nn.MaxPool2d(layer.size, layer.stride)
            return nn.Sequential(Padded(padding, float("-inf")), pool) if np.any(padding) else pool
        case LocalResponseNorm():
            window = 2 * layer.radius + 1  # PyTorch divides alpha by the window, the definition does not
            return nn.LocalResponseNorm(window, layer.alpha * window, layer.beta, layer.bias)
        case ReLU():
            return nn.ReLU()
        case Dropout():
            return nn.Dropout(layer.rate)
        case ChannelDropout():
            return nn.Dropout2d(layer.rate)
        case Flatten():
            return nn.Flatten()
        case LogSoftmax():
            return nn.LogSoftmax(dim=1)
        case _:
            assert_never(layer)


class PaddedConv2d(nn.Conv2d):
    """A convolution that may have more zeros behind than before."""

    def __init__(self, channels: int, filters: int, size: int, around: list[tuple[int, int]]) -> None:
        super().__init__(channels, filters, size)
        self._padded = Padded(around, 0.0)

    def forward(self, x: Tensor) -> Tensor:
        """``[batch, channels, height, width]``, padded and convolved."""
        return super().forward(self._padded(x))


class Padded(nn.Module):
    """Constant rows and columns around an image, for paddings that PyTorch's own layers don't have."""

    def __init__(self, padding: list[tuple[int, int]], value: float) -> None:
        super().__init__()
        (top, bottom), (left, right) = padding
        self._padding, self._value = (left, right, top, bottom), value

    def forward(self, x: Tensor) -> Tensor:
        """``[batch, channels, height, width]``, made larger."""
        return functional.pad(x, self._padding, value=self._value)
