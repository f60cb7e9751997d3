"""Weights and windows as nanoGPT draws them in PyTorch after ``torch.manual_seed``.

They are computed without PyTorch.

PyTorch's generator on the CPU is MT19937, as NumPy's is. How its words become numbers is in
PyTorch's ``ATen/core/DistributionsHelper.h``, and for normal ones with AVX2 in
``ATen/native/cpu/DistributionTemplates.h`` and ``avx_mathfun.h``; what is drawn when, in nanoGPT's
``model.py`` and ``train.py``, commit 3adf61e.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from trainmark.workload.initializers import Constant, Normal
from trainmark.workload.model import Model, Weights
from trainmark.workload.schedule import epoch_sizes
from trainmark.workload.spec import Workload

Floats = NDArray[np.float32]

_SD = 0.02
"""Standard deviation of all weights, before the residual projections are redrawn."""
_AT_ONCE = 16
_LOG = (
    7.0376836292e-2,
    -1.1514610310e-1,
    1.1676998740e-1,
    -1.2420140846e-1,
    1.4249322787e-1,
    -1.6668057665e-1,
    2.0000714765e-1,
    -2.4999993993e-1,
    3.3333331174e-1,
)
_F = np.float32


class Generator:
    """PyTorch's generator on the CPU after ``manual_seed(seed)``."""

    def __init__(self, seed: int) -> None:
        self._random = np.random.RandomState(seed)

    def skip(self, words: int) -> None:
        """Draw words and discard them."""
        self._words(words)

    def below(self, limit: int, count: int) -> NDArray[np.int64]:
        """Draw as ``torch.randint(limit, (count,))``, for a limit up to 2^28."""
        return (self._words(count) % np.uint32(limit)).astype(np.int64)

    def normal(self, count: int, sd: float) -> Floats:
        """Draw as ``torch.empty(count).normal_(0, sd)``, for 16 numbers or more."""
        uniform = self._uniform(count)
        whole = count - count % _AT_ONCE
        values = np.empty(count, np.float32)
        values[:whole] = _box_muller(uniform[:whole], sd)
        if whole < count:  # PyTorch redraws the last 16
            values[-_AT_ONCE:] = _box_muller(self._uniform(_AT_ONCE), sd)
        return values

    def _words(self, count: int) -> NDArray[np.uint32]:
        return self._random.randint(0, 1 << 32, count, np.uint32)

    def _uniform(self, count: int) -> Floats:
        return (self._words(count) & np.uint32(0xFFFFFF)).astype(np.float32) * _F(2**-24)


@dataclass(frozen=True)
class Drawn:
    """The random draws of a training.

    Args:
        weights: the initial weights.
        batches: first tokens of the windows of each step, ``[steps, batch]``.
        samples: likewise for each evaluation, ``[evaluations, split, windows]``; the training set
            is the first split.
    """

    weights: Weights
    batches: NDArray[np.int64]
    samples: NDArray[np.int64]

    def sample(self, split: str, index: int) -> NDArray[np.int64]:
        """Return the windows of an evaluation."""
        windows: NDArray[np.int64] = self.samples[index, int(split == "test")]
        return windows


def draw(workload: Workload, model: Model, train: int, test: int) -> Drawn | None:
    """Draw everything for a training; None if the schedule has no ``pytorch_seed``.

    Args:
        train: number of windows of the training set.
        test: number of windows of the test set.
    """
    schedule = workload.schedule
    size = workload.batches.size
    batches_of_sample = workload.metrics.sample
    if schedule.pytorch_seed is None:
        return None
    assert size != "full"
    assert batches_of_sample is not None
    generator = Generator(schedule.pytorch_seed)
    weights = _weights(model, generator)
    batches = [generator.below(train, size)]
    samples = []  # a batch is drawn in the step before
    epochs = epoch_sizes(schedule, workload.batches, train)
    for steps in (*map(len, epochs), 0):
        samples.append(
            [generator.below(examples, batches_of_sample * size) for examples in (train, test)]
        )
        batches += [generator.below(train, size) for _ in range(steps)]
    return Drawn(weights, np.array(batches[:-1]), np.array(samples))


def _weights(model: Model, generator: Generator) -> Weights:
    """Draw as nanoGPT's ``GPT.__init__``."""
    shapes = {
        key: weight.shape
        for key, weight in model.weights.items()
        if isinstance(weight.initial, Normal)
    }
    embeddings = {plan.key("table") for plan in model.weighted_layers if "table" in plan.weights}
    heads = [plan.table for plan in model.every_layer if plan.table]
    # Each module draws its own defaults first: normal ones for an embedding, else uniform ones. A
    # tied head is created and drawn like any other matrix.
    for place, key in enumerate((*shapes, *heads)):
        count = math.prod(shapes[key])
        generator.skip(
            count
            + (_AT_ONCE if place < len(shapes) and key in embeddings and count % _AT_ONCE else 0)
        )
    drawn = {key: generator.normal(math.prod(shapes[key]), _SD) for key in (*shapes, *heads)}
    weights: Weights = {}
    for key, weight in model.weights.items():
        if isinstance(weight.initial, Normal):
            if weight.initial.sd != _SD:
                drawn[key] = generator.normal(math.prod(weight.shape), weight.initial.sd)
            rows, columns = weight.shape  # PyTorch keeps matrices as [outputs, inputs]
            if key in embeddings:
                value = drawn[key].reshape(rows, columns)
            else:
                value = drawn[key].reshape(columns, rows).T
            weights[key] = np.ascontiguousarray(value)
        else:
            assert weight.initial == Constant(1.0)  # the scale of a layer norm
            weights[key] = np.ones(weight.shape, np.float32)
    return weights


def _box_muller(uniform: Floats, sd: float) -> Floats:
    """Return normal numbers from uniform ones, in blocks of 16."""
    first, second = np.moveaxis(uniform.reshape(-1, 2, _AT_ONCE // 2), 1, 0)
    radius = np.sqrt(_F(-2) * _log(_F(1) - first))
    sine, cosine = _sine_and_cosine(_F(2 * math.pi) * second)
    return (np.stack([radius * cosine, radius * sine], 1) * _F(sd)).ravel()


# The next three functions are Cephes' logf, sinf and cosf for our ranges, each operation in float32
# and fused where PyTorch's compiler fuses it: other logarithms and sines differ in the last bit.


def _fused(a: Any, b: Any, c: Any) -> Floats:
    """Return ``a · b + c``, rounded once; a product of two float32 is exact in float64."""
    fused: Floats = (np.multiply(a, b, dtype=np.float64) + c).astype(np.float32)
    return fused


def _polynomial(x: Floats, *coefficients: float) -> Floats:
    """Return the polynomial with these coefficients, the highest power first."""
    y = np.full_like(x, coefficients[0])
    for coefficient in coefficients[1:]:
        y = _fused(y, x, _F(coefficient))
    return y


def _log(x: Floats) -> Floats:
    mantissa, exponent = np.frexp(x)
    small = mantissa < _F(math.sqrt(0.5))
    exponent = (exponent - small).astype(np.float32)
    x = (mantissa - _F(1)) + np.where(small, mantissa, _F(0))
    square = x * x
    y = x * _polynomial(x, *_LOG)
    y = _fused(y, square, exponent * _F(-2.12194440e-4))
    y = x + _fused(square, -0.5, y)
    return _fused(exponent, 0.693359375, y)


def _sine_and_cosine(x: Floats) -> tuple[Floats, Floats]:
    octant = ((x * _F(4 / math.pi)).astype(np.int32) + 1) & ~1
    for part in (-0.78515625, -2.4187564849853515625e-4, -3.77489497744594108e-8):  # of pi/4
        x = _fused(octant, _F(part), x)
    square = x * x
    cosine = (
        _polynomial(square, 2.443315711809948e-5, -1.388731625493765e-3, 4.166664568298827e-2)
        * square
    )
    cosine = _fused(cosine, square, square * _F(-0.5)) + _F(1)
    sine = _polynomial(square, -1.9515295891e-4, 8.3321608736e-3, -1.6666654611e-1) * square
    sine = _fused(sine, x, x)
    swapped = (octant & 2) != 0
    return (
        np.where(swapped, cosine, sine) * np.where(octant & 4, _F(-1), _F(1)),
        np.where(swapped, sine, cosine) * np.where((octant - 2) & 4, _F(1), _F(-1)),
    )
