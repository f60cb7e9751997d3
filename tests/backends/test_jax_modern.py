"""Today's networks on JAX against NumPy, in double precision.

Every constant that could be mistaken is far from its usual value, so that a mistake can't hide in the tolerance.
"""

from __future__ import annotations

import dataclasses
from functools import partial
from typing import Any

import numpy as np
import pytest

from trainmark.backends import registry
from trainmark.backends.base import EpochPlan, Options, Style
from trainmark.data.dataset import Dataset, Split
from trainmark.workload import layers
from trainmark.workload.initializers import Normal
from trainmark.workload.layers import BatchNorm, Conv2D, Dense, Dropout, Layer, LayerNorm, MaxPool, ReLU, Residual
from trainmark.workload.losses import SoftmaxCrossEntropy
from trainmark.workload.model import initial_weights, lay_out
from trainmark.workload.optimizers import SGD, AdamW, Group, PiecewiseLinear, WarmupCosine, WeightAverage
from trainmark.workload.pixels import Augmentation, Input, Standardize, augment, draw_augmentation
from trainmark.workload.products import Convolution, Product
from trainmark.workload.schedule import Batches, Schedule
from trainmark.workload.spec import Workload
from trainmark.workload.tokens import Tokens
from trainmark_conformance.cases import a_workload

jax = pytest.importorskip("jax", reason="jax is not installed")

STEPS, SIZE, CLASSES, WIDE = 4, 4, 10, Normal(0.5)
TEXT, IMAGES = (
    Tokens(6),
    Input(
        (12, 10, 3),
        divide_by=1,
        standardize=Standardize((110.0, 120.0, 130.0), (60.0, 70.0, 80.0)),
        augment=Augmentation(pad=2, flip=True, cutout=3),
    ),
)
STYLES = pytest.mark.parametrize("style", ["idiomatic", "fast"])


def language_model(dropout: float = 0.0) -> Workload:
    return a_workload(
        layers.TokenEmbedding(CLASSES, 8, WIDE),
        layers.PositionEmbedding(9, WIDE),
        Residual((LayerNorm(0.3, shift=False), layers.Attention(2, dropout, WIDE, WIDE))),
        Residual((LayerNorm(), Dense(16, bias="none"), layers.GELU(), Dense(8))),
        LayerNorm(0.2),
        layers.TiedHead(),
        input=TEXT,
        loss=SoftmaxCrossEntropy(smoothing=0.2),
        optimizer=AdamW(
            learning_rate=0.05,
            beta1=0.8,
            beta2=0.9,
            epsilon=1e-3,
            weight_decay=0.3,
            groups=(Group("vectors", 0.0), Group("*.qkv", 0.7)),
            course=WarmupCosine(1, 3, lowest=0.01),
            clip_norm=0.5,
        ),
        batches=Batches(SIZE),
    )


def residual_network(optimizer: SGD) -> Workload:
    return a_workload(
        Conv2D(6, 3, 1, bias="none"),
        BatchNorm(0.3, 0.1),
        ReLU(),
        MaxPool(3, 2, 1),
        Residual(
            (Conv2D(8, 3, 1, stride=2, bias="none"), BatchNorm(), ReLU(), Conv2D(8, 3, "same", l2=0.1)),
            (Conv2D(8, 1, stride=2, bias="none"), BatchNorm(0.7)),
        ),
        layers.AveragePool(2, 1),
        layers.GlobalAveragePool(),
        Dense(CLASSES, bias="none"),
        layers.Scale(0.3),
        input=IMAGES,
        loss=SoftmaxCrossEntropy(reduction="sum"),
        optimizer=optimizer,
        batches=Batches(SIZE),
    )


def small_network(optimizer: SGD, **changes: Any) -> Workload:
    inner = Conv2D(5, 3, 0, stride=2), BatchNorm(), layers.GlobalAveragePool(), Dense(CLASSES)
    return a_workload(*inner, input=IMAGES, loss=SoftmaxCrossEntropy(), optimizer=optimizer, **changes)


COURSE = PiecewiseLinear(((0, 0.2), (2, 1.0), (3, 0.1)))
WORKLOADS = {
    "text": language_model(),
    "images, buffer": residual_network(SGD(0.02, 0.9, nesterov=True, weight_decay=0.1, course=COURSE, clip_norm=5.0)),
    "images, velocity": small_network(
        SGD(0.02, 0.9, "velocity", nesterov=True, course=COURSE, groups=(Group("matrices", 0.2),)),
        batches=Batches(SIZE),
        weight_average=WeightAverage(0.9),
    ),
    "all images at every step": small_network(SGD(0.1), batches=Batches("full"), schedule=Schedule(1, shuffle="never")),
}


def made_up(workload: Workload) -> Dataset:
    rng = np.random.default_rng(3)
    if workload.is_text:
        texts = (rng.integers(0, CLASSES, count).astype(np.uint8) for count in (60, 31))
        return Dataset("made-up", *(Split(text[None], text[None], text) for text in texts), "", True).windows(6)
    images, labels = rng.integers(0, 256, (39, *IMAGES.shape), np.uint8), rng.integers(0, CLASSES, 39)
    return Dataset("made-up", Split(images[:30], labels[:30]), Split(images[30:], labels[30:]), "", True)


def an_epoch(workload: Workload) -> EpochPlan:
    rng, whole = np.random.default_rng(4), workload.batches.size == "full"
    sizes = (30 if whole else SIZE,) * STEPS
    draws = draw_augmentation(IMAGES, sum(sizes), rng) if workload.augmented_input else None
    return EpochPlan(sizes, None if whole else rng.integers(0, 30, sum(sizes)), whole, draws)


def a_trainer(backend: str, style: Style, workload: Workload, precision: Any = "fp64") -> Any:
    model, options = lay_out(workload), Options(style, "cpu", precision, 1, keeps_gradients=True)
    trainer = registry.load(backend).trainer(workload, model, made_up(workload), options)
    rng = np.random.default_rng(5)  # scales of 1 and shifts of 0 would hide an exchange
    trainer.load({key: value + rng.random(value.shape) / 5 for key, value in initial_weights(model, seed=1).items()})
    return trainer


def results(trainer: Any, workload: Workload) -> dict[str, Any]:
    """Return what can be compared, by name."""
    plan, data, examples = an_epoch(workload), made_up(workload), np.array([5, 1, 8, 8, 2])
    found = {f"output of {name}": y for name, y in trainer.activations(examples, training=False).items()}
    trainer.compile(plan)
    trainer.begin_epoch(plan)
    for count in (1, STEPS - 1):
        steps = trainer.read(trainer.train(count, lambda: None))
        state = trainer.state()
        found |= {f"losses, {count}": steps.losses, f"hits, {count}": steps.hits}
        of_weights = {"gradient": trainer.gradients(), "value": state.weights, **state.slots}
        found |= {f"{what} of {key}, {count}": y for what, arrays in of_weights.items() for key, y in arrays.items()}
    found |= {f"average of {key}": state.average[key] for key in lay_out(workload).trained if state.average}
    if not workload.weight_average:
        evaluations = trainer.evaluate("test"), trainer.evaluate("train", examples)
        found["evaluations"] = np.array([dataclasses.astuple(each) for each in evaluations])
    return found | {"outputs": trainer.outputs(data.test.images[:3])}


@STYLES
@pytest.mark.parametrize("name", WORKLOADS)
def test_it_computes_what_numpy_does(name: str, style: Style) -> None:
    workload = WORKLOADS[name]
    expected = results(a_trainer("numpy", "idiomatic", workload), workload)
    found = results(a_trainer("jax", style, workload), workload)
    assert found.keys() == expected.keys()
    for what, value in expected.items():
        np.testing.assert_allclose(found[what], value, rtol=1e-9, atol=1e-12, err_msg=what)


@STYLES
def test_images_are_not_augmented_without_draws(style: Style) -> None:
    workload = WORKLOADS["images, velocity"]
    plan = dataclasses.replace(an_epoch(workload), augmented=None)
    losses = []
    for trainer in (a_trainer("jax", style, workload), a_trainer("numpy", "idiomatic", workload)):
        trainer.begin_epoch(plan)
        losses.append(trainer.read(trainer.train(STEPS, lambda: None)).losses)
    np.testing.assert_allclose(*losses, rtol=1e-9)


def test_an_image_is_augmented_as_defined() -> None:
    from trainmark.backends.jax import pixels

    rng = np.random.default_rng(0)
    x, draws = rng.random((50, *IMAGES.shape), np.float32), draw_augmentation(IMAGES, 50, rng)
    np.testing.assert_array_equal(pixels.augment(IMAGES, jax.numpy.asarray(x), draws), augment(IMAGES, x, draws))


@STYLES
def test_attention_drops_shares_in_training_only(style: Style) -> None:
    """With queries of 0, every position seen has the same share; with values of 1, the output is the sum of shares."""
    workload = a_workload(
        layers.TokenEmbedding(CLASSES, 8),
        layers.Attention(2, 0.25),
        layers.TiedHead(),
        input=Tokens(6),
        batches=Batches(SIZE),
    )
    trainer = a_trainer("jax", style, workload, "fp32")
    weights = trainer.weights()
    weights["token-embedding1.table"][:] = 0.125
    weights["attention1.qkv"][:] = np.repeat([0, 0, 1], 8)
    weights["attention1.out"] = np.eye(8, dtype=np.float32)
    trainer.load(weights)
    examples = np.resize(np.arange(50), 400)
    off, on = (trainer.activations(examples, training=each)["attention1"][..., ::4] for each in (False, True))
    np.testing.assert_allclose(off, 1, rtol=1e-5)
    first = on[:, 0]  # sees only itself
    assert set(np.round(np.unique(first), 4)) == {0, np.round(1 / 0.75, 4)}
    assert (first == 0).mean() == pytest.approx(0.25, abs=0.05)
    assert on.mean() == pytest.approx(1, abs=0.05)


def test_each_layer_drops_other_values() -> None:
    inner: tuple[Layer, ...] = (Dropout(0.5), Dropout(0.5))
    workload = a_workload(
        layers.TokenEmbedding(CLASSES, 8), *(Residual(inner) for _ in range(2)), layers.TiedHead(), input=Tokens(6)
    )
    trainer = a_trainer("jax", "fast", workload, "fp32")
    found = trainer.activations(np.arange(20), training=True)
    kept = [
        found["dropout1"] != 0,
        found["dropout2"][found["dropout1"] != 0] != 0,
        found["dropout3"][found["residual1"] != 0] != 0,
    ]
    for each in kept:
        assert each.mean() == pytest.approx(0.5, abs=0.1)
    both = found["residual1"] != 0
    same = (found["dropout1"][both] != 0) == (found["dropout3"][both] != 0)
    assert 0.3 < same.mean() < 0.9


def test_single_precision_follows_double() -> None:
    workload = WORKLOADS["text"]
    found = {}
    for precision in ("fp32", "fp64"):
        trainer = a_trainer("jax", "fast", workload, precision)
        trainer.begin_epoch(an_epoch(workload))
        found[precision] = trainer.read(trainer.train(STEPS, lambda: None)).losses
    np.testing.assert_allclose(found["fp32"], found["fp64"], rtol=2e-6)
    assert not np.array_equal(found["fp32"], found["fp64"])


def test_limits_repeat_products_and_stride() -> None:
    from trainmark.backends.jax.limits import _in_a_row, _layers_in_a_row

    limits = registry.load("jax").limits(Options("fast", "cpu", "fp32", 1))  # type: ignore[attr-defined]
    several, turned = Product(5, 3, 4, number=6), Product(5, 3, 4, turned=True, number=6)
    convolution = Convolution(2, 4, 3, 3, 3, 5, by_input=True, padding=1, stride=2)
    asked = [several, turned, Product(5, 3, 4)]
    shapes = jax.eval_shape(partial(_in_a_row, asked), limits._random(asked))
    assert [each.shape for each in shapes] == [(6, 5, 4), (6, 5, 4), (5, 4)]
    [(y, gradients)] = jax.eval_shape(partial(_layers_in_a_row, [convolution]), limits._random([convolution]))
    assert y.shape == (2, 4, 3, 5)
    assert [each.shape for each in gradients] == [(2, 7, 5, 3), (3, 3, 3, 5)]
