"""What only Keras has to show, run by ``test_keras.py`` in a process for each engine, which
``KERAS_ENTRY`` names."""

from __future__ import annotations

import os
import sys
from typing import Any

import numpy as np
import pytest

from trainmark.backends import registry
from trainmark.backends.base import EpochPlan, Options, Steps
from trainmark.data.dataset import Dataset, Split
from trainmark.errors import NotInstalled, Unsupported
from trainmark.workload.layers import Dense, Flatten, ReLU
from trainmark.workload.model import Model, initial_weights, lay_out
from trainmark.workload.optimizers import SGD, Adam, RMSprop, WeightAverage
from trainmark.workload.schedule import Batches
from trainmark_conformance.cases import a_workload

NAME = os.environ.get("KERAS_ENTRY", "keras")
ENGINES = {"keras": "tensorflow", "keras:torch": "torch", "keras:jax": "jax"}

backend = registry.load(NAME)
# torch.compile takes minutes for these; a single test is enough to see that the same fit runs
# through it.
STYLES = pytest.mark.parametrize(
    "style",
    [each for each in backend.capabilities().styles if each != "compiled" or NAME == "keras"],
)

import keras  # noqa: E402  (the backend has chosen its engine)

from trainmark.backends.keras import network, optimizers  # noqa: E402


def trainer(style: str, examples: int = 230, **changes: Any) -> Any:
    workload = a_workload(**{"batches": Batches(100), **changes})
    images = np.random.default_rng(0).integers(0, 256, (examples, 4, 4, 1), dtype=np.uint8)
    split = Split(images, (np.arange(examples) % 10).astype(np.uint8))
    data = Dataset("made-up", split, split, "", True)
    model = lay_out(workload)
    made = backend.trainer(workload, model, data, Options(style, "cpu", "fp32", seed=1, threads=1))  # type: ignore[arg-type]
    made.load(initial_weights(model, seed=1))
    return made


def in_stored_order(sizes: tuple[int, ...]) -> EpochPlan:
    return EpochPlan(sizes, np.arange(sum(sizes)))


def train(made: Any, plan: EpochPlan, *counts: int) -> list[Steps]:
    made.begin_epoch(plan)
    return [made.read(made.train(count, lambda: None)) for count in counts or (len(plan.sizes),)]


def test_it_is_the_engine_of_its_name() -> None:
    can = backend.capabilities()
    assert (can.name, can.version, keras.backend.backend()) == (
        NAME,
        keras.__version__,
        ENGINES[NAME],
    )
    assert {"keras", ENGINES[NAME]} <= can.packages.keys()
    assert not can.untested
    assert NAME == "keras" or "tensorflow" not in sys.modules, (
        "an engine that does not compute is not paid for"
    )


@pytest.mark.parametrize("other", sorted(set(ENGINES) - {NAME}))
def test_another_engine_is_refused(other: str) -> None:
    with pytest.raises(
        Unsupported, match=rf"expected Keras on {ENGINES[other]}, found Keras on {ENGINES[NAME]}"
    ):
        registry.load(other)


def test_old_and_untested_versions_are_reported(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(keras, "__version__", "3.7.0")
    with pytest.raises(
        Unsupported, match=r"this Keras is too old: expected 3\.8 or newer, found 3\.7\.0"
    ):
        backend.capabilities()
    monkeypatch.setattr(keras, "__version__", "3.99.0")
    assert backend.capabilities().untested


def test_fit_is_compiled_where_keras_does_so_or_is_asked_to(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """``jit_compile="auto"`` compiles on JAX, and with TensorFlow only where there is a GPU."""
    compiled = NAME == "keras:jax"
    assert trainer("idiomatic").settings()["jit_compile"] is compiled
    assert ("compiled" in backend.capabilities().styles) is not compiled
    if not compiled:
        assert trainer("compiled").settings()["jit_compile"] is True
    monkeypatch.setattr(keras.Sequential, "jit_compile", True)
    assert backend.capabilities().compiles_already
    with pytest.raises(
        Unsupported, match=r"the style 'compiled': .* idiomatic, which is compiled already"
    ):
        trainer("compiled")


@pytest.mark.skipif(NAME == "keras:jax", reason="it has no style compiled")
def test_a_network_that_keras_can_not_compile_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    build = network.build

    def build_uncompilable(model: Model, **options: Any) -> network.Learner:
        made = build(model, **options)
        made.layers[0].supports_jit = False
        return made

    monkeypatch.setattr(network, "build", build_uncompilable)
    with (
        pytest.raises(Unsupported, match="Keras can't compile this network"),
        pytest.warns(UserWarning, match="jit"),
    ):
        trainer("compiled")


@pytest.mark.skipif(
    NAME != "keras:torch", reason="only PyTorch calls a compiler that is not its own"
)
def test_a_missing_compiler_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CXX", "no-such-compiler")
    with pytest.raises(
        NotInstalled, match=r"expected the C\+\+ compiler 'no-such-compiler' on PATH, found none"
    ):
        trainer("compiled")


@STYLES
def test_losses_and_hits_are_those_of_the_batch(style: str) -> None:
    """What ``fit`` reports are means since the epoch's start; an easy batch after a hard one tells
    them apart."""
    made = trainer(style, examples=20, batches=Batches(10), optimizer=SGD(1e-12))
    weights = made.weights()
    outputs = made.outputs(made._data.train.images)
    hard = np.argmin(outputs, axis=1)
    easy = np.argmax(outputs, axis=1)
    made._labels["train"][:] = np.where(np.arange(20) < 10, hard, easy)
    if style == "fast":
        made._train_labels = keras.ops.convert_to_tensor(made._labels["train"])
    made.load(weights)
    (found,) = train(made, in_stored_order((10, 10)))
    log_probabilities = outputs - np.log(np.exp(outputs).sum(axis=1, keepdims=True))
    expected = -log_probabilities[np.arange(20), made._labels["train"]].reshape(2, 10).mean(axis=1)
    np.testing.assert_allclose(found.losses, expected, rtol=1e-5)
    assert found.hits.tolist() == [0, 10]


@STYLES
def test_the_l2_part_is_reported_separately(style: str) -> None:
    made = trainer(style, model=(Flatten(), Dense(8, l2=0.5), ReLU(), Dense(10)))
    kernel = made.weights()["dense1.kernel"]
    (found,) = train(made, in_stored_order((100, 100)))
    assert found.l2_losses is not None
    assert found.l2_losses[0] == pytest.approx(0.25 * (kernel**2).sum(), rel=1e-5)
    assert (found.losses > found.l2_losses).all()


@STYLES
def test_every_cut_of_an_epoch_gives_the_same(style: str) -> None:
    """A stretch of one step, then the rest, is the epoch in one stretch."""
    plan = in_stored_order((100, 100, 30))
    cuts = []
    for counts in ((3,), (1, 2), (2, 1)):
        cuts.append(np.concatenate([part.losses for part in train(trainer(style), plan, *counts)]))
    np.testing.assert_allclose(cuts[0], cuts[1], rtol=1e-6)
    np.testing.assert_allclose(cuts[0], cuts[2], rtol=1e-6)


@STYLES
def test_compiling_leaves_everything_as_it_was(style: str) -> None:
    made = trainer(style, optimizer=Adam(0.01), weight_average=WeightAverage(0.99))
    plan = in_stored_order((100, 100, 30))
    train(made, plan)
    before = [
        np.array(keras.ops.convert_to_numpy(variable.value)) for variable in made._variables()
    ]
    assert made.compile(plan) is (NAME != "keras:torch" or style == "compiled")
    for value, variable in zip(before, made._variables(), strict=True):
        np.testing.assert_array_equal(
            value, keras.ops.convert_to_numpy(variable.value), variable.path
        )


@STYLES
def test_single_precision_is_asked_for_whatever_keras_is_configured_for(style: str) -> None:
    keras.config.set_floatx("float16")
    keras.config.set_dtype_policy("mixed_bfloat16")
    made = trainer(style)
    assert {made.settings()[key] for key in ("floatx", "dtype_policy")} == {"float32"}
    assert {weight.dtype for weight in made._network.trainable_variables} == {"float32"}


def test_keras_has_its_own_optimizer_where_it_is_the_same() -> None:
    plain = (SGD(0.1), SGD(0.1, momentum=0.5), SGD(0.1, 0.9, "velocity"))
    assert all(
        not isinstance(optimizers.build(spec, None, ["kernel"]), optimizers.Defined)
        for spec in plain
    )
    others = (SGD(0.1, weight_decay=0.1), Adam(0.1), RMSprop(0.1))
    assert all(
        isinstance(optimizers.build(spec, None, ["kernel"]), optimizers.Defined) for spec in others
    )
    assert isinstance(
        optimizers.build(SGD(0.1), WeightAverage(0.9), ["kernel"]), optimizers.Defined
    )


def test_keras_own_adam_and_rmsprop_are_others() -> None:
    """The class exists for this: with an ε of the gradient's size, Keras's own updates have other
    values."""
    gradient = 1e-2
    epsilon = 1e-2
    for spec, theirs in (
        (Adam(1.0, epsilon=epsilon), keras.optimizers.Adam(1.0, epsilon=epsilon)),
        (RMSprop(1.0, epsilon=epsilon), keras.optimizers.RMSprop(1.0, epsilon=epsilon)),
    ):
        moved = []
        for optimizer in (optimizers.build(spec, None, ["kernel"]), theirs):
            weight = keras.Variable(np.zeros(1, np.float32))
            optimizer.build([weight])
            optimizer.apply([keras.ops.convert_to_tensor(np.full(1, gradient, np.float32))])
            moved.append(-float(keras.ops.convert_to_numpy(weight.value)[0]))
        square = gradient if isinstance(spec, Adam) else gradient * 0.1**0.5
        assert moved[0] == pytest.approx(gradient / (square + epsilon), rel=1e-4)
        assert abs(moved[1] / moved[0] - 1) > 0.1
