"""One training step in float64, and how far rounding may move each of its results."""

from __future__ import annotations

import dataclasses
import functools
import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from trainmark.backends.numpy import layers, losses
from trainmark.backends.numpy.arithmetic import EXACT, Arithmetic, Moved
from trainmark.backends.stepwise import Arrays
from trainmark.workload.losses import sums
from trainmark.workload.model import LayerPlan, Model
from trainmark.workload.pixels import Input, prepare
from trainmark.workload.precision import Precision
from trainmark.workload.spec import Workload
from trainmark.workload.tokens import Tokens

Array = NDArray[Any]

SHOWN = 16
"""Number of examples of a batch whose activations are compared."""
_NOTHING = 1e-300
"""Replaces a norm of 0, so that it can be a divisor."""
_REACH = 3.0
"""Distance from a kink, in standard deviations of the moves of a layer's input."""
_SAME = 1e-4
"""Values of a window that differ by less than this share of rounding are equal: they come from
equal inputs."""


@dataclass(frozen=True)
class Expected:
    """What a step computes, each result with the norm of its moves.

    Args:
        repeats: how often each example of the batch counts; 0 if it was replaced.
        near_kinks: number of such units, replaced or not.
        loss: mean loss with L2 terms.
        gradients: by weight, L2 terms included.
        untrained: the weights that are not trained, after the step.
        activations: in evaluation of the first :data:`SHOWN` examples, by layer, the input first;
            empty if not asked for.
    """

    repeats: NDArray[np.int64]
    near_kinks: int
    loss: float
    loss_moves: float
    gradients: dict[str, Array]
    gradient_moves: dict[str, float]
    untrained: dict[str, Array]
    untrained_moves: dict[str, float]
    activations: dict[str, Array]
    activation_moves: dict[str, float]


def pooled(steps: Sequence[Expected]) -> list[Expected]:
    """Return the steps with moves at least as large as those of a typical step.

    These are the moves of loss and gradients.

    The moves of a few numbers, such as the biases of the last layer, are small by chance now and
    then.
    """
    typical = {}
    for name in steps[0].gradients:
        moving = [step for step in steps if step.gradients[name].any()]
        shares = [step.gradient_moves[name] / _norm(step.gradients[name]) for step in moving]
        typical[name] = _mean(shares)
    of_loss = _mean([step.loss_moves / step.loss for step in steps if step.loss])
    return [
        dataclasses.replace(
            step,
            loss_moves=max(step.loss_moves, of_loss * step.loss),
            gradient_moves={
                name: max(moves, typical[name] * _norm(step.gradients[name]))
                for name, moves in step.gradient_moves.items()
            },
        )
        for step in steps
    ]


class Reference:
    """A network without dropout, exactly and with the rounding of a precision.

    Args:
        rng: draws the moves.
    """

    def __init__(
        self, workload: Workload, model: Model, precision: Precision, rng: np.random.Generator
    ) -> None:
        self._workload = workload
        self._model = model
        self._unmixed = Moved(precision, rng, mixed=False)
        self._exact = _Pass(model, EXACT, np.float64)
        # Arithmetic in float32 is faster, and rounds far less than the moves.
        dtype = np.float64 if precision == "fp64" else np.float32
        self._moved = _Pass(model, Moved(precision, rng), dtype)

    def loss(self, weights: Arrays, images: NDArray[Any], labels: NDArray[np.int64]) -> float:
        """Return the loss of a batch in training."""
        self._exact.set(weights)
        x = prepare(self._workload.input, images, np.float64)
        for module in self._exact.modules:
            x = module.forward(x, True)
        return float(
            losses.loss_and_gradient(self._workload.loss, x, labels)[0].mean()
        ) + self._l2_loss(weights)

    def _l2_loss(self, weights: Arrays) -> float:
        return sum(
            0.5 * l2 * float((weights[name] ** 2).sum()) for name, l2 in self._model.l2.items()
        )

    def step(
        self, weights: Arrays, images: NDArray[Any], labels: NDArray[np.int64], *, shows: bool
    ) -> Expected:
        """Compute loss and gradients at ``weights`` on a batch.

        Args:
            shows: whether to return activations, too.
        """
        shown = (
            self._forward(weights, images[:SHOWN], training=False)[-1] if shows else _Seen({}, {})
        )
        x, y, seen = self._forward(weights, images, training=True)
        near = seen.near
        repeats = None if self._model.joins_examples else _repeats(near)
        if repeats is None:
            repeats = np.ones(len(x), np.int64)
            for take in seen.other_sides:
                take()
        each, gradient = losses.loss_and_gradient(self._workload.loss, x, labels)
        moved_each, moved_gradient = losses.loss_and_gradient(self._workload.loss, y, labels)
        moved_each = self._unmixed.rounded(moved_each, terms=1.0)
        moved_gradient = self._unmixed.rounded(
            moved_gradient, terms=1.0 if sums(self._workload.loss) else 1 / labels.size
        )
        counts = repeats.reshape(-1, *(1,) * (x.ndim - 1))
        gradients = self._gradients(self._exact, gradient * counts)
        moved_gradients = self._gradients(
            self._moved, (moved_gradient * counts).astype(self._moved.dtype)
        )
        loss = float((each * repeats).mean())
        l2_loss = self._l2_loss(weights)
        apart = float(np.sqrt(np.mean((moved_each - each)[repeats > 0] ** 2)))
        parameters = sum(value.size for value in weights.values())
        rounding = self._unmixed.unit * (
            math.sqrt(labels.size) * loss + math.sqrt(parameters) * l2_loss
        )
        untrained = [name for name, weight in self._model.weights.items() if not weight.trained]
        return Expected(
            repeats=repeats,
            near_kinks=int(near.sum()),
            loss=loss + l2_loss,
            loss_moves=apart + rounding,
            gradients=gradients,
            gradient_moves={
                name: _norm(moved_gradients[name] - value) for name, value in gradients.items()
            },
            untrained={name: self._exact.weights[name] for name in untrained},
            untrained_moves={
                name: _norm(self._moved.weights[name] - self._exact.weights[name])
                for name in untrained
            },
            activations=shown.outputs,
            activation_moves=shown.moves,
        )

    def _forward(
        self, weights: Arrays, images: NDArray[Any], *, training: bool
    ) -> tuple[Array, Array, _Seen]:
        """Run both passes side by side."""
        self._exact.set(weights)
        self._moved.set(weights)
        spec = self._workload.input
        x = y = prepare(spec, images, np.float64)
        if not isinstance(spec, Tokens):
            y = self._unmixed.rounded(x, terms=_input_terms(spec, images, x)).astype(
                self._moved.dtype
            )
        seen = _Seen({}, {}, np.zeros(len(x), np.int64))
        seen.note("input", x, y)
        x, y = _through(
            self._model.layers, self._exact.modules, self._moved.modules, x, y, training, seen
        )
        return x, y, seen

    def _gradients(self, through: _Pass, gradient: Array) -> dict[str, Array]:
        through.gradients.clear()
        for module in reversed(through.modules[self._model.first_weighted :]):
            gradient = module.backward(gradient)
        for name, l2 in self._model.l2.items():
            through.gradients[name] += l2 * through.weights[name]
        return dict(through.gradients)


def _no_units() -> NDArray[np.int64]:
    return np.zeros(0, np.int64)


@dataclass
class _Seen:
    """Two passes side by side, exact and moved: the output of each layer, and its moves.

    Args:
        near: units near a kink, of each example.
        other_sides: makes these units of the moved pass change sides.
    """

    outputs: dict[str, Array]
    moves: dict[str, float]
    near: NDArray[np.int64] = field(default_factory=_no_units)
    other_sides: list[Callable[[], None]] = field(default_factory=list)

    def note(self, name: str, x: Array, y: Array) -> None:
        """Keep an output of few examples."""
        if len(x) <= SHOWN:
            self.outputs[name] = x
            self.moves[name] = _norm(y - x)


def _through(
    plans: Sequence[LayerPlan],
    exact: Sequence[layers.Module],
    moved: Sequence[layers.Module],
    x: Array,
    y: Array,
    training: bool,
    seen: _Seen,
) -> tuple[Array, Array]:
    for plan, one, other in zip(plans, exact, moved, strict=True):
        if isinstance(one, layers.ResidualModule) and isinstance(other, layers.ResidualModule):
            body = _through(plan.body, one.body, other.body, x, y, training, seen)
            x, y = _through(plan.shortcut, one.shortcut, other.shortcut, x, y, training, seen)
            x = one.joined(body[0], x)
            y = other.joined(body[1], y)
        else:
            kinks = _kinks(one, x, y - x)
            if kinks is not None and isinstance(other, layers.Kinked):
                seen.near += kinks.sum(axis=tuple(range(1, kinks.ndim)))
                seen.other_sides.append(functools.partial(other.take_other_side, kinks, x))
            x = one.forward(x, training)
            y = other.forward(y, training)
        seen.note(plan.name, x, y)
    return x, y


class _Pass:
    """The modules of a network, with one arithmetic."""

    def __init__(self, model: Model, arithmetic: Arithmetic, dtype: Any) -> None:
        self.dtype = dtype
        self.weights: dict[str, Array] = {}
        self.gradients: dict[str, Array] = {}
        chance = np.random.default_rng(0)  # there is no dropout
        self.modules = [
            layers.build(plan, self.weights, self.gradients, chance, arithmetic)
            for plan in model.layers
        ]

    def set(self, weights: Arrays) -> None:
        """Set the weights."""
        self.weights.update({name: value.astype(self.dtype) for name, value in weights.items()})


def _kinks(module: layers.Module, x: Array, moves: Array) -> Array | None:
    """Return which units lie within rounding of a kink, ``[batch, ...]``.

    The result is None for a layer without kinks.

    Exact zeros, and equal values in a window, come from equal inputs, such as a black background:
    any choice gives the same gradients.
    """
    reach = _REACH * np.sqrt((moves**2).mean(axis=tuple(range(1, x.ndim)), keepdims=True))
    if isinstance(module, layers.ReLUModule):
        return (x != 0) & (np.abs(x) <= reach)
    if isinstance(module, layers.MaxPoolModule):
        windows = module.windows(x)
        reach = reach[..., None]
        below = windows.max(axis=-1, keepdims=True) - windows
        return ((below > _SAME * reach) & (below <= 2 * reach)).any(axis=-1)
    return None


def _repeats(units: NDArray[np.int64]) -> NDArray[np.int64] | None:
    """Return how often each example counts.

    Examples ``near`` a kink are replaced by the others in turn.

    The result is None if most are near one, as in few bits: then all count, and the moves include
    that their units change sides.
    """
    near = units > 0
    repeats = (~near).astype(np.int64)
    clear = np.flatnonzero(~near)
    if 2 * clear.size < len(near):
        return None
    np.add.at(repeats, np.resize(clear, int(near.sum())), 1)
    return repeats


def _input_terms(spec: Input, images: NDArray[np.uint8], x: Array) -> Any:
    """Return the size of the terms that cancel when inputs are standardised.

    Also returns the size of the sum in a standard deviation.

    A sum of bytes is exact, so a mean rounds once.
    """
    if spec.standardize_each:
        values = math.prod(spec.network_shape)
        raw = prepare(dataclasses.replace(spec, standardize_each=False), images, np.float64)
        largest, sd = (of(raw, axis=(1, 2, 3), keepdims=True) for of in (np.max, np.std))
        return largest / np.maximum(sd, values**-0.5) + math.sqrt(values) * np.abs(x)
    return (
        np.abs(spec.standardize.mean) / np.asarray(spec.standardize.sd) if spec.standardize else 0.0
    )


def _mean(values: Sequence[float]) -> float:
    """Return the root of the mean square; 0 without values."""
    return math.sqrt(sum(value**2 for value in values) / max(len(values), 1))


def _norm(values: Array) -> float:
    return float(np.sqrt((values**2).sum())) or _NOTHING
