"""Shapes, parameters and FLOPs of a network, computed from its specification.

One multiply-add (MAC) is two floating-point operations. Only matrix products and convolutions are counted. A training
step is the forward pass, the weight gradient (the same cost) and the input gradient (the same cost, but nothing for
the first layer with weights).
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from decimal import Decimal  # a float can't hold numbers with hundreds of digits

import numpy as np
from numpy.typing import NDArray

from trainmark.errors import assert_never
from trainmark.workload import layers
from trainmark.workload.decode import Misfit
from trainmark.workload.spec import Workload

MOST_PARAMETERS = 1 << 30
"""Limit for a network; drawing them takes 12 bytes each, even before training."""
MOST_VALUES = 1 << 28
"""Limit for one example in one layer, including padding."""
MOST_LAYERS = 10_000
_MOST_SIDE = 4_096

Shape = tuple[int, ...]
Weights = dict[str, NDArray[np.float32]]


@dataclass(frozen=True)
class LayerPlan:
    """One layer of a network. Shapes exclude the batch; images are ``(height, width, channels)``."""

    name: str
    layer: layers.Layer
    input_shape: Shape
    output_shape: Shape
    kernel_shape: Shape | None
    forward_macs: int
    input_gradient_macs: int

    @property
    def parameters(self) -> int:
        """Number of weights and biases."""
        return math.prod(self.kernel_shape) + self.kernel_shape[-1] if self.kernel_shape else 0

    @property
    def l2(self) -> float:
        """Factor of the L2 term of its kernel; 0 without one."""
        return self.layer.l2 if isinstance(self.layer, (layers.Dense, layers.Conv2D)) else 0.0

    @property
    def training_macs(self) -> int:
        """Forward, weight gradient and input gradient, per example."""
        return 2 * self.forward_macs + self.input_gradient_macs

    @property
    def kernel_name(self) -> str:
        """Key of the kernel among the weights."""
        return f"{self.name}.kernel"

    @property
    def bias_name(self) -> str:
        """Key of the bias among the weights."""
        return f"{self.name}.bias"


@dataclass(frozen=True)
class Model:
    """A network: every layer with its shapes and cost."""

    input_shape: Shape
    layers: tuple[LayerPlan, ...]

    @property
    def classes(self) -> int:
        """Width of the last layer."""
        return self.layers[-1].output_shape[0]

    @property
    def weighted_layers(self) -> tuple[LayerPlan, ...]:
        """The layers that have weights, in order."""
        return tuple(plan for plan in self.layers if plan.kernel_shape)

    @property
    def convolves(self) -> bool:
        """Whether any layer is a convolution."""
        return any(isinstance(plan.layer, layers.Conv2D) for plan in self.layers)

    @property
    def arrays(self) -> int:
        """Number of arrays of trained values: a kernel and a bias for each layer with weights."""
        return 2 * len(self.weighted_layers)

    @property
    def parameters(self) -> int:
        """Number of trained values."""
        return sum(plan.parameters for plan in self.layers)

    @property
    def forward_flops(self) -> int:
        """Floating-point operations of one forward pass, per example."""
        return 2 * sum(plan.forward_macs for plan in self.layers)

    @property
    def training_flops(self) -> int:
        """Floating-point operations of one training step, per example."""
        return 2 * sum(plan.training_macs for plan in self.layers)


def lay_out(workload: Workload) -> Model:
    """Return the network of ``workload``, layer by layer.

    Raises:
        Misfit: the input shape of a layer does not fit it; includes the path to that layer.
    """
    shape: Shape = workload.input.network_shape
    plans: list[LayerPlan] = []
    counts: dict[str, int] = {}
    parameters = 0
    if len(workload.model) > MOST_LAYERS:
        raise Misfit(("model",), f"at most {MOST_LAYERS:,} layers", f"{len(workload.model):,}")
    for index, layer in enumerate(workload.model):
        counts[layer.kind] = counts.get(layer.kind, 0) + 1
        first = not parameters
        try:
            output, kernel, macs = _apply(layer, shape)
            parameters += math.prod(kernel or (0,))
            _require_room(parameters, output)
        except Misfit as misfit:
            raise Misfit(("model", index, *misfit.path), misfit.expected, misfit.found) from None
        plans.append(
            LayerPlan(f"{layer.kind}{counts[layer.kind]}", layer, shape, output, kernel, macs, 0 if first else macs)
        )
        shape = output
    if len(shape) != 1:
        raise Misfit(("model", len(plans) - 1), "one value per class at the end of the network", f"the shape {shape}")
    return Model(workload.input.network_shape, tuple(plans))


def initial_weights(model: Model, seed: int) -> Weights:
    """Draw weights with NumPy, as float32 in canonical layout; they are the same for every backend.

    Args:
        model: the network.
        seed: seed of this run; each layer has a separate stream, so changing one layer does not affect the others.
    """
    weights: Weights = {}
    for index, plan in enumerate(model.layers):
        layer = plan.layer
        if not isinstance(layer, (layers.Dense, layers.Conv2D)) or plan.kernel_shape is None:
            continue
        *receptive, inputs, outputs = plan.kernel_shape
        field = math.prod(receptive)
        rng = np.random.Generator(np.random.PCG64([seed, index]))
        kernel = layer.kernel.draw(rng, plan.kernel_shape, field * inputs, field * outputs)
        bias = layer.bias.draw(rng, (outputs,), field * inputs, field * outputs)
        weights[plan.kernel_name] = kernel.astype(np.float32)
        weights[plan.bias_name] = bias.astype(np.float32)
    return weights


def _apply(layer: layers.Layer, shape: Shape) -> tuple[Shape, Shape | None, int]:
    """Return output shape, kernel shape and forward MACs of ``layer`` on ``shape``."""
    match layer:
        case layers.Dense():
            _vector(layer, shape)
            return (layer.units,), (shape[0], layer.units), shape[0] * layer.units
        case layers.Conv2D():
            height, width, channels = _image(layer, shape)
            rows = _windows(layer.size, 1, height, layer.padding)
            columns = _windows(layer.size, 1, width, layer.padding)
            kernel = (layer.size, layer.size, channels, layer.filters)
            return (rows, columns, layer.filters), kernel, rows * columns * math.prod(kernel)
        case layers.MaxPool():
            height, width, channels = _image(layer, shape)
            rows = _windows(layer.size, layer.stride, height, layer.padding)
            return (rows, _windows(layer.size, layer.stride, width, layer.padding), channels), None, 0
        case layers.Flatten():
            return (math.prod(shape),), None, 0
        case layers.LocalResponseNorm() | layers.ChannelDropout():
            return _image(layer, shape), None, 0
        case layers.LogSoftmax():
            return _vector(layer, shape), None, 0
        case layers.ReLU() | layers.Dropout():
            return shape, None, 0
        case _:
            assert_never(layer)


def _require_room(parameters: int, output: Shape) -> None:
    """Raise Misfit for a network that fits no machine, before its memory is allocated."""
    if parameters > MOST_PARAMETERS:
        raise Misfit(
            (), f"a network of at most {MOST_PARAMETERS:,} weights", f"{Decimal(parameters):.3g} up to this layer"
        )
    if math.prod(output) > MOST_VALUES:
        raise Misfit((), f"at most {MOST_VALUES:,} values per example", f"the shape {written(output)}")


def _vector(layer: layers.Layer, shape: Shape) -> Shape:
    if len(shape) != 1:
        raise Misfit((), f"a 'flatten' layer before {layer.kind!r}", f"images of {written(shape)}")
    return shape


def _image(layer: layers.Layer, shape: Shape) -> Shape:
    if len(shape) != 3:
        raise Misfit((), f"images before {layer.kind!r}", f"{written(shape)} values per example")
    return shape


def _windows(size: int, stride: int, width: int, padding: str) -> int:
    before, after = layers.padding_of(size, stride, width, "same" if padding == "same" else "valid")
    if size > _MOST_SIDE:
        raise Misfit(("size",), f"a window of at most {_MOST_SIDE:,}", "a larger one")  # with any number of digits
    if size > width + before + after:
        raise Misfit(("size",), f"a window of at most {width}", str(size))
    return (width + before + after - size) // stride + 1


def written(shape: Shape) -> str:
    """Format a shape as ``28 × 28 × 1``."""
    return " × ".join(str(side) for side in shape)
