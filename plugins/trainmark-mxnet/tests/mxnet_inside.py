"""Tests of the MXNet backend that ``test_mxnet.py`` runs in MXNet's interpreter, which has no
pytest plug-ins."""

from __future__ import annotations

import dataclasses
import logging
import time
import warnings
from pathlib import Path
from typing import Any

import mxnet as mx
import numpy as np
import pytest

from trainmark.backends import registry
from trainmark.backends.base import EpochPlan, Options, kinds_of
from trainmark.backends.peaks import best_seconds
from trainmark.data.dataset import Dataset, Split
from trainmark.errors import Unsupported
from trainmark.execute.protocol.answers import StepChecked
from trainmark.execute.protocol.worker_commands import CheckParity, ComputeReference
from trainmark.execute.worker.parity_check import check_parity
from trainmark.execute.worker.parity_reference import compute_reference, parity_steps
from trainmark.workload import catalog
from trainmark.workload.layers import Dropout, Flatten, ReLU
from trainmark.workload.model import initial_weights, lay_out
from trainmark.workload.optimizers import (
    SGD,
    Adam,
    RMSprop,
    Staircase,
    WeightAverage,
    learning_rate_at,
)
from trainmark.workload.products import Convolution, Product
from trainmark.workload.schedule import Batches
from trainmark_conformance import BackendConformance
from trainmark_conformance.arithmetic import ArithmeticConformance
from trainmark_conformance.cases import OPTIMIZERS, Case, a_workload, conv, dense
from trainmark_mxnet import backend as plugin
from trainmark_mxnet import network, optimizers
from trainmark_mxnet.batches import _runs

BOTH = pytest.mark.parametrize("style", ["idiomatic", "fast"])


class TestIdiomatic(BackendConformance):
    backend = "mxnet"


class TestFast(BackendConformance):
    backend = "mxnet"
    style = "fast"


class TestIdiomaticSinglePrecision(ArithmeticConformance):
    """With MXNet's own update operators, which float64 can't use."""

    backend = "mxnet"
    precision = "fp32"


class TestFastSinglePrecision(ArithmeticConformance):
    backend = "mxnet"
    style = "fast"
    precision = "fp32"


@dataclasses.dataclass(frozen=True)
class Planted:
    """A layer, a loss or an optimiser that a later version may add."""

    learning_rate: float = 0.1
    staircase: None = None
    lr_schedule: None = None
    clip_norm: None = None
    l2: float = 0.0
    kind: str = "planted"


def trainer(style: str, examples: int = 230, **changes: Any) -> Any:
    workload = a_workload(**{"batches": Batches(100), **changes})
    images = np.random.default_rng(0).integers(0, 256, (examples, 4, 4, 1), dtype=np.uint8)
    split = Split(images, (np.arange(examples) % 10).astype(np.uint8))
    data = Dataset("made-up", split, split, "", True)
    model = lay_out(workload)
    made = registry.load("mxnet").trainer(
        workload, model, data, Options(style, "cpu", "fp32", seed=2**40 + 1)
    )  # type: ignore[arg-type]
    made.load(initial_weights(model, seed=1))
    return made


def in_stored_order(sizes: tuple[int, ...]) -> EpochPlan:
    return EpochPlan(sizes, np.arange(sum(sizes)))


@BOTH
def test_steps_are_queued_and_not_waited_for(style: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """In ``fast`` nothing comes to the host; ``fit`` fetches the weights at its end, and nothing
    before."""
    made = trainer(style)
    fetched = list[int]()
    ticks = list[int]()
    plan = in_stored_order((100, 100, 30))
    made.compile(plan)
    made.begin_epoch(plan)
    for name in ("asnumpy", "wait_to_read", "asscalar"):
        original = getattr(mx.nd.NDArray, name)
        monkeypatch.setattr(
            mx.nd.NDArray,
            name,
            lambda array, original=original: (fetched.append(len(ticks)), original(array))[1],
        )
    results = made.train(3, lambda: ticks.append(1))
    assert isinstance(results, mx.nd.NDArray)
    assert results.shape == (3, 3)
    assert set(fetched) <= ({3} if style == "idiomatic" else set())


@BOTH
def test_a_run_is_quiet(style: str, caplog: pytest.LogCaptureFixture) -> None:
    """``fit`` is called again and again on one module, which is meant."""
    made = trainer(style)
    with warnings.catch_warnings(), caplog.at_level(logging.WARNING):
        warnings.simplefilter("error")
        for _ in range(2):
            made.begin_epoch(in_stored_order((100, 100, 30)))
            made.train(1, lambda: None)
            made.train(2, lambda: None)
            made.load(made.weights())
    assert not caplog.records


def test_the_published_workload_uses_the_operators_that_mxnet_has() -> None:
    spec = catalog.find("mnist-mlp128")
    model = lay_out(spec)
    names = [
        name
        for plan in model.weighted_layers
        for name in (network.kernel(plan), network.bias(plan))
    ]
    built = optimizers.build(spec.optimizer, model, names, batch=100, float64=False)
    assert type(built) is mx.optimizer.SGD
    assert [built._get_wd(index) for index in range(len(names))] == pytest.approx(
        [1e-5] * len(names)
    )
    exact = optimizers.build(spec.optimizer, model, names, batch=100, float64=True)
    assert type(exact) is optimizers.Defined


@pytest.mark.parametrize(
    "spec", [SGD(0.1, 0.9, "velocity"), Adam(0.1, epsilon=0.05), RMSprop(0.1, epsilon=0.05)]
)
def test_the_fused_and_the_written_out_update_are_one(spec: Any) -> None:
    model = lay_out(a_workload())
    names = [network.kernel(plan) for plan in model.weighted_layers]
    ends = []
    for float64 in (False, True):
        update = mx.optimizer.get_updater(
            optimizers.build(spec, model, names, batch=4, float64=float64)
        )
        weight = mx.nd.array(np.linspace(-1, 1, 7), dtype="float64" if float64 else "float32")
        for step in range(5):
            update([0], [mx.nd.sin(weight * (3 + step))], [weight])
        ends.append(weight.asnumpy())
    np.testing.assert_allclose(ends[0], ends[1], rtol=0, atol=1e-6)


def test_mxnets_own_adam_and_rmsprop_are_others() -> None:
    """Why there is a class for them: with an ε of the gradient's size its updates are another
    number."""
    gradient = 1e-2
    epsilon = 1e-2
    for spec, theirs in (
        (Adam(1.0, epsilon=epsilon), mx.optimizer.Adam(learning_rate=1.0, epsilon=epsilon)),
        (
            RMSprop(1.0, epsilon=epsilon),
            mx.optimizer.RMSProp(learning_rate=1.0, gamma1=0.9, epsilon=epsilon),
        ),
    ):
        model = lay_out(a_workload())
        ours = optimizers.build(spec, model, ["w"], batch=1, float64=False)
        moved = []
        for optimizer in (ours, theirs):
            weight = mx.nd.zeros((1,))
            optimizer.set_wd_mult({"w": 0.0})
            mx.optimizer.get_updater(optimizer)([0], [mx.nd.full((1,), gradient)], [weight])
            moved.append(-float(weight.asscalar()))
        square = gradient if isinstance(spec, Adam) else gradient * 0.1**0.5
        assert moved[0] == pytest.approx(gradient / (square + epsilon), rel=1e-5)
        assert abs(moved[1] / moved[0] - 1) > 0.1


def test_the_staircase_is_that_of_the_workload() -> None:
    spec = SGD(0.5, staircase=Staircase(0.3, 2))
    rate = optimizers.Rate(spec)
    assert [rate(update) for update in range(1, 7)] == [
        learning_rate_at(spec, step) for step in range(6)
    ]


@pytest.mark.parametrize(
    ("sizes", "runs"),
    [
        ((100, 100), [(100, 200)]),
        ((100, 30), [(100, 130)]),
        ((100, 30, 100, 30), [(100, 130), (100, 130)]),
        ((30, 100), [(30, 30), (100, 100)]),
        ((5, 3, 4), [(5, 8), (4, 4)]),
        ((7,), [(7, 7)]),
    ],
)
def test_batches_are_cut_into_what_an_iterator_can_give(
    sizes: tuple[int, ...], runs: list[tuple[int, int]]
) -> None:
    assert list(_runs(sizes)) == runs


@BOTH
def test_every_cut_of_an_epoch_gives_the_same(style: str) -> None:
    """A stretch of one step, then the rest, is the epoch in one stretch."""
    plan = in_stored_order((100, 100, 30))
    losses = []
    for counts in ((3,), (1, 2), (2, 1)):
        made = trainer(style)
        made.begin_epoch(plan)
        read = [made.read(made.train(count, lambda: None)).losses for count in counts]
        losses.append(np.concatenate(read))
    np.testing.assert_array_equal(losses[0], losses[1])
    np.testing.assert_array_equal(losses[0], losses[2])


def test_another_mxnet_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    backend = registry.load("mxnet")
    monkeypatch.setattr(mx, "__version__", "1.8.0")
    with pytest.raises(Unsupported, match=r"too old.*1\.9 or newer"):
        backend.capabilities()
    monkeypatch.setattr(mx, "__version__", "2.0.0")
    assert backend.capabilities().untested
    monkeypatch.delattr(mx, "mod")
    with pytest.raises(Unsupported, match="has no Module"):
        backend.capabilities()


@pytest.mark.parametrize("precision", ["fp32", "fp64"])
def test_products_and_convolutions_take_as_their_flops_and_copies_take_time(precision: str) -> None:
    """MXNet queues: work that is not waited for would seem to take no time."""
    limits = registry.load("mxnet").peak_kernels(Options("fast", "cpu", precision, 0, threads=1))  # type: ignore[arg-type, attr-defined]

    def growth(small: Any, large: Any) -> float:
        return best_seconds(large, time.perf_counter, 0.5) / best_seconds(
            small, time.perf_counter, 0.5
        )

    products = [
        limits.products([Product(n, n, n), Product(8, n, 8, turned=True)]) for n in (512, 2048)
    ]
    assert growth(*products) > 16, "64 times the work"
    layers = [limits.convolutions([Convolution(n, 24, 24, 8, 5, 16, True, 2)]) for n in (4, 256)]
    assert growth(*layers) > 6, "64 times the work"
    assert 2 * 2**26 / best_seconds(limits.copy(2**26), time.perf_counter, 0.5) < 1e12, (
        "faster than any memory"
    )


def test_every_workload_of_2017_can_be_asked_for_and_no_newer_one() -> None:
    for name in catalog.names():
        workload = catalog.find(name)
        lacking = set(kinds_of(workload)) - registry.load("mxnet").capabilities().kinds
        assert bool(lacking) == ("gpt" in name or "resnet" in name), lacking
        if not lacking:
            assert network.build(lay_out(workload).layers).list_arguments()[0] == network.DATA


@BOTH
@pytest.mark.parametrize("place", ["model", "loss", "optimizer"])
def test_a_kind_that_is_listed_but_not_implemented_is_named(
    style: str, place: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """No last branch takes it for another kind. Without being listed it is refused earlier."""
    case = Case("planted", a_workload(), (8, 8))
    model = lay_out(case.workload)
    planted = Planted()
    changed = (*case.workload.model, planted) if place == "model" else planted
    workload = dataclasses.replace(case.workload, **{place: changed})  # type: ignore[arg-type]
    if place == "model":
        last = dataclasses.replace(model.layers[-1], name="planted_0", layer=planted, weights={})  # type: ignore[arg-type]
        model = dataclasses.replace(model, layers=(*model.layers, last))
    options = Options(style, "cpu", "fp32", seed=1)  # type: ignore[arg-type]
    with pytest.raises(Unsupported, match=r"mxnet on cpu does not have .* 'planted'"):
        registry.load("mxnet").trainer(workload, model, case.data, options)
    monkeypatch.setattr(plugin, "KINDS", plugin.KINDS | {"planted"})
    with pytest.raises(
        Unsupported, match=r"'planted' is not implemented here|MXNet does not have the .* 'planted'"
    ):
        registry.load("mxnet").trainer(workload, model, case.data, options).load(case.weights)


@dataclasses.dataclass(frozen=True)
class InMemory:
    """A dataset that needs no file."""

    data: Dataset

    def load(self) -> Dataset:
        return self.data


WITH_STATE = [
    *(
        "sgd, momentum",
        "sgd, velocity",
        "sgd, momentum, staircase",
        "adam, staircase",
        "rmsprop, staircase",
    ),
    "sgd, velocity, weight decay without biases, staircase",
]


@BOTH
@pytest.mark.parametrize("precision", ["fp32", "fp64"])
@pytest.mark.parametrize("case", [case for case in OPTIMIZERS if case.name in WITH_STATE], ids=str)
def test_steps_from_any_state_are_those_of_the_reference(
    case: Case, precision: Any, style: Any, tmp_path: Path
) -> None:
    """With L2 terms, an average, an image that is flattened, and dropout."""
    # In float64 too, MXNet's dropout multiplies by a float32 number: 2 is one, 1 / (1 - 0.25)
    # isn't.
    layers = (conv(3, 2, l2=0.1), ReLU(), Flatten(), Dropout(0.5), dense(10, l2=0.02))
    case = dataclasses.replace(case, train=60).changed(
        model=layers, weight_average=WeightAverage(0.9)
    )
    training: Any = case.workload, InMemory(case.data)
    place = str(tmp_path / "steps.npz")
    compute_reference(
        ComputeReference("numpy", *training, Options("idiomatic", "cpu", precision, 1), place),
        lambda _: None,
    )

    options = Options(style, "cpu", precision, 1)
    made: Any = registry.load("mxnet").trainer(case.workload, case.model, case.data, options)
    given = parity_steps(Path(place))[0][5].state
    made.set_state(given)
    found = made.state()
    assert found.step == given.step == 5
    for name in ("weights", "average"):
        np.testing.assert_equal(getattr(found, name), getattr(given, name))
    assert found.slots.keys() == given.slots.keys()
    for slot, arrays in given.slots.items():
        for name, value in arrays.items():
            np.testing.assert_allclose(found.slots[slot][name], value, rtol=1e-6)
    outputs = made.activations(np.arange(8), training=False)
    np.testing.assert_equal(outputs["dropout1"], outputs["flatten1"])

    said: list[Any] = []
    check_parity(
        CheckParity("mxnet", *training, options, place, free_steps=1), said.append, lambda: None
    )
    checks = [
        check
        for answer in said
        if isinstance(answer, StepChecked)
        for check in answer.checks.checks
    ]
    parts = {"input", "forward", "loss", "gradient", "update", "state", "order", "dropout"}
    assert {check.part for check in checks} == parts
    assert not [check for check in checks if check.share >= 1]
