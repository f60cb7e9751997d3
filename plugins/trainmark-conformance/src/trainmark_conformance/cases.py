"""Small trainings that are the same on every machine: network, first weights, images and
batches.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from trainmark.backends.base import EpochPlan
from trainmark.data.dataset import Dataset, Split
from trainmark.workload import catalog
from trainmark.workload.initializers import Uniform
from trainmark.workload.layers import (
    ChannelDropout,
    Conv2D,
    Dense,
    Dropout,
    Flatten,
    Layer,
    LocalResponseNorm,
    LogSoftmax,
    MaxPool,
    ReLU,
)
from trainmark.workload.losses import (
    ClippedCrossEntropy,
    NegativeLogLikelihood,
    SoftmaxCrossEntropy,
    TwoStageCrossEntropy,
)
from trainmark.workload.model import Model, Weights, initial_weights, lay_out
from trainmark.workload.optimizers import SGD, Adam, Optimizer, RMSprop, Staircase
from trainmark.workload.pixels import Distortions, Input, Standardize, draw_augmentation
from trainmark.workload.schedule import Batches, Schedule
from trainmark.workload.size import Size
from trainmark.workload.spec import Workload
from trainmark.workload.tokens import Tokens

PLAIN_RATE = 1024.0
"""Rate of the one step that shows a gradient, ``g = (w0 - w1) / rate``. ``w1`` is nearly ``-rate ·
g``, so the rounding of the returned float32 weights costs 2^-24 of the gradient itself; a small
rate would leave only its last digits."""


@dataclass(frozen=True)
class Case:
    """One training.

    Args:
        name: id of its tests.
        workload: what is trained; without random parts if it is compared with the oracle.
        sizes: number of examples of each step of an epoch.
        train: number of examples of the training set.
        test: number of examples of the test set.
        nudged: start from weights that are one unit in the last place larger.
        given: data to use instead of random images.
    """

    name: str
    workload: Workload
    sizes: tuple[int, ...]
    train: int = 24
    test: int = 11
    nudged: bool = False
    given: Dataset | None = None

    def __str__(self) -> str:
        return self.name

    @property
    def model(self) -> Model:
        """Its network, with the shapes of all layers."""
        return lay_out(self.workload)

    @property
    def data(self) -> Dataset:
        """Random images, all different, or windows of random tokens, unless others are given."""
        return self.given or _random(self.workload.input, self.model.classes, self.train, self.test)

    @property
    def weights(self) -> Weights:
        """Its first weights."""
        weights = initial_weights(self.model, seed=3)
        rng = np.random.default_rng(5)
        for name, value in weights.items():
            if np.ptp(value) == 0:  # a forgotten or swapped scale of 1 or shift of 0 would not show
                weights[name] = (value + rng.random(value.shape) / 4).astype(np.float32)
        return (
            {name: np.nextafter(w, np.float32(np.inf)) for name, w in weights.items()}
            if self.nudged
            else weights
        )

    @property
    def plan(self) -> EpochPlan:
        """An epoch in a shuffled order, or with the whole training set at every step; augmented if
        the workload is.
        """
        taken = sum(self.sizes)
        spec = self.workload.augmented_input
        draws = None if spec is None else draw_augmentation(spec, taken, np.random.default_rng(4))
        if self.workload.batches.size == "full":
            return EpochPlan(self.sizes, None, whole=True, augmented=draws)
        passes = [
            np.random.default_rng(1 + start).permutation(self.train)
            for start in range(0, taken, self.train)
        ]
        return EpochPlan(self.sizes, np.concatenate(passes)[:taken], augmented=draws)

    def changed(self, **changes: Any) -> Case:
        """Change its workload.

        Args:
            changes: fields of the workload with other values, by name.

        Returns:
            The changed case.
        """
        return dataclasses.replace(self, workload=dataclasses.replace(self.workload, **changes))


@cache
def _random(input_: Input | Tokens, classes: int, train: int, test: int) -> Dataset:
    rng = np.random.default_rng(7)

    def draw(count: int) -> Split:
        if isinstance(input_, Tokens):
            tokens = rng.integers(0, classes, count + input_.length, dtype=np.uint16)
            return Split.of_text(tokens).windows(input_.length)
        images = rng.integers(0, 256, (count, *input_.shape), dtype=np.uint8)
        return Split(images, rng.integers(0, classes, count, dtype=np.min_scalar_type(classes - 1)))

    return Dataset("random", draw(train), draw(test), "", True)


def all_of_class_1(images: NDArray[np.uint8]) -> Dataset:
    """Make a dataset from images.

    Args:
        images: images, ``[examples, height, width, channels]``.

    Returns:
        A dataset with these images as training and as test set, all of class 1.
    """
    labels = np.ones(len(images), np.uint8)
    return Dataset("made-up", Split(images, labels), Split(images.copy(), labels.copy()), "", True)


def a_workload(*layers: Layer, **changes: Any) -> Workload:
    """Make a workload, by default one that any backend can train.

    Args:
        layers: its network; by default two dense layers, whose biases are not zero, so a forgotten
            bias shows.
        changes: other fields of the workload, by name.

    Returns:
        The workload.
    """
    fields: dict[str, Any] = {
        "name": "small",
        "title": "A small network",
        "dataset": "random-images",
        "input": Input((4, 4, 1)),
        "model": layers or (Flatten(), dense(8), ReLU(), dense(10)),
        "loss": SoftmaxCrossEntropy(),
        "optimizer": SGD(0.1),
        "batches": Batches(8),
        "schedule": Schedule(epochs=1),
    }
    return Workload(**(fields | changes))


def dense(units: int, **changes: Any) -> Dense:
    """Make a dense layer with biases.

    Args:
        units: number of outputs.
        changes: other fields of the layer, by name.

    Returns:
        The layer.
    """
    return Dense(units, bias=Uniform(0.5), **changes)


def conv(filters: int, size: int, padding: Any = "valid", **changes: Any) -> Conv2D:
    """Make a convolution with biases.

    Args:
        filters: number of output channels.
        size: height and width of the kernel, in pixels.
        padding: ``valid`` or ``same``.
        changes: other fields of the layer, by name.

    Returns:
        The layer.
    """
    return Conv2D(filters, size, padding, bias=Uniform(0.5), **changes)


def one_step(name: str, *layers: Layer, **changes: Any) -> Case:
    """Make a case of one step of plain gradient descent. The image is not square, so swapped axes
    show.

    Args:
        name: id of its tests.
        layers: its network.
        changes: fields of the workload with other values, by name.

    Returns:
        The case.
    """
    fields = {
        "input": Input((7, 6, 2)),
        "optimizer": SGD(PLAIN_RATE),
        "batches": Batches(12),
    } | changes
    return Case(name, a_workload(*layers, **fields), (12,))


_END = (Flatten(), dense(10))
_MLP = (Flatten(), dense(8), ReLU(), dense(10))
_NLL = NegativeLogLikelihood()

NETWORKS = (
    one_step("mlp", *_MLP),
    one_step("log-softmax and nll", *_MLP, LogSoftmax(), loss=_NLL),
    one_step("softmax then log", *_MLP, loss=TwoStageCrossEntropy()),
    one_step("clipped, all within", *_MLP, loss=ClippedCrossEntropy(1e-7)),
    one_step("clipped, some outside", *_MLP, loss=ClippedCrossEntropy(0.09)),
    one_step("l2 of dense", Flatten(), dense(8, l2=0.1), ReLU(), dense(10, l2=0.02)),
    one_step("l2 of conv", conv(3, 3, l2=0.1), ReLU(), *_END),
    one_step("conv", conv(3, 3), ReLU(), conv(4, 2), *_END),
    one_step("conv, odd and padded", conv(3, 5, "same"), ReLU(), *_END),
    one_step("conv, even and padded", conv(3, 2, "same"), ReLU(), conv(3, 4, "same"), *_END),
    one_step("relu after flatten", conv(3, 3), Flatten(), ReLU(), dense(10)),
    one_step("max-pool", conv(3, 2), MaxPool(2, 2), ReLU(), *_END),
    one_step("max-pool, overlapping", conv(3, 2), MaxPool(3, 2), *_END),
    # No ReLU in between: where all of a window is negative, a padding of zeros would win.
    one_step("max-pool, overlapping and padded", conv(3, 3, "same"), MaxPool(3, 2, "same"), *_END),
    one_step("max-pool, even and padded", conv(3, 3), MaxPool(2, 1, "same"), *_END),
    one_step("max-pool, gaps", conv(3, 2), MaxPool(2, 3), *_END),
    one_step(
        "local-response-norm", conv(5, 3), LocalResponseNorm(1, 0.3, 0.75, 2.0), ReLU(), *_END
    ),
    one_step(
        "local-response-norm, wide", conv(5, 3), ReLU(), LocalResponseNorm(4, 0.5, 0.5), *_END
    ),
    one_step("divided by 256", *_MLP, input=Input((7, 6, 2), divide_by=256.0)),
    one_step("standardised", *_MLP, input=Input((7, 6, 2), standardize=Standardize(0.13, 0.31))),
    one_step(
        "distorted by nothing",
        *_MLP,
        input=Input(
            (7, 6, 2), standardize_each=True, distortions=Distortions(False, 0.0, (1.0, 1.0))
        ),
    ),
    one_step("cropped", conv(3, 3, "same"), *_END, input=Input((8, 7, 3), 256.0, crop=5)),
    one_step(
        "cropped, each standardised",
        conv(3, 3),
        *_END,
        input=Input((8, 7, 3), 1.0, crop=5, standardize_each=True),
    ),
)

WITH_DROPOUT = (
    Case(
        "dropout",
        a_workload(Flatten(), Dropout(0.5), dense(8), ReLU(), Dropout(0.25), dense(10)),
        (8,),
    ),
    Case("channel-dropout", a_workload(conv(3, 2), ChannelDropout(0.5), ReLU(), *_END), (8,)),
)


def of_optimizers(optimizers: Mapping[str, Optimizer]) -> tuple[Case, ...]:
    """Make a case of five steps for each optimiser; the last batch is smaller than the others.

    Args:
        optimizers: the optimisers, by name of the case.

    Returns:
        The cases.
    """
    return tuple(
        Case(name, a_workload(optimizer=optimizer), (8, 8, 8, 8, 3), train=35)
        for name, optimizer in optimizers.items()
    )


# ε is as large as the gradients, so the first step shows if it is in the wrong place. The rates
# change twice within the steps.
OPTIMIZERS = of_optimizers(
    {
        "sgd": SGD(0.5),
        "sgd, staircase": SGD(0.5, staircase=Staircase(0.3, 2)),
        "sgd, momentum": SGD(0.5, momentum=0.9),
        "sgd, velocity": SGD(0.5, momentum=0.9, momentum_form="velocity"),
        "sgd, momentum, staircase": SGD(0.5, momentum=0.9, staircase=Staircase(0.3, 2)),
        "sgd, velocity, staircase": SGD(
            0.5, momentum=0.9, momentum_form="velocity", staircase=Staircase(0.3, 2)
        ),
        "sgd, weight decay": SGD(0.5, weight_decay=0.1),
        "sgd, weight decay without biases": SGD(0.5, weight_decay=0.1, decay_biases=False),
        "sgd, momentum, weight decay": SGD(0.5, momentum=0.9, weight_decay=0.1),
        "sgd, velocity, weight decay without biases, staircase": SGD(
            0.5, 0.9, "velocity", weight_decay=0.1, decay_biases=False, staircase=Staircase(0.3, 2)
        ),
        "adam": Adam(0.05, beta1=0.8, beta2=0.95, epsilon=0.02),
        "adam, staircase": Adam(0.05, epsilon=0.02, staircase=Staircase(0.3, 2)),
        "rmsprop": RMSprop(0.05, rho=0.8, epsilon=0.02),
        "rmsprop, staircase": RMSprop(0.05, epsilon=0.02, staircase=Staircase(0.3, 2)),
    }
)


_OF_TEXTS = Size(width=16, depth=1, batch=4, length=12)
_SMALL = {
    "shakespeare-gpt": _OF_TEXTS,
    "shakespeare-gpt-10m": _OF_TEXTS,
    "gpt2-124m": _OF_TEXTS,
    "cifar10-resnet9": Size(width=8, batch=4),
    "resnet50": Size(width=8, depth=1, batch=4, crop=40),
}


def _from_catalogue(name: str) -> Case:
    """Five steps of a workload of the catalogue, with small batches and, if it is large, a small
    network.
    """
    workload = dataclasses.replace(catalog.find(name), published=None)
    if workload.batches.size == "full":
        return Case(name, workload, (24,) * 5)
    return Case(name, _SMALL.get(name, Size(batch=4)).of(workload), (4,) * 5)


CATALOGUE = tuple(map(_from_catalogue, catalog.names()))
