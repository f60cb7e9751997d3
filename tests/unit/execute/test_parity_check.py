"""A NumPy trainer with one mistake at a time; ``bench/parity_mistakes.py`` plants them in
PyTorch."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tests.unit.backends.samples import no_tick, options
from tests.unit.workload.samples import a_workload
from trainmark.analysis.parity import SideParity, judge
from trainmark.backends.base import EpochPlan, Steps
from trainmark.backends.numpy.backend import NumpyBackend, NumpyTrainer
from trainmark.backends.numpy.layers import DropoutModule
from trainmark.backends.numpy.optimizers import Updater
from trainmark.backends.stepwise import Arrays, State
from trainmark.errors import TrainmarkError
from trainmark.execute.protocol.answers import Answer, FreeLosses, NotChecked, StepChecked, of_kind
from trainmark.execute.protocol.worker_commands import CheckParity
from trainmark.execute.worker.parity_check import _Update, check_parity
from trainmark.record.checks import PARTS, CheckedPart
from trainmark.workload.catalog import find
from trainmark.workload.initializers import Uniform
from trainmark.workload.layers import (
    ChannelDropout,
    Conv2D,
    Dense,
    Dropout,
    Flatten,
    LocalResponseNorm,
    MaxPool,
    ReLU,
)
from trainmark.workload.losses import ClippedCrossEntropy
from trainmark.workload.model import lay_out
from trainmark.workload.optimizers import SGD, Adam, RMSprop, Staircase, WeightAverage
from trainmark.workload.pixels import Distortions, Input
from trainmark.workload.schedule import Batches
from trainmark.workload.size import Size
from trainmark.workload.spec import Workload

from .reference_steps import TEXT_LENGTH, data_of, reference_steps

MLP = (Flatten(), Dense(8, bias=Uniform(0.5), l2=0.01), ReLU(), Dense(10, bias=Uniform(0.5)))
DROPPING = (Flatten(), Dropout(0.5), Dense(256), ReLU(), Dropout(0.25), Dense(10))
BY_MAP = (Conv2D(8, 3), ChannelDropout(0.5), ReLU(), Flatten(), Dense(10))
MOMENTUM = SGD(0.1, momentum=0.9, weight_decay=0.01)
AVERAGED = a_workload(*MLP, optimizer=MOMENTUM, weight_average=WeightAverage(0.99))


class Given(NumpyBackend):
    """Trains with ``kind``, on a workload with ``change``."""

    def __init__(
        self,
        kind: Callable[..., Any],
        change: Callable[[Workload], Workload] = lambda workload: workload,
    ):
        self._kind = kind
        self._change = change

    def trainer(self, workload: Workload, model: Any, data: Any, options: Any) -> Any:
        changed = self._change(workload)
        return self._kind(changed, lay_out(changed), data, options)


def answers_of(
    workload: Workload,
    backend: NumpyBackend,
    folder: Path,
    precision: str = "fp32",
    free_steps: int = 3,
) -> list[Answer]:
    place = reference_steps(workload, folder, precision)
    said = list[Any]()
    request = CheckParity(
        "numpy", workload, data_of(workload), options(precision=precision), str(place), free_steps
    )
    check_parity(request, said.append, no_tick, lambda _: backend)
    return said


def found_by(
    workload: Workload, backend: NumpyBackend, folder: Path, precision: str = "fp32"
) -> SideParity:
    said = answers_of(workload, backend, folder, precision)
    steps = [answer.checks for answer in of_kind(said, StepChecked)]
    return judge("numpy", steps, [answer.what for answer in of_kind(said, NotChecked)])


@pytest.mark.parametrize("precision", ["fp32", "fp64"])
@pytest.mark.parametrize(
    "workload",
    [
        pytest.param(a_workload(*MLP, optimizer=SGD(0.1)), id="sgd"),
        pytest.param(AVERAGED, id="momentum, averaged"),
        pytest.param(
            a_workload(
                *MLP,
                optimizer=SGD(
                    0.1, 0.9, "velocity", decay_biases=False, staircase=Staircase(0.5, 20)
                ),
            ),
            id="velocity, staircase",
        ),
        pytest.param(
            a_workload(*MLP, optimizer=Adam(0.01), batches=Batches(10, last="drop")), id="adam"
        ),
        pytest.param(
            a_workload(*MLP, optimizer=RMSprop(0.01), batches=Batches("full")), id="rmsprop, full"
        ),
        pytest.param(a_workload(*MLP, loss=ClippedCrossEntropy(1e-7)), id="clipped"),
        pytest.param(a_workload(*DROPPING), id="dropout"),
        pytest.param(a_workload(*BY_MAP), id="channel-dropout"),
        pytest.param(
            a_workload(
                Conv2D(4, 3, "same"),
                LocalResponseNorm(1, 0.1, 0.75),
                MaxPool(2, 2),
                Flatten(),
                Dense(10),
            ),
            id="cnn",
        ),
    ],
)
def test_the_numpy_backend_passes(workload: Workload, precision: str, tmp_path: Path) -> None:
    side = found_by(workload, NumpyBackend(), tmp_path, precision)
    assert side.passed and side.notes == (), side.mistake
    assert side.shares.keys() == {
        part for part in PARTS if part != "dropout" or workload != workload.deterministic()
    }


def test_distortions_are_not_checked(tmp_path: Path) -> None:
    crop = Input((4, 4, 1), distortions=Distortions(True, 0.1, (0.9, 1.1)))
    for layers in (MLP, DROPPING):
        side = found_by(a_workload(*layers, input=crop), NumpyBackend(), tmp_path)
        assert side.passed and side.notes == ("distortions are not checked",)
        assert ("dropout" in side.shares) is (layers == DROPPING)


def test_dropout_is_checked_except_inside_attention(
    tmp_path: Path,
) -> None:
    small = Size(width=16, depth=1, batch=4, length=TEXT_LENGTH).of(find("shakespeare-gpt-10m"))
    side = found_by(small, NumpyBackend(), tmp_path)
    assert side.passed and side.notes == ("dropout inside attention is not checked",), side.mistake
    assert "dropout" in side.shares


@pytest.mark.parametrize("steps", [1, 20])
def test_a_free_training_goes_on_over_epochs(steps: int, tmp_path: Path) -> None:
    (free,) = of_kind(
        answers_of(a_workload(*MLP), NumpyBackend(), tmp_path, free_steps=steps), FreeLosses
    )
    assert len(free.losses) == steps
    assert free.losses[-1] < free.losses[0] or steps == 1


def of_optimizer(**changes: Any) -> Callable[[Workload], Workload]:
    return lambda of: dataclasses.replace(
        of, optimizer=dataclasses.replace(of.optimizer, **changes)
    )


class WithoutBias(NumpyTrainer):
    def _forward(self, x: Any, *, training: bool) -> Any:
        self._weights["dense1.bias"][:] = 0.0
        return super()._forward(x, training=training)

    def activations(self, examples: Any, *, training: bool) -> Arrays:
        self._weights["dense1.bias"][:] = 0.0
        return super().activations(examples, training=training)


class Summing(NumpyTrainer):
    def read(self, results: Any) -> Steps:
        found = super().read(results)
        return dataclasses.replace(found, losses=10 * found.losses)


class TwiceTheGradient(NumpyTrainer):
    def _backward(self, x: Any, labels: Any) -> Any:
        found = super()._backward(x, labels)
        for value in self._gradients.values():
            value *= 2
        return found


class NotANumber(NumpyTrainer):
    def _backward(self, x: Any, labels: Any) -> Any:
        found = super()._backward(x, labels)
        self._gradients["dense1.kernel"][0, 0] = np.nan
        return found


class NoAverage(NumpyTrainer):
    def state(self) -> State:
        found = super().state()
        return dataclasses.replace(found, average=found.weights)


class Reversed(NumpyTrainer):
    def begin_epoch(self, plan: EpochPlan) -> None:
        assert plan.order is not None
        super().begin_epoch(dataclasses.replace(plan, order=plan.order[::-1]))


class LastLeftOut(NumpyTrainer):
    def read(self, results: Any) -> Steps:
        return super().read(results if len(results) < 7 else results[:-1])


class TwoUpdates(NumpyTrainer):
    def _train_batch(self, x: Any, labels: Any) -> Any:
        super()._train_batch(x, labels)
        return super()._train_batch(x, labels)


class FromTheStart(NumpyTrainer):
    """Takes each step of a call from the weights at its start."""

    def train(self, steps: int, tick: Callable[[], None]) -> Any:
        before = {name: value.copy() for name, value in self._weights.items()}
        results = []
        for _ in range(steps):
            for name, value in before.items():
                self._weights[name][...] = value
            results += super().train(1, tick)
        return results


class ForgetsMomentum(NumpyTrainer):
    """Begins each step of a call with the momentum of a new training."""

    def train(self, steps: int, tick: Callable[[], None]) -> Any:
        results = super().train(1, tick)
        for _ in range(steps - 1):
            for value in self._updater.slots["momentum"].values():
                value[...] = 0.0
            results += super().train(1, tick)
        return results


CARRIED = "4 steps in one call"
SLIPS: list[Any] = [
    (
        Given(NumpyTrainer, lambda of: dataclasses.replace(of, input=Input((4, 4, 1), 256.0))),
        "input",
        "input",
        "divisor",
    ),
    (Given(WithoutBias), "forward", "dense1", "a missing bias"),
    (Given(Summing), "loss", "", "the values are 10 times"),
    (Given(TwiceTheGradient), "gradient", "dense2.kernel", "the values are 2 times"),
    (Given(NotANumber), "gradient", "dense1.kernel", ""),
    (
        Given(NumpyTrainer, of_optimizer(learning_rate=0.1001)),
        "update",
        "dense1.kernel",
        "learning rate",
    ),
    (
        Given(NumpyTrainer, of_optimizer(decay_biases=False)),
        "update",
        "dense1.bias",
        "weight decay of biases",
    ),
    (
        Given(NumpyTrainer, of_optimizer(momentum=0.8)),
        "update",
        "dense1.kernel",
        "the form of momentum",
    ),
    (Given(NoAverage), "state", "average of dense1.kernel", "the weight average"),
    (Given(Reversed), "order", "step ", "another order"),
    (Given(LastLeftOut), "order", "9 losses for 10 steps", "left out"),
    (Given(TwoUpdates), "order", "2 updates in a step", "a batch taken twice"),
    (Given(FromTheStart), "state", CARRIED, "state kept between steps"),
    (Given(ForgetsMomentum), "state", CARRIED, "state kept between steps"),
]


@pytest.mark.parametrize(("backend", "part", "name", "suspects"), SLIPS)
def test_a_mistake_is_named(
    backend: Given, part: CheckedPart, name: str, suspects: str, tmp_path: Path
) -> None:
    side = found_by(AVERAGED, backend, tmp_path)
    assert side.mistake is not None
    assert side.mistake.part == part
    assert side.mistake.names[0].startswith(name)
    assert suspects in side.mistake.suspects
    of_no_step = name in ("step ", "9 losses for 10 steps", CARRIED)
    assert side.mistake.step == (
        None if of_no_step else 1 if suspects == "the form of momentum" else 0
    )


@pytest.mark.parametrize(
    ("spec", "changes"),
    [
        (Adam(0.01), {"epsilon": 1e-6}),
        (Adam(0.01), {"beta2": 0.99}),
        (RMSprop(0.01), {"rho": 0.8}),
        (SGD(0.1, 0.9, staircase=Staircase(0.5, 20)), {"staircase": Staircase(0.5, 21)}),
        (SGD(0.1, 0.9, staircase=Staircase(0.5, 20)), {"momentum_form": "velocity"}),
    ],
    ids=str,
)
def test_a_mistake_of_any_optimizer_is_one_of_the_update(
    spec: Any, changes: dict[str, Any], tmp_path: Path
) -> None:
    side = found_by(
        a_workload(*MLP, optimizer=spec), Given(NumpyTrainer, of_optimizer(**changes)), tmp_path
    )
    assert side.mistake is not None and side.mistake.part == "update"


@pytest.mark.parametrize(
    ("factor", "one_element", "shown"),
    [(1.0, 0.0, (False, False)), (1 + 6e-6, 0.0, (False, True)), (1.0, 1e-6, (True, False))],
    ids=["right", "all by a little", "one element"],
)
def test_an_update_is_checked_by_element_and_as_a_whole(
    factor: float, one_element: float, shown: tuple[bool, bool]
) -> None:
    rng = np.random.default_rng(1)
    name = "dense1.kernel"
    weights = 1 + rng.random(10_000, np.float32)
    gradient = rng.random(10_000, np.float32) - np.float32(0.5)
    after = (weights - 0.01 * factor * gradient.astype(np.float64)).astype(np.float32)
    after[0] += np.float32(one_element)
    before, found = (
        State({name: value.astype(np.float64)}, step=step)
        for step, value in enumerate((weights, after))
    )
    update = _Update(a_workload(optimizer=SGD(0.01)), 2.0**-24)
    by_element, whole = update.checks(before, {name: gradient.astype(np.float64)}, found)
    assert (by_element.share > 1, whole.share > 1) == shown
    assert whole.factor == pytest.approx(factor, abs=2e-6)


RNG = np.random.default_rng(1)


@pytest.mark.parametrize(
    ("weights", "gradient", "spec"),
    [
        pytest.param(
            RNG.normal(0, 0.05, 40_000),
            RNG.normal(0, 1e-3, 40_000),
            SGD(1e-6),
            id="swallowed by rounding",
        ),
        pytest.param(
            np.ones(65_536),
            RNG.normal(0, 1e-3, 65_536),
            RMSprop(3e-5),
            id="equal weights, rounded alike",
        ),
        pytest.param(
            np.linspace(1, 2, 64),
            RNG.normal(0, 100, 64) * (RNG.random(64) < 0.1),
            SGD(1e-3, 0.9, weight_decay=5e-4, clip_norm=1.0),
            id="decayed after clipping",
        ),
    ],
)
def test_a_right_update_in_float32_is_within_its_bounds(
    weights: Any, gradient: Any, spec: Any
) -> None:
    gradients = {"w": gradient.astype(np.float32)}
    before = {"w": weights.astype(np.float32)}
    trained = Updater(spec, before, ["w"])
    after = {"w": before["w"].copy()}
    slots = {slot: {"w": np.zeros(len(weights))} for slot in trained.slots}
    trained.update(after, gradients)
    update = _Update(a_workload(optimizer=spec), 2.0**-24)
    checks = list(
        update.checks(
            State({"w": before["w"].astype(np.float64)}, slots),
            gradients,
            State(after, trained.slots),
        )
    )
    assert max(check.share for check in checks) <= 0.5, checks


def dropping(change: Callable[[Any], Any]) -> Callable[..., NumpyTrainer]:
    """A trainer whose dropout layers are changed."""

    def made(*arguments: Any) -> NumpyTrainer:
        trainer = NumpyTrainer(*arguments)
        for module in trainer._modules:
            if isinstance(module, DropoutModule):
                change(module)
        return trainer

    return made


def unscaled(module: Any) -> None:
    forward = module.forward
    rate = module._layer.rate
    module.forward = lambda x, training: forward(x, training) * ((1 - rate) if training else 1)


def slightly_off(module: Any) -> None:
    """Scale by 34 units in the last place too much."""
    forward = module.forward
    module.forward = lambda x, training: (
        forward(x, training) * np.float32(1 + 2e-6 if training else 1)
    )


def off(module: Any) -> None:
    module.forward = lambda x, _: x
    module.backward = lambda gradient: gradient


def more(module: Any) -> None:
    """Keep half as many values, with the scale of before."""
    module._layer = dataclasses.replace(module._layer, rate=1 - (1 - module._layer.rate) / 2)
    forward = module.forward
    module.forward = lambda x, training: forward(x, training) * (0.5 if training else 1)


def by_value(module: Any) -> None:
    module._layer = Dropout(module._layer.rate)


class OffInSteps(NumpyTrainer):
    def _forward(self, x: Any, *, training: bool) -> Any:
        return super()._forward(x, training=False)

    def _backward(self, x: Any, labels: Any) -> Any:
        self._learning = [
            module for module in self._learning if not isinstance(module, DropoutModule)
        ]
        return super()._backward(x, labels)


class SameMasks(NumpyTrainer):
    def _train_batch(self, x: Any, labels: Any) -> Any:
        self._rng.bit_generator.state = np.random.default_rng(1).bit_generator.state
        return super()._train_batch(x, labels)


@pytest.mark.parametrize(
    ("layers", "kind", "name"),
    [
        (DROPPING, dropping(unscaled), "dropout1"),
        (DROPPING, dropping(slightly_off), "dropout1"),
        (DROPPING, SameMasks, "the same masks in every step"),
        (DROPPING, dropping(off), "dropout1"),
        (DROPPING, dropping(more), "dropout2, share kept"),
        (DROPPING, OffInSteps, "off in training"),
        (BY_MAP, dropping(unscaled), "channel-dropout1"),
        (BY_MAP, dropping(by_value), "channel-dropout1, whole maps"),
    ],
)
def test_a_mistake_of_dropout_is_named(layers: Any, kind: Any, name: str, tmp_path: Path) -> None:
    side = found_by(a_workload(*layers), Given(kind), tmp_path)
    assert side.mistake is not None
    assert (side.mistake.part, side.mistake.names[0], side.mistake.step) == ("dropout", name, None)


class Trembling(NumpyTrainer):
    def read(self, results: Any) -> Steps:
        found = super().read(results)
        return dataclasses.replace(
            found, losses=found.losses * (1 + 1e-9 * np.random.default_rng().random())
        )


def test_results_that_differ_within_rounding_are_noted(tmp_path: Path) -> None:
    side = found_by(AVERAGED, Given(Trembling), tmp_path)
    assert side.passed
    assert side.notes == ("it is not deterministic: two equal steps gave different results",)


class Transposing(NumpyTrainer):
    def state(self) -> State:
        found = super().state()
        slots = {"momentum": {name: value.T for name, value in found.slots["momentum"].items()}}
        return dataclasses.replace(found, slots=slots)


class Forgetful(NumpyTrainer):
    def state(self) -> State:
        return dataclasses.replace(super().state(), average={})


@pytest.mark.parametrize(
    ("kind", "said"),
    [
        (Transposing, r"at momentum of dense1.kernel: expected \(16, 8\), found \(8, 16\)"),
        (Forgetful, r"at average of dense1.bias: expected \(8,\), found nothing"),
    ],
)
def test_a_state_of_another_shape_is_an_error(kind: Any, said: str, tmp_path: Path) -> None:
    with pytest.raises(TrainmarkError, match=said):
        answers_of(AVERAGED, Given(kind), tmp_path)


class OfVersion01:
    """A trainer as plug-ins had it before: without its state."""

    def __init__(self, *arguments: Any) -> None:
        trainer = NumpyTrainer(*arguments)
        for name in ("load", "compile", "begin_epoch", "train", "synchronize", "read"):
            setattr(self, name, getattr(trainer, name))


@pytest.mark.parametrize(
    ("divide_by", "part"),
    [(255.0, None), (256.0, "loss")],
    ids=["without a mistake", "with a mistake"],
)
def test_a_backend_without_state_is_compared_by_loss_and_order(
    divide_by: float, part: str | None, tmp_path: Path
) -> None:
    backend = Given(
        OfVersion01, lambda of: dataclasses.replace(of, input=Input((4, 4, 1), divide_by))
    )
    side = found_by(a_workload(*DROPPING), backend, tmp_path)
    assert (side.mistake and side.mistake.part) == part
    assert side.shares.keys() == {"loss", "order"}
    assert [note.split(":")[0] for note in side.notes] == [
        "layers, gradients, updates and state are not checked",
        "dropout is not checked",
    ]


class Compiled(NumpyTrainer):
    """Trains only on batches of sizes that it was compiled for, as captured graphs do."""

    _sizes: frozenset[int] = frozenset()

    def compile(self, plan: EpochPlan) -> bool:
        assert plan.order is None or len(plan.order) == sum(plan.sizes)
        self._sizes = frozenset(plan.sizes)
        return True

    def begin_epoch(self, plan: EpochPlan) -> None:
        assert {*plan.sizes} <= self._sizes, "not compiled"
        super().begin_epoch(plan)


def test_every_size_of_batch_is_compiled_before(tmp_path: Path) -> None:
    assert found_by(a_workload(*MLP), Given(Compiled), tmp_path).passed


@pytest.mark.parametrize("rate", [0.0, 0.5])
def test_dropout_of_nothing_is_no_mistake(rate: float, tmp_path: Path) -> None:
    side = found_by(
        a_workload(Flatten(), Dropout(rate), Dense(32), ReLU(), Dense(10)), NumpyBackend(), tmp_path
    )
    assert side.passed, side.mistake
    assert ("dropout" in side.shares) is (rate > 0)


class TwiceInAnEpoch(NumpyTrainer):
    """Wrong losses, but only of calls that train a whole epoch."""

    def train(self, steps: int, tick: Any) -> Any:
        self._many = steps > 4
        return super().train(steps, tick)

    def read(self, results: Any) -> Steps:
        found = super().read(results)
        return dataclasses.replace(found, losses=found.losses * (2 if self._many else 1))


def test_batches_that_look_alike_tell_no_order(tmp_path: Path) -> None:
    alike = a_workload(Flatten(), Dense(10, kernel=Uniform(1e-12)))  # every loss is log 10
    side = found_by(alike, NumpyBackend(), tmp_path)
    assert side.passed, side.mistake
    assert side.notes == (
        "the losses can't tell the order of batches: they differ by less than rounding",
    )
    side = found_by(alike, Given(TwiceInAnEpoch), tmp_path)
    assert side.mistake is not None and side.mistake.part == "order"


class Silent(NumpyTrainer):
    def activations(self, examples: Any, *, training: bool) -> Arrays:
        return {}


def test_what_a_backend_does_not_return_is_named(tmp_path: Path) -> None:
    with pytest.raises(TrainmarkError, match="the backend returns no such array: input, input"):
        found_by(a_workload(*MLP), Given(Silent), tmp_path)
