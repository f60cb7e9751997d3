"""The network as a ``torch.nn.Sequential``.

Also converts weights between the canonical layout and PyTorch's.

PyTorch uses NCHW images. So loading weights transposes convolution kernels, and reorders the kernel
rows of a dense layer after a flatten to channel-first order.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator, Mapping, Sequence
from operator import attrgetter
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn
from torch.nn import functional

from trainmark.errors import assert_never
from trainmark.workload import layers
from trainmark.workload.layers import Shape
from trainmark.workload.model import LayerPlan, Model

_ATTRIBUTES = {
    "kernel": "weight",
    "bias": "bias",
    "scale": "weight",
    "shift": "bias",
    "mean": "running_mean",
    "variance": "running_var",
    "table": "weight",
    "qkv": "qkv.weight",
    "out": "out.weight",
}
"""PyTorch's names for the weights of a layer."""


class Residual(nn.Module):
    """``body(x) + shortcut(x)``; an empty shortcut is ``x``."""

    def __init__(self, body: nn.Sequential, shortcut: nn.Sequential) -> None:
        super().__init__()
        self.body = body
        self.shortcut = shortcut

    def forward(self, x: Tensor) -> Tensor:
        """Add both branches."""
        y: Tensor = self.body(x) + self.shortcut(x)
        return y


class Attention(nn.Module):
    """Causal self-attention with a joint projection to queries, keys and values."""

    def __init__(self, width: int, heads: int, dropout: float) -> None:
        super().__init__()
        self.heads = heads
        self.dropout = dropout
        self.qkv = nn.Linear(width, 3 * width, bias=False)
        self.out = nn.Linear(width, width, bias=False)

    def forward(self, x: Tensor) -> Tensor:
        """Attend to this and earlier positions of ``[batch, length, width]``."""
        q, k, v = (
            part.unflatten(-1, (self.heads, -1)).transpose(1, 2)
            for part in self.qkv(x).chunk(3, dim=-1)
        )
        dropout = self.dropout if self.training else 0.0
        y = functional.scaled_dot_product_attention(q, k, v, dropout_p=dropout, is_causal=True)
        mixed: Tensor = self.out(y.transpose(1, 2).flatten(2))
        return mixed


class PositionEmbedding(nn.Embedding):
    """Adds a row for each position."""

    def forward(self, x: Tensor) -> Tensor:
        """Add the first rows to ``[batch, length, width]``."""
        return x + self.weight[: x.shape[1]]


class ImageLayerNorm(nn.LayerNorm):
    """Layer norm over the channels of ``[batch, channels, height, width]``."""

    def forward(self, x: Tensor) -> Tensor:
        """Normalise each pixel."""
        return super().forward(x.permute(0, 2, 3, 1)).permute(0, 3, 1, 2)


class Scale(nn.Module):
    """``factor · x``."""

    def __init__(self, factor: float) -> None:
        super().__init__()
        self.factor = factor

    def forward(self, x: Tensor) -> Tensor:
        """Multiply."""
        return x * self.factor


class LogSoftmax(nn.LogSoftmax):
    """Computes in float32 also within autocast, which on a CPU would leave it in 16 bits."""

    def forward(self, x: Tensor) -> Tensor:
        """Return the logarithms of probabilities."""
        return super().forward(x.to(torch.promote_types(x.dtype, torch.float32)))


class FlattenChannelsLast(nn.Flatten):
    """Flattens images in canonical order, unless a dense layer follows."""

    def forward(self, x: Tensor) -> Tensor:
        """Return rows of ``[batch, channels, height, width]``."""
        return super().forward(x.permute(0, 2, 3, 1))


def build(model: Model, plans: Sequence[LayerPlan]) -> nn.Sequential:
    """Build these layers of ``model``, with their names."""
    network = _sequential(plans, _channels_first(model.layers))
    modules = _by_name(network)
    for plan in model.every_layer:
        if plan.table and plan.name in modules:
            modules[plan.name].weight = modules[plan.table.split(".")[0]].weight
    return network


def _sequential(plans: Sequence[LayerPlan], channels_first: Mapping[str, Shape]) -> nn.Sequential:
    network = nn.Sequential()
    for plan in plans:
        *padding, module = _modules(plan, channels_first)
        if padding:
            network.add_module(f"{plan.name}_padding", *padding)
        network.add_module(plan.name, module)
    return network


def _by_name(network: nn.Module) -> dict[str, Any]:
    """Return the modules by name; names of layers are unique, also inside a residual."""
    return {name.rpartition(".")[2]: module for name, module in network.named_modules()}


Of = Callable[[Any], Tensor]
"""A tensor that belongs to a parameter and has its shape."""


def itself(parameter: Tensor) -> Tensor:
    """Return the parameter's value."""
    return parameter.detach()


def write(
    network: nn.Sequential, model: Model, arrays: Mapping[str, NDArray[Any]], of: Of = itself
) -> None:
    """Copy canonical arrays in place into the network's weights.

    Another ``of`` chooses other tensors of its parameters.
    """
    with torch.no_grad():
        for key, (weight, flattened) in _weights(network, model, of).items():
            value = np.ascontiguousarray(_to_torch(key, arrays[key], flattened))
            of(weight).copy_(torch.from_numpy(value))


def read(
    network: nn.Sequential, model: Model, of: Of = itself, dtype: torch.dtype = torch.float64
) -> dict[str, NDArray[Any]]:
    """Return the network's weights, or other tensors of its parameters, in canonical layout."""
    return {
        key: np.ascontiguousarray(
            _from_torch(key, of(weight).to("cpu", dtype, copy=True).numpy(), flattened)
        )
        for key, (weight, flattened) in _weights(network, model, of).items()
    }


def parameters(network: nn.Sequential, model: Model) -> dict[str, nn.Parameter]:
    """Return the trained weights of the network by key."""
    return {
        key: weight
        for key, (weight, _) in _weights(network, model).items()
        if isinstance(weight, nn.Parameter)
    }


def outputs(network: nn.Sequential, model: Model, x: Tensor) -> dict[str, Tensor]:
    """Return the input and the output of each layer, by name, in canonical layout."""
    found = {"input": _canonical(x, None)}
    modules = _by_name(network)
    flattened = _channels_first(model.layers)

    def keep(plan: LayerPlan) -> Callable[..., None]:
        shape = None if isinstance(plan.layer, layers.Dense) else flattened.get(plan.name)

        def hook(_module: nn.Module, _inputs: Any, y: Tensor) -> None:
            found[plan.name] = _canonical(y, shape)

        return hook

    plans = [plan for plan in model.every_layer if plan.name in modules]
    hooks = [modules[plan.name].register_forward_hook(keep(plan)) for plan in plans]
    try:
        network(x)
    finally:
        for hook in hooks:
            hook.remove()
    return found


def _canonical(x: Tensor, flattened: Shape | None) -> Tensor:
    if flattened is not None:
        height, width, channels = flattened
        return x.reshape(-1, channels, height, width).permute(0, 2, 3, 1).flatten(1)
    return x.permute(0, 2, 3, 1) if x.ndim == 4 else x


def _weights(
    network: nn.Sequential, model: Model, of: Of = itself
) -> dict[str, tuple[Tensor, Shape | None]]:
    """Return each weight by key, with the image shape that was flattened right before its layer.

    Nothing belongs to weights that are not trained, so these are left out with another ``of`` than
    ``itself``.
    """
    modules = _by_name(network)
    flattened = _channels_first(model.layers)
    found: dict[str, tuple[Tensor, Shape | None]] = {}
    for plan in model.weighted_layers:
        if plan.name not in modules:
            continue
        shape = flattened.get(plan.name)
        for name, weight in plan.weights.items():
            if weight.trained or of is itself:
                value = attrgetter(_ATTRIBUTES[name])(modules[plan.name])
                found[plan.key(name)] = (value, shape)
    return found


def _is_elementwise(plan: LayerPlan) -> bool:
    return isinstance(plan.layer, _ELEMENTWISE)


def _channels_first(plans: Sequence[LayerPlan]) -> dict[str, Shape]:
    """Return the layers from a flatten to the dense layer that follows.

    Each comes with the shape of the images.
    """
    found: dict[str, Shape] = {}
    for index, plan in enumerate(plans):
        found |= _channels_first(plan.body) | _channels_first(plan.shortcut)
        if isinstance(plan.layer, layers.Flatten) and len(plan.input_shape) == 3:
            after = plans[index + 1 :]
            between = list(itertools.takewhile(_is_elementwise, after))
            dense = after[len(between) : len(between) + 1]
            if dense and isinstance(dense[0].layer, layers.Dense):
                found |= {each.name: plan.input_shape for each in (plan, *between, *dense)}
    return found


_ELEMENTWISE = (layers.ReLU, layers.GELU, layers.Scale, layers.Dropout, layers.Flatten)


def _to_torch(key: str, kernel: np.ndarray, flattened: Shape | None) -> np.ndarray:
    if kernel.ndim == 4:
        return kernel.transpose(3, 2, 0, 1)
    if kernel.ndim == 1 or key.endswith(".table"):
        return kernel
    if flattened is not None:
        kernel = kernel.reshape(*flattened, -1).transpose(2, 0, 1, 3).reshape(kernel.shape)
    return kernel.T


def _from_torch(key: str, kernel: np.ndarray, flattened: Shape | None) -> np.ndarray:
    if kernel.ndim == 4:
        return kernel.transpose(2, 3, 1, 0)
    if kernel.ndim == 1 or key.endswith(".table"):
        return kernel
    kernel = kernel.T
    if flattened is not None:
        height, width, channels = flattened
        kernel = (
            kernel.reshape(channels, height, width, -1).transpose(1, 2, 0, 3).reshape(kernel.shape)
        )
    return kernel


# One case a layer
def _modules(plan: LayerPlan, channels_first: Mapping[str, Shape]) -> Iterator[nn.Module]:  # noqa: C901
    """Yield the module of a layer, perhaps after one that pads its input."""
    layer = plan.layer
    match layer:
        case layers.Dense():
            yield nn.Linear(plan.input_shape[-1], layer.units, bias=layer.bias != "none")
        case layers.Conv2D():
            around = layers.paddings(layer, plan.input_shape)
            even = [before for before, after in around if before == after]
            if len(even) < 2:
                yield _padding(around, 0.0)
            padding = even if len(even) == 2 else 0
            bias = layer.bias != "none"
            yield nn.Conv2d(
                plan.input_shape[2], layer.filters, layer.size, layer.stride, padding, bias=bias
            )
        case layers.MaxPool():
            around = layers.paddings(layer, plan.input_shape)
            even = [before for before, after in around if before == after <= layer.size // 2]
            if len(even) < 2:
                yield _padding(around, float("-inf"))
            yield nn.MaxPool2d(layer.size, layer.stride, even if len(even) == 2 else 0)
        case layers.AveragePool():
            yield nn.AvgPool2d(layer.size, layer.stride)
        case layers.GlobalAveragePool():
            yield nn.Sequential(nn.AdaptiveAvgPool2d(1), nn.Flatten())
        case layers.BatchNorm():
            yield nn.BatchNorm2d(plan.input_shape[-1], layer.epsilon, layer.momentum)
        case layers.LayerNorm():
            norm = ImageLayerNorm if len(plan.input_shape) == 3 else nn.LayerNorm
            yield norm(plan.input_shape[-1], layer.epsilon, bias=layer.shift)
        case layers.TokenEmbedding():
            yield nn.Embedding(layer.vocabulary, layer.width)
        case layers.PositionEmbedding():
            yield PositionEmbedding(layer.length, plan.input_shape[-1])
        case layers.Attention():
            yield Attention(plan.input_shape[-1], layer.heads, layer.dropout)
        case layers.TiedHead():
            yield nn.Linear(plan.input_shape[-1], plan.output_shape[-1], bias=False)
        case layers.Residual():
            yield Residual(
                _sequential(plan.body, channels_first), _sequential(plan.shortcut, channels_first)
            )
        case layers.Repeat():
            raise AssertionError("its layers are laid out one by one")
        case layers.GELU():
            yield nn.GELU()
        case layers.Scale():
            yield Scale(layer.factor)
        case layers.LocalResponseNorm():
            # PyTorch divides alpha by the window, unlike the definition
            window = 2 * layer.radius + 1
            yield nn.LocalResponseNorm(window, layer.alpha * window, layer.beta, layer.bias)
        case layers.ReLU():
            yield nn.ReLU()
        case layers.Dropout():
            yield nn.Dropout(layer.rate)
        case layers.ChannelDropout():
            yield nn.Dropout2d(layer.rate)
        case layers.Flatten():
            apart = len(plan.input_shape) == 3 and plan.name not in channels_first
            yield FlattenChannelsLast() if apart else nn.Flatten()
        case layers.LogSoftmax():
            yield LogSoftmax(dim=1)
        case _:
            assert_never(layer)


def _padding(around: list[tuple[int, int]], value: float) -> nn.Module:
    """Return a module that pads images, for paddings that PyTorch's layers don't support."""
    (top, bottom), (left, right) = around
    return nn.ConstantPad2d((left, right, top, bottom), value)
