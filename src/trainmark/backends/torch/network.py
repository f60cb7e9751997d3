"""The network as a ``torch.nn.Sequential``, and weights between the canonical layout and PyTorch's.

PyTorch computes images as NCHW. So convolution kernels are transposed, and the kernel of a dense layer behind a
flatten has its rows put into channel-first order, once, when weights are loaded.
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
    """These layers of a network, under their own names."""
    network = nn.Sequential()
    for plan in plans:
        *padding, module = _modules(plan)
        if padding:
            network.add_module(f"{plan.name}_padding", *padding)
        network.add_module(plan.name, module)
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
    """The module of a layer, perhaps after one that pads its images."""
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
            window = 2 * layer.radius + 1  # PyTorch divides alpha by the window, the definition does not
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
    """Constant rows and columns around images, for paddings that PyTorch's own layers don't have."""
    (top, bottom), (left, right) = around
    return nn.ConstantPad2d((left, right, top, bottom), value)
