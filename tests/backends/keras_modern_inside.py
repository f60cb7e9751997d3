"""Today's networks on Keras against NumPy, run by ``test_keras_modern.py`` in a process for each engine.

Every constant that could be mistaken is far from what a framework would take, and double precision shows it.
"""

from __future__ import annotations

import dataclasses
import os
from typing import Any

import numpy as np
import pytest

from trainmark.backends import registry
from trainmark.backends.base import EpochPlan, Options
from trainmark.backends.numpy.backend import NumpyBackend
from trainmark.data.dataset import Dataset, Split
from trainmark.workload import layers
from trainmark.workload.initializers import Normal
from trainmark.workload.layers import BatchNorm, Conv2D, Dense, LayerNorm, MaxPool, ReLU, Residual
from trainmark.workload.losses import SoftmaxCrossEntropy
from trainmark.workload.model import initial_weights, lay_out
from trainmark.workload.optimizers import SGD, AdamW, Group, PiecewiseLinear, WarmupCosine
from trainmark.workload.pixels import Augmentation, Input, Standardize, draw_augmentation
from trainmark.workload.schedule import Batches
from trainmark.workload.spec import Workload
from trainmark.workload.tokens import Tokens
from trainmark_conformance.cases import a_workload

NAME = os.environ.get("KERAS_ENTRY", "keras")
RTOL = {"fp32": 2e-4, "fp64": 1e-10}
PRECISIONS = ("fp32",) if NAME == "keras:torch" else ("fp32", "fp64")
STEPS, SIZE, LENGTH, VOCABULARY = 4, 4, 6, 11
WIDE = Normal(0.5)

backend = registry.load(NAME)
STYLES = pytest.mark.parametrize("style", ["idiomatic", "fast"])


def language_model(dropout: float = 0.0) -> Workload:
    return a_workload(
        layers.TokenEmbedding(VOCABULARY, 8, WIDE),
        layers.PositionEmbedding(9, WIDE),
        Residual((LayerNorm(0.3, shift=False), layers.Attention(2, dropout, qkv=WIDE, out=WIDE))),
        Residual((Dense(8), layers.GELU())),
        LayerNorm(0.2),
        layers.TiedHead(),
        input=Tokens(LENGTH),
        loss=SoftmaxCrossEntropy(smoothing=0.2),
        optimizer=AdamW(
            0.05,
            0.8,
            0.9,
            1e-3,
            0.3,
            (Group("vectors", 0.0), Group("*.qkv", 0.7)),
            course=WarmupCosine(2, 5, 0.01),
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
            (Conv2D(8, 3, 1, 2, bias="none"), BatchNorm(), ReLU(), Conv2D(8, 3, "same", l2=0.1)),
            (Conv2D(8, 1, "valid", 2, bias="none"), BatchNorm(0.7)),
        ),
        layers.AveragePool(2, 1),
        layers.GlobalAveragePool(),
        Dense(10, bias="none"),
        layers.Scale(0.3),
        input=Input(
            (12, 10, 3),
            1.0,
            standardize=Standardize((110.0, 120.0, 130.0), (60.0, 70.0, 80.0)),
            augment=Augmentation(2, flip=True, cutout=3),
        ),
        loss=SoftmaxCrossEntropy(reduction="sum"),
        optimizer=optimizer,
        batches=Batches(SIZE),
    )


COURSE = PiecewiseLinear(((0, 0.2), (2, 1.0), (5, 0.1)))
CASES = {
    "text": language_model(),
    "images, buffer": residual_network(SGD(0.02, 0.9, nesterov=True, weight_decay=0.1, course=COURSE, clip_norm=5.0)),
    "images, velocity": residual_network(SGD(0.02, 0.9, "velocity", nesterov=True, course=COURSE)),
}


def data_of(workload: Workload) -> Dataset:
    rng = np.random.default_rng(3)
    if workload.is_text:
        train, test = (rng.integers(0, VOCABULARY, count).astype(np.uint8) for count in (60, 31))
        splits = (Split(each[None], each[None], each) for each in (train, test))
        return Dataset("made-up", *splits, "", True).windows(LENGTH)
    splits = (
        Split(rng.integers(0, 256, (count, *workload.input.shape), dtype=np.uint8), rng.integers(0, 10, count))  # type: ignore[union-attr]
        for count in (30, 9)
    )
    return Dataset("made-up", *splits, "", True)


def plan_of(workload: Workload) -> EpochPlan:
    rng = np.random.default_rng(4)
    spec = workload.augmented_input
    draws = None if spec is None else draw_augmentation(spec, STEPS * SIZE, rng)
    return EpochPlan((SIZE,) * STEPS, rng.integers(0, 30, STEPS * SIZE), False, draws)


def a_trainer(made: Any, workload: Workload, style: str, precision: str = "fp32", **options: Any) -> Any:
    model = lay_out(workload)
    trainer = made.trainer(workload, model, data_of(workload), Options(style, "cpu", precision, 1, **options))  # type: ignore[arg-type]
    weights = initial_weights(model, seed=1)
    rng = np.random.default_rng(5)  # scales of 1 and shifts of 0 would hide an exchange
    trainer.load({key: value + rng.normal(0, 0.1, value.shape).astype(np.float32) for key, value in weights.items()})
    return trainer


def results(made: Any, workload: Workload, style: str, precision: str) -> dict[str, Any]:
    """Return everything that can be compared, by name."""
    trainer = a_trainer(made, workload, style, precision, keeps_gradients=True)
    plan, examples = plan_of(workload), np.arange(2, 7)
    found: dict[str, Any] = {}
    outputs = trainer.activations(examples, training=False)
    trainer.compile(plan)
    trainer.begin_epoch(plan)
    for count in (1, STEPS - 1):
        steps = trainer.read(trainer.train(count, lambda: None))
        state = trainer.state()
        found |= {f"losses, {count}": steps.losses, f"hits, {count}": steps.hits}
        found |= {f"gradient of {key}, {count}": value for key, value in trainer.gradients().items()}
        found |= {f"{key}, {count}": value for key, value in state.weights.items()}
        found |= {f"{slot} of {key}, {count}": each[key] for slot, each in state.slots.items() for key in each}
    whole, some = trainer.evaluate("test"), trainer.evaluate("train", np.array([5, 1, 8, 8, 2]))
    found |= {"evaluation": np.array([*dataclasses.astuple(whole), *dataclasses.astuple(some)])}
    found |= {f"output of {name}": value for name, value in outputs.items()}
    return found | {"outputs": trainer.outputs(data_of(workload).test.images[:3])}


@STYLES
@pytest.mark.parametrize(
    ("name", "precision"),
    [(name, PRECISIONS[-1]) for name in CASES] + [("text", each) for each in PRECISIONS[:-1]],
)
def test_it_computes_what_numpy_does(name: str, precision: str, style: str) -> None:
    expected, found = (
        results(made, CASES[name], way, precision) for made, way in ((NumpyBackend(), "idiomatic"), (backend, style))
    )
    assert found.keys() == expected.keys()
    rtol = RTOL[precision]
    for what, value in expected.items():
        np.testing.assert_allclose(found[what], value, rtol=rtol, atol=rtol * np.abs(value).max(), err_msg=what)


def test_running_averages_are_neither_trained_nor_kept_from_a_load() -> None:
    trainer = a_trainer(backend, CASES["images, buffer"], "idiomatic", keeps_gradients=True)
    before = trainer.state()
    trainer.begin_epoch(plan_of(CASES["images, buffer"]))
    trainer.train(2, lambda: None)
    assert not {key for key in trainer.gradients() if key.endswith((".mean", ".variance"))}
    assert np.abs(trainer.state().weights["batch-norm1.mean"] - before.weights["batch-norm1.mean"]).max() > 1e-3
    trainer.set_state(before)
    for key, value in before.weights.items():
        np.testing.assert_array_equal(trainer.state().weights[key], value)


@STYLES
def test_attention_drops_in_training_only(style: str) -> None:
    dropping, plain = (a_trainer(backend, language_model(rate), style) for rate in (0.5, 0.0))
    examples = np.arange(4)
    one, other = (dropping.activations(examples, training=True)["attention1"] for _ in range(2))
    assert not np.allclose(one, other)
    for key, value in plain.activations(examples, training=False).items():
        np.testing.assert_allclose(
            dropping.activations(examples, training=False)[key], value, rtol=1e-4, atol=1e-5, err_msg=key
        )
