"""The network as a ``torch.nn.Sequential``, and conversion of weights between the canonical layout and PyTorch's.

PyTorch uses NCHW images. So loading weights transposes convolution kernels, and reorders the kernel rows of a dense
layer after a flatten to channel-first order.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from trainmark.errors import assert_never
from trainmark.workload import layers
from trainmark.workload.model import LayerPlan, Model, Shape


def build(plans: Iterable[LayerPlan]) -> nn.Sequential:
    """Build these layers of a network, with their names."""
    network = nn.Sequential()
    for plan in plans:
        *padding, module = _modules(plan)
        if padding:
            network.add_module(f"{plan.name}_padding", *padding)
        network.add_module(plan.name, module)
    return network


Of = Callable[[nn.Parameter], Tensor]
"""A tensor that belongs to a parameter and has its shape."""


def itself(parameter: nn.Parameter) -> Tensor:
    """Return the parameter's value."""
    return parameter.detach()


def write(network: nn.Sequential, model: Model, arrays: Mapping[str, NDArray[Any]], of: Of = itself) -> None:
    """Copy canonical arrays into the parameters of the network, or what belongs to them, in place."""
    with torch.no_grad():
        for plan, module, flattened in _weighted(network, model):
            kernel = torch.from_numpy(np.ascontiguousarray(_to_torch(arrays[plan.kernel_name], flattened)))
            of(module.weight).copy_(kernel)
            of(module.bias).copy_(torch.from_numpy(np.ascontiguousarray(arrays[plan.bias_name])))


def read(
    network: nn.Sequential, model: Model, of: Of = itself, dtype: torch.dtype = torch.float64
) -> dict[str, NDArray[Any]]:
    """Return the parameters of the network, or what belongs to them, in canonical layout."""
    arrays = {}
    for plan, module, flattened in _weighted(network, model):
        kernel, bias = (of(each).to("cpu", dtype, copy=True).numpy() for each in (module.weight, module.bias))
        arrays[plan.kernel_name] = np.ascontiguousarray(_from_torch(kernel, flattened))
        arrays[plan.bias_name] = bias
    return arrays


def outputs(network: nn.Sequential, model: Model, x: Tensor) -> Iterator[tuple[str, Tensor]]:
    """Yield the input and the output of each layer, with its name, in canonical layout."""
    plans, flattened = {plan.name: plan for plan in model.layers}, None
    yield "input", _canonical(x, None)
    for name, module in network.named_children():
        x, plan = module(x), plans.get(name)
        if plan is None:  # padding
            continue
        if plan.kernel_shape:
            flattened = None
        elif isinstance(plan.layer, layers.Flatten) and len(plan.input_shape) == 3:
            flattened = plan.input_shape
        yield name, _canonical(x, flattened)


def _canonical(x: Tensor, flattened: Shape | None) -> Tensor:
    if flattened is not None:
        height, width, channels = flattened
        return x.reshape(-1, channels, height, width).permute(0, 2, 3, 1).flatten(1)
    return x.permute(0, 2, 3, 1) if x.ndim == 4 else x


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
