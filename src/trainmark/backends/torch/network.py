"""The network as a ``torch.nn.Sequential``, and conversion of weights between the canonical layout and PyTorch's.

PyTorch uses NCHW images. So loading weights transposes convolution kernels, and reorders the kernel rows of a dense
layer after a flatten to channel-first order.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

import numpy as np
import torch
from torch import nn

from trainmark.errors import assert_never
from trainmark.workload import layers
from trainmark.workload.model import LayerPlan, Model, Shape, Weights


def build(plans: Iterable[LayerPlan]) -> nn.Sequential:
    """Build these layers of a network, with their names."""
    network = nn.Sequential()
    for plan in plans:
        *padding, module = _modules(plan)
        if padding:
            network.add_module(f"{plan.name}_padding", *padding)
        network.add_module(plan.name, module)
    return network


def load_weights(network: nn.Sequential, model: Model, weights: Weights) -> None:
    """Copy canonical weights into the layers of the network, in place."""
    with torch.no_grad():
        for plan, module, flattened in _weighted(network, model):
            kernel = torch.from_numpy(np.ascontiguousarray(_to_torch(weights[plan.kernel_name], flattened)))
            module.weight.copy_(kernel)
            module.bias.copy_(torch.from_numpy(weights[plan.bias_name]))


def read_weights(network: nn.Sequential, model: Model) -> Weights:
    """Return the weights of the layers of the network, as float32 in canonical layout."""
    weights: Weights = {}
    for plan, module, flattened in _weighted(network, model):
        kernel = module.weight.detach().to("cpu", torch.float32).numpy()
        weights[plan.kernel_name] = np.ascontiguousarray(_from_torch(kernel, flattened))
        weights[plan.bias_name] = module.bias.detach().to("cpu", torch.float32).numpy().copy()
    return weights


def _weighted(network: nn.Sequential, model: Model) -> Iterator[tuple[LayerPlan, nn.Module, Shape | None]]:
    """Yield each layer with weights, its module, and the image shape that was flattened right before it."""
    modules = dict(network.named_children())
    flattened: Shape | None = None
    for plan in model.layers:
        if isinstance(plan.layer, layers.Flatten):
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


def _modules(plan: LayerPlan) -> Iterator[nn.Module]:
    """Yield the module of a layer, perhaps after one that pads its input."""
    match layer := plan.layer:
        case layers.Dense():
            yield nn.Linear(plan.input_shape[0], layer.units)
        case layers.Conv2D():
            around = [layers.padding_of(layer.size, 1, width, layer.padding) for width in plan.input_shape[:2]]
            even = [before for before, after in around if before == after]
            if len(even) < 2:
                yield _padding(around, 0.0)
            yield nn.Conv2d(plan.input_shape[2], layer.filters, layer.size, padding=even if len(even) == 2 else 0)
        case layers.MaxPool():
            size, stride = layer.size, layer.stride
            around = [layers.padding_of(size, stride, width, layer.padding) for width in plan.input_shape[:2]]
            if np.any(around):
                yield _padding(around, float("-inf"))
            yield nn.MaxPool2d(size, stride)
        case layers.LocalResponseNorm():
            window = 2 * layer.radius + 1  # PyTorch divides alpha by the window, unlike the definition
            yield nn.LocalResponseNorm(window, layer.alpha * window, layer.beta, layer.bias)
        case layers.ReLU():
            yield nn.ReLU()
        case layers.Dropout():
            yield nn.Dropout(layer.rate)
        case layers.ChannelDropout():
            yield nn.Dropout2d(layer.rate)
        case layers.Flatten():
            yield nn.Flatten()
        case layers.LogSoftmax():
            yield nn.LogSoftmax(dim=1)
        case _:
            assert_never(layer)


def _padding(around: list[tuple[int, int]], value: float) -> nn.Module:
    """Return a module that pads images, for paddings that PyTorch's layers don't support."""
    (top, bottom), (left, right) = around
    return nn.ConstantPad2d((left, right, top, bottom), value)
