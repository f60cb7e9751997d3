"""Shapes, parameters and FLOPs of a network, computed from its specification.

One multiply-add (MAC) is two floating-point operations. Only matrix products and convolutions are
counted. A training step is the forward pass, the weight gradient (the same cost) and the input
gradient (the same cost, but nothing for the first layer with weights).
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal  # a float can't hold numbers with hundreds of digits
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from trainmark.workload import layers
from trainmark.workload.decode import Misfit, Path
from trainmark.workload.layers import Applied, Layer, Shape, Simple, Weight, written
from trainmark.workload.spec import Workload

MOST_PARAMETERS = 1 << 30
"""Limit for a network; drawing them takes 12 bytes each, even before training."""
MOST_VALUES = 1 << 28
"""Limit for one example in one layer, including padding."""
MOST_LAYERS = 10_000

Weights = dict[str, NDArray[np.float32]]


@dataclass(frozen=True)
class LayerPlan:
    """One layer of a network. Shapes exclude the batch; images are ``(height, width, channels)``.

    Args:
        weights: its arrays, by name within the layer.
        forward_macs: multiply-adds of its products, per example, and those of the layers inside it.
        input_gradient_macs: those of the gradient of its input.
        body: the layers inside a residual; empty for any other layer.
        shortcut: the layers of its other branch; empty if that is the input itself.
        table: key of the token embedding's table, for a tied head.
    """

    name: str
    layer: layers.Layer
    input_shape: Shape
    output_shape: Shape
    weights: Mapping[str, Weight]
    forward_macs: int
    input_gradient_macs: int
    body: tuple[LayerPlan, ...] = ()
    shortcut: tuple[LayerPlan, ...] = ()
    table: str = ""

    @property
    def parameters(self) -> int:
        """Number of trained values, excluding layers inside it."""
        return sum(math.prod(weight.shape) for weight in self.weights.values() if weight.trained)

    @property
    def l2(self) -> float:
        """Factor of the L2 term of its kernel; 0 without one."""
        return self.layer.l2 if isinstance(self.layer, (layers.Dense, layers.Conv2D)) else 0.0

    @property
    def training_macs(self) -> int:
        """Forward, weight gradient and input gradient, per example."""
        return 2 * self.forward_macs + self.input_gradient_macs

    @property
    def kernel_shape(self) -> Shape | None:
        """Shape of its kernel; None without one."""
        return self.weights["kernel"].shape if "kernel" in self.weights else None

    @property
    def kernel_name(self) -> str:
        """Key of the kernel among the weights."""
        return self.key("kernel")

    @property
    def bias_name(self) -> str:
        """Key of the bias among the weights."""
        return self.key("bias")

    def key(self, weight: str) -> str:
        """Return the key of one of its arrays in the network's weights."""
        return f"{self.name}.{weight}"


@dataclass(frozen=True)
class Model:
    """A network: every layer with its shapes and cost.

    Args:
        layers: in order; a residual has layers inside it.
    """

    input_shape: Shape
    layers: tuple[LayerPlan, ...]

    @property
    def classes(self) -> int:
        """Width of the last layer."""
        return self.layers[-1].output_shape[-1]

    @property
    def every_layer(self) -> tuple[LayerPlan, ...]:
        """All layers, those inside a residual before it."""
        return tuple(_every(self.layers))

    @cached_property
    def weights(self) -> dict[str, Weight]:
        """Every array, by its key."""
        found: dict[str, Weight] = {}
        for plan in _every(self.layers):
            found.update({plan.key(name): weight for name, weight in plan.weights.items()})
        return found

    @property
    def trained(self) -> tuple[str, ...]:
        """Keys of the trained weights."""
        return tuple(key for key, weight in self.weights.items() if weight.trained)

    @property
    def weighted_layers(self) -> tuple[LayerPlan, ...]:
        """The layers that have weights, in order."""
        return tuple(plan for plan in self.every_layer if plan.weights)

    @property
    def l2(self) -> dict[str, float]:
        """Factors of the L2 terms, by key of the kernel."""
        return {plan.kernel_name: plan.l2 for plan in self.weighted_layers if plan.l2}

    @property
    def first_weighted(self) -> int:
        """Index of the first layer that has weights, or has a layer inside it that does."""
        found = (
            index
            for index, plan in enumerate(self.layers)
            if any(each.weights for each in _every((plan,)))
        )
        return next(found, len(self.layers))

    @property
    def convolves(self) -> bool:
        """Whether any layer is a convolution."""
        return any(isinstance(plan.layer, layers.Conv2D) for plan in self.every_layer)

    @property
    def joins_examples(self) -> bool:
        """Whether batch norm makes each example's loss depend on the rest of its batch."""
        return any(isinstance(plan.layer, layers.BatchNorm) for plan in self.every_layer)

    @property
    def parameters(self) -> int:
        """Number of trained values."""
        return sum(plan.parameters for plan in self.every_layer)

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
    if len(workload.model) > MOST_LAYERS:
        raise Misfit(("model",), f"at most {MOST_LAYERS:,} layers", f"{len(workload.model):,}")
    shape = workload.input.network_shape
    plans = plans_of(workload.model, shape)
    output = plans[-1].output_shape
    axes = len(workload.input.outputs_shape)
    if len(output) != axes + 1:
        wanted = "one value per class" if not axes else "one value per token of the vocabulary"
        raise Misfit(
            ("model", len(workload.model) - 1),
            f"{wanted} at the end of the network",
            f"the shape {written(output)}",
        )
    return Model(shape, plans)


def plans_of(model: Sequence[Layer], shape: Shape) -> tuple[LayerPlan, ...]:
    """Lay out layers in a row on inputs of ``shape``; raises Misfit as :func:`lay_out` does."""
    return _Drawing().plans(model, shape, ("model",))


class _Drawing:
    """State while the layers of a network are laid out."""

    def __init__(self) -> None:
        self._counts: dict[str, int] = {}
        self._parameters = self._layers = 0
        self._first = True  # no layer with weights so far
        self._table: tuple[str, Weight] | None = None

    def plans(self, model: Sequence[Layer], shape: Shape, path: Path) -> tuple[LayerPlan, ...]:
        """Lay out layers in a row."""
        plans: list[LayerPlan] = []
        for index, layer in enumerate(model):
            place = (*path, index)
            if isinstance(layer, layers.Repeat):
                for _ in range(layer.times):
                    plans += self.plans(
                        layer.layers, plans[-1].output_shape if plans else shape, (*place, "layers")
                    )
            else:
                plans.append(self._plan(layer, plans[-1].output_shape if plans else shape, place))
        return tuple(plans)

    def _plan(self, layer: Simple | layers.Residual, shape: Shape, path: Path) -> LayerPlan:
        self._counts[layer.kind] = self._counts.get(layer.kind, 0) + 1
        name = f"{layer.kind}{self._counts[layer.kind]}"
        if isinstance(layer, layers.Residual):
            return self._residual(name, layer, shape, path)
        try:
            applied = layer.apply(shape)
            table = ""
            if isinstance(layer, layers.TiedHead):
                applied, table = self._tied(shape)
            if isinstance(layer, layers.TokenEmbedding):
                if sum(self._counts.values()) > 1:
                    raise Misfit(
                        (),
                        "'token-embedding' as the first layer, on tokens",
                        "another layer before it",
                    )
                self._table = f"{name}.table", applied.weights["table"]
            self._require_room(applied)
        except Misfit as misfit:
            raise Misfit((*path, *misfit.path), misfit.expected, misfit.found) from None
        macs = applied.macs
        by_input = 0 if self._first else macs
        self._first &= not applied.weights
        return LayerPlan(
            name,
            layer,  # type: ignore[arg-type]
            shape,
            applied.output,
            applied.weights,
            macs,
            by_input,
            table=table,
        )

    def _residual(self, name: str, layer: layers.Residual, shape: Shape, path: Path) -> LayerPlan:
        first = self._first
        body = self.plans(layer.body, shape, (*path, "body"))
        neither = self._first
        self._first = first
        shortcut = self.plans(layer.shortcut, shape, (*path, "shortcut"))
        self._first &= neither
        output = body[-1].output_shape
        other = shortcut[-1].output_shape if shortcut else shape
        if output != other:
            where = "shortcut" if shortcut else "body"
            raise Misfit(
                (*path, where),
                f"branches of equal shape, {written(output)} in the body",
                f"the shape {written(other)}",
            )
        inside = (*body, *shortcut)
        forward = sum(plan.forward_macs for plan in inside)
        by_input = sum(plan.input_gradient_macs for plan in inside)
        return LayerPlan(name, layer, shape, output, {}, forward, by_input, body, shortcut)

    def _tied(self, shape: Shape) -> tuple[Applied, str]:
        if self._table is None:
            raise Misfit((), "a 'token-embedding' before 'tied-head'", "none")
        key, (of_table, *_) = self._table
        vocabulary, width = of_table
        if shape[-1] != width:
            raise Misfit(
                (), f"vectors of the embedding's width, {width}", f"the shape {written(shape)}"
            )
        return Applied((*shape[:-1], vocabulary), {}, math.prod(shape) * vocabulary), key

    def _require_room(self, applied: Applied) -> None:
        """Raise Misfit for a network too large for any machine, before its memory is allocated."""
        self._layers += 1
        self._parameters += sum(math.prod(weight.shape) for weight in applied.weights.values())
        if self._layers > MOST_LAYERS:
            raise Misfit((), f"at most {MOST_LAYERS:,} layers", "more")
        if self._parameters > MOST_PARAMETERS:
            raise Misfit(
                (),
                f"a network of at most {MOST_PARAMETERS:,} weights",
                f"{Decimal(self._parameters):.3g} up to this layer",
            )
        if math.prod(applied.output) > MOST_VALUES:
            raise Misfit(
                (),
                f"at most {MOST_VALUES:,} values per example",
                f"the shape {written(applied.output)}",
            )


def initial_weights(model: Model, seed: int) -> Weights:
    """Draw weights with NumPy, as float32 in canonical layout; they are the same for every backend.

    Args:
        model: the network.
        seed: seed of this run; each layer has a separate stream, so changing one layer does not
            affect the others.
    """
    weights: Weights = {}
    for index, plan in enumerate(model.every_layer):
        rng = np.random.Generator(np.random.PCG64([seed, index]))
        for name, weight in plan.weights.items():
            weights[plan.key(name)] = weight.initial.draw(rng, weight.shape, *weight.fans).astype(
                np.float32
            )
    return weights


def _every(plans: Sequence[LayerPlan]) -> Iterator[LayerPlan]:
    for plan in plans:
        yield from _every((*plan.body, *plan.shortcut))
        yield plan
