"""Can a mistake hide in the tolerance? PyTorch against the float64 oracle, over 20 steps of real
batches.

The formulas are compared in ``test_conformance.py``. Here the float32 tolerance is held between two
bounds: it lets a right backend pass, and catches a wrong scale, a wrong rate and a misplaced
epsilon. It is measured: twice the distance that the oracle's own losses move when it is run in
float32 instead of float64, or when its first weights are nudged by one unit in the last place.
"""

from __future__ import annotations

import dataclasses
from functools import cache
from typing import Any

import numpy as np
import pytest

from tests.slow import slow
from trainmark.backends import registry
from trainmark.backends.base import EpochPlan, Options
from trainmark.data.dataset import Dataset, Split
from trainmark.execute.worker.order import epoch_plans
from trainmark.workload import catalog
from trainmark.workload.model import initial_weights, lay_out
from trainmark.workload.optimizers import Adam, RMSprop
from trainmark.workload.size import Size
from trainmark.workload.spec import Workload

torch = pytest.importorskip("torch", reason="torch is not installed")

STEPS = 20
EXAMPLES = {"mnist-mlp32": 4_000, "cifar10-cnn": 256}
# the oracle is slow on images; a step's arithmetic does not depend on the batch
BATCH = {"cifar10-cnn": 16}
FLOAT64_TOLERANCE = 1e-10
FLOORS = {"mnist-cnn": 6e-7}
"""Part of the float32 tolerance: a few units in the last place, where the oracle's own losses move
by less than one. A convolution with its channels last sums in another order."""
WORKLOADS = ["mnist-mlp32", "mnist-mlp32:two-stage", "mnist-mlp128", "mnist-mlp512"]


@cache
def workload(name: str) -> Workload:
    found = catalog.find(name).deterministic()
    size = BATCH.get(name)
    return (
        dataclasses.replace(found, batches=dataclasses.replace(found.batches, size=size))
        if size
        else found
    )


@cache
def data(name: str) -> Dataset:
    """Images with a pattern that can be learned: ten prototypes under noise."""
    shape = workload(name).input.shape
    examples = EXAMPLES.get(name.partition(":")[0], 2_000)
    rng = np.random.default_rng(0)
    prototypes = rng.integers(0, 128, (10, *shape), dtype=np.uint8)
    labels = rng.integers(0, 10, examples, dtype=np.uint8)
    images = prototypes[labels] + rng.integers(0, 128, (examples, *shape), dtype=np.uint8)
    split = Split(images, labels)
    small = Split(images[:500].copy(), labels[:500].copy())
    return Dataset("patterns", split, small, "", True)


def plan(trained: Workload, examples: int) -> EpochPlan:
    one_pass = trained.batches.sizes(examples)
    passes = -(-STEPS // len(one_pass))
    order = np.random.default_rng(1).permutation(examples)[: sum(one_pass)]
    sizes = (one_pass * passes)[:STEPS]
    return EpochPlan(sizes, np.tile(order, passes)[: sum(sizes)], trained.batches.size == "full")


def losses(
    trained: Workload, backend: str, style: str, precision: str, *, name: str, nudge: bool = False
) -> np.ndarray[Any, Any]:
    """Return the loss of each of the first steps."""
    model = lay_out(trained)
    weights = initial_weights(model, seed=3)
    if nudge:
        weights = {key: np.nextafter(value, np.float32(np.inf)) for key, value in weights.items()}
    options = Options(style, "cpu", precision, seed=0)  # type: ignore[arg-type]
    trainer = registry.load(backend).trainer(trained, model, data(name), options)
    trainer.load(weights)
    epoch = plan(trained, len(data(name).train))
    trainer.compile(epoch)
    trainer.begin_epoch(epoch)
    results = trainer.train(STEPS, lambda: None)
    trainer.synchronize()
    return trainer.read(results).losses


@cache
def oracle(name: str, precision: str = "fp64", nudge: bool = False) -> np.ndarray[Any, Any]:
    return losses(workload(name), "numpy", "idiomatic", precision, name=name, nudge=nudge)


def float32_tolerance(name: str) -> float:
    """Return the largest relative distance that rounding alone causes, times two."""
    exact = oracle(name)
    measured = 2 * max(
        apart(oracle(name, "fp32"), exact), apart(oracle(name, "fp32", nudge=True), exact)
    )
    return max(measured, FLOORS.get(name, 4e-7))


def apart(found: np.ndarray[Any, Any], expected: np.ndarray[Any, Any]) -> float:
    """Return the largest relative difference of any step."""
    return float(np.max(np.abs(found / expected - 1)))


@pytest.mark.parametrize("style", ["idiomatic", "fast"])
@pytest.mark.parametrize("name", [*WORKLOADS, slow("mnist-cnn"), slow("cifar10-cnn")])
def test_float32_losses_stay_within_rounding(name: str, style: str) -> None:
    found = apart(losses(workload(name), "torch", style, "fp32", name=name), oracle(name))
    assert found < float32_tolerance(name)


def other_scale(trained: Workload) -> Workload:
    divide_by = 256 if trained.input.divide_by == 255 else 255
    return dataclasses.replace(
        trained, input=dataclasses.replace(trained.input, divide_by=divide_by)
    )


def other_rate(trained: Workload) -> Workload:
    rate = trained.optimizer.learning_rate * 1.01
    return dataclasses.replace(
        trained, optimizer=dataclasses.replace(trained.optimizer, learning_rate=rate)
    )


@pytest.mark.parametrize("precision", ["fp64", "fp32"])
@pytest.mark.parametrize("mistake", [other_scale, other_rate])
@pytest.mark.parametrize(
    "name", ["mnist-mlp32", slow("mnist-mlp128"), "mnist-mlp512", slow("mnist-cnn")]
)
def test_a_wrong_scale_and_a_wrong_rate_are_caught(name: str, mistake: Any, precision: str) -> None:
    found = apart(
        losses(mistake(workload(name)), "torch", "fast", precision, name=name), oracle(name)
    )
    assert found > (FLOAT64_TOLERANCE if precision == "fp64" else float32_tolerance(name))


@pytest.mark.parametrize("name", ["mnist-mlp32", "mnist-mlp512"])
def test_an_epsilon_in_the_wrong_place_is_caught(
    name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It uses the root of (v + ε) instead of the root of v, plus ε, as several libraries do."""
    from trainmark.backends.torch import optimizers

    class Misplaced(torch.optim.Optimizer):  # type: ignore[name-defined,misc]
        def __init__(self, spec: Adam | RMSprop, network: Any) -> None:
            super().__init__(network.parameters(), {"lr": spec.learning_rate})
            self._spec = spec
            self._t = 0

        @torch.no_grad()
        def step(self, closure: Any = None) -> None:
            self._t += 1
            for weight in self.param_groups[0]["params"]:
                state = self.state[weight]
                adam = isinstance(self._spec, Adam)
                decay = self._spec.beta2 if isinstance(self._spec, Adam) else self._spec.rho
                square = state.setdefault("square", torch.zeros_like(weight))
                mean = state.setdefault("mean", torch.zeros_like(weight))
                square.mul_(decay).addcmul_(weight.grad, weight.grad, value=1 - decay)
                beta1 = self._spec.beta1 if isinstance(self._spec, Adam) else 0.0
                mean.mul_(beta1).add_(weight.grad, alpha=1 - beta1)
                v = square / (1 - decay**self._t) if adam else square
                m = mean / (1 - beta1**self._t)
                weight.sub_(self._spec.learning_rate * m / (v + self._spec.epsilon).sqrt())

    monkeypatch.setattr(optimizers, "build", lambda spec, network, **_: Misplaced(spec, network))
    for precision, tolerance in (("fp64", FLOAT64_TOLERANCE), ("fp32", float32_tolerance(name))):
        found = apart(losses(workload(name), "torch", "fast", precision, name=name), oracle(name))
        assert found > tolerance


@pytest.mark.slow
@pytest.mark.parametrize("style", ["idiomatic", "fast"])
def test_a_hundred_steps_of_resnet9_are_those_of_the_oracle(style: str) -> None:
    """Augmented images and batch norm in training mode: from the oracle's state, each step differs
    only by rounding. A free training stays close for the first steps, and then batch norm amplifies
    the rounding."""
    trained = (
        Size(width=4, batch=16)
        .of(catalog.find("cifar10-resnet9"))
        .with_schedule(epochs=1, steps=100, dataset_repeats=7)
    )
    split = data("cifar10-cnn").train
    images = Dataset("patterns", split, split, "", True)
    model = lay_out(trained)
    epoch = next(epoch_plans(trained, len(split), 1, inject=True))

    def trainer(backend: str, style: str) -> Any:
        made = registry.load(backend).trainer(
            trained, model, images, Options(style, "cpu", "fp64", seed=0)
        )  # type: ignore[arg-type]
        made.load(initial_weights(model, seed=3))
        made.compile(epoch)
        made.begin_epoch(epoch)
        return made

    exact = trainer("numpy", "idiomatic")
    held = trainer("torch", style)
    free = trainer("torch", style)
    before = exact.state()
    drifts = []
    course = []
    for _ in range(100):
        held.set_state(before)
        (expected,), (found,), (drifted,) = (
            each.read(each.train(1, lambda: None)).losses for each in (exact, held, free)
        )
        assert found == pytest.approx(expected, rel=FLOAT64_TOLERANCE)
        before = exact.state()
        after = held.state()
        for arrays, others in (
            (before.weights, after.weights),
            *zip(before.slots.values(), after.slots.values(), strict=True),
        ):
            for name, array in arrays.items():
                np.testing.assert_allclose(
                    others[name], array, rtol=1e-7, atol=1e-9 * np.abs(array).max(), err_msg=name
                )
        drifts.append(abs(drifted / expected - 1))
        course.append(expected)
    assert max(drifts[:10]) < 1e-7
    assert np.mean(course[-10:]) < np.mean(course[:10]) - 0.05, "it learns"
