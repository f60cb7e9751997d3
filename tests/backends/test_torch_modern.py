"""Today's networks on PyTorch, against NumPy in double precision: losses, state, gradients, outputs of all layers."""

from __future__ import annotations

from functools import cache
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from trainmark.backends.base import EpochPlan, Options, Style
from trainmark.backends.numpy.backend import NumpyBackend
from trainmark.backends.stepwise import State
from trainmark.workload.layers import (
    GELU,
    Attention,
    AveragePool,
    BatchNorm,
    Conv2D,
    Dense,
    Flatten,
    GlobalAveragePool,
    Layer,
    LayerNorm,
    MaxPool,
    PositionEmbedding,
    ReLU,
    Repeat,
    Residual,
    Scale,
    TiedHead,
    TokenEmbedding,
)
from trainmark.workload.losses import SoftmaxCrossEntropy
from trainmark.workload.model import Weights, initial_weights
from trainmark.workload.optimizers import SGD, AdamW, Group, PiecewiseLinear, RMSprop, WarmupCosine
from trainmark.workload.pixels import Augmentation, Input, Standardize, draw_augmentation
from trainmark.workload.precision import Precision
from trainmark.workload.tokens import Tokens
from trainmark_conformance.cases import Case, a_workload, conv, dense

torch = pytest.importorskip("torch", reason="torch is not installed")

from trainmark.backends.torch.backend import TorchBackend  # noqa: E402

STEPS, BATCH = 5, 6
BOTH = pytest.mark.parametrize("style", ["idiomatic", "fast"])
Results = dict[str, NDArray[Any]]

BLOCK = (
    Residual((LayerNorm(epsilon=0.01), Attention(2))),
    Residual((LayerNorm(0.01, shift=False), Dense(16, bias="none"), GELU(), dense(8))),
)
WORDS = (TokenEmbedding(11, 8), PositionEmbedding(7), Repeat(2, BLOCK), LayerNorm(), TiedHead())
ADAMW = AdamW(0.05, 0.8, 0.95, 0.02, weight_decay=0.3, groups=(Group("vectors", 0.0),))
END = (Flatten(), dense(10))


def image_case(name: str, *layers: Layer, **changes: Any) -> Case:
    fields = {"input": Input((7, 6, 2)), "optimizer": SGD(0.1, momentum=0.9, weight_decay=0.05)} | changes
    return Case(name, a_workload(*layers, **fields), (BATCH,) * STEPS)


def text_case(name: str, *layers: Layer, **changes: Any) -> Case:
    fields = {"input": Tokens(5), "optimizer": ADAMW} | changes
    return Case(name, a_workload(*(layers or WORDS), **fields), (BATCH,) * STEPS)


AUGMENTED = Input(
    (7, 6, 2), 1.0, standardize=Standardize((120.0, 99.0), (60.0, 70.0)), augment=Augmentation(2, True, 3)
)
NORMAL = (conv(4, 3, "same"), BatchNorm(0.3, 0.01), ReLU())
CASES = (
    text_case("gpt"),
    text_case("own head", *WORDS[:-1], dense(11)),
    text_case("warm-up, cosine, clipping", optimizer=AdamW(0.05, clip_norm=0.1, course=WarmupCosine(2, 4, 0.01))),
    text_case("rmsprop, clipping", optimizer=RMSprop(0.05, epsilon=0.02, clip_norm=0.1, course=WarmupCosine(1, 9))),
    image_case("batch norm", *NORMAL, *END),
    image_case("residual", *NORMAL, Residual((*NORMAL, conv(4, 1))), Residual(NORMAL, (conv(4, 1), BatchNorm())), *END),
    image_case("strides and paddings", Conv2D(4, 3, 1, stride=2, bias="none"), MaxPool(3, 2, 1), Scale(0.5), *END),
    image_case("even strides", conv(3, 2, "same", stride=2), MaxPool(2, 1, 1), GELU(), *END),
    image_case("average pools", conv(3, 2), AveragePool(2, 2), conv(5, 2), GlobalAveragePool(), dense(10)),
    image_case("layer norm of pixels", conv(3, 2), LayerNorm(0.01), *END),
    image_case("layer norm after flatten", conv(3, 3), Flatten(), LayerNorm(0.01), Residual((dense(60),)), dense(10)),
    image_case("flatten in a residual", Residual((conv(3, 2), *END), (conv(2, 3), Flatten(), GELU(), dense(10)))),
    image_case("sum, smoothing", *NORMAL, *END, loss=SoftmaxCrossEntropy(0.2, "sum"), optimizer=SGD(0.01)),
    image_case("smoothing, l2", conv(3, 2, l2=0.1), *END, loss=SoftmaxCrossEntropy(0.2)),
    image_case("nesterov", *END, optimizer=SGD(0.1, 0.9, nesterov=True, course=WarmupCosine(2, 4))),
    image_case("nesterov, velocity", *END, optimizer=SGD(0.1, 0.9, "velocity", nesterov=True, weight_decay=0.05)),
    image_case(
        "nesterov, velocity, course",
        *END,
        optimizer=SGD(0.1, 0.9, "velocity", 0.05, nesterov=True, course=PiecewiseLinear(((0, 0), (2, 1), (5, 0.1)))),
    ),
    image_case("clipping in float", *NORMAL, *END, optimizer=SGD(1.0, clip_norm=0.3)),
    image_case("groups", *NORMAL, *END, optimizer=SGD(0.1, weight_decay=0.2, groups=(Group("*.kernel", 0.7),))),
    image_case("augmented", *NORMAL, *END, input=AUGMENTED),
)


def trainer(case: Case, style: Style | None, precision: Precision = "fp64") -> Any:
    """Make a trainer with weights whose biases, scales and averages are not trivial; NumPy's without a style."""
    options = Options(style or "idiomatic", "cpu", precision, seed=1, keeps_gradients=True)
    backend = TorchBackend() if style else NumpyBackend()
    made: Any = backend.trainer(case.workload, case.model, case.data, options)
    made.load(weights(case))
    return made


def weights(case: Case) -> Weights:
    rng = np.random.default_rng(5)
    initial = initial_weights(case.model, seed=3)
    return {name: (w + rng.random(w.shape) / 4).astype(np.float32) for name, w in initial.items()}


def plan(case: Case) -> EpochPlan:
    count, augments = sum(case.sizes), case.workload.augmented_input
    augmented = None if augments is None else draw_augmentation(augments, count, np.random.default_rng(4))
    return EpochPlan(case.sizes, np.random.default_rng(2).integers(0, case.train, count), augmented=augmented)


def results(made: Any, case: Case) -> Results:
    """Train, and return everything that can be seen of it."""
    made.begin_epoch(plan(case))
    found: Results = {"losses": made.read(made.train(len(case.sizes), lambda: None)).losses}
    state: State = made.state()
    found |= {f"gradient {name}": value for name, value in made.gradients().items()}
    found |= {f"weight {name}": value for name, value in state.weights.items()}
    for slot, arrays in state.slots.items():
        found |= {f"{slot} {name}": value for name, value in arrays.items()}
    found |= {f"output of {n}": value for n, value in made.activations(np.arange(3), training=False).items()}
    for split, examples in (("test", None), ("train", np.array([3, 1, 1, 7]))):
        evaluation = made.evaluate(split, examples)
        found[f"evaluation {split}"] = np.array([evaluation.loss, evaluation.accuracy])
    found["outputs"] = made.outputs(case.data.test.images[:3])
    return found


@cache
def expected(case_name: str) -> Results:
    case = next(case for case in CASES if case.name == case_name)
    return results(trainer(case, None), case)


@BOTH
@pytest.mark.parametrize("case", CASES, ids=str)
def test_it_computes_what_numpy_computes(case: Case, style: Style) -> None:
    found, wanted = results(trainer(case, style), case), expected(case.name)
    assert set(found) == set(wanted)
    for name, value in wanted.items():
        np.testing.assert_allclose(found[name], value, rtol=1e-7, atol=1e-9 * (1 + np.abs(value).max()), err_msg=name)


@BOTH
@pytest.mark.parametrize("case", CASES[2:6], ids=str)
def test_a_state_is_continued(case: Case, style: Style) -> None:
    whole = trainer(case, style)
    whole.begin_epoch(plan(case))
    whole.train(2, lambda: None)
    middle = whole.state()
    losses = whole.read(whole.train(3, lambda: None)).losses
    again = trainer(case, style)
    again.set_state(middle)
    rest = plan(case).order[2 * BATCH :]  # type: ignore[index]
    again.begin_epoch(EpochPlan(case.sizes[2:], rest))
    np.testing.assert_allclose(again.read(again.train(3, lambda: None)).losses, losses, rtol=1e-12)


@BOTH
@pytest.mark.parametrize("case", [CASES[0], CASES[5]], ids=str)
def test_mixed_precision_is_close(case: Case, style: Style) -> None:
    made = trainer(case, style, "bf16")
    assert all(parameter.dtype == torch.float32 for parameter in made._parameters)
    found, wanted = results(made, case), expected(case.name)
    np.testing.assert_allclose(found["losses"][:2], wanted["losses"][:2], rtol=0.02)  # rounding grows from step to step
    assert not np.allclose(found["outputs"], wanted["outputs"], rtol=1e-5)


@BOTH
def test_attention_drops_probabilities_in_training_only(style: Style) -> None:
    case = text_case("dropout", TokenEmbedding(11, 8), Attention(2, dropout=0.5), TiedHead())
    made = trainer(case, style)
    examples = np.arange(3)
    first, second, still, again = (
        made.activations(examples, training=training)["attention1"] for training in (True, True, False, False)
    )
    assert not np.allclose(first, second)
    np.testing.assert_array_equal(still, again)


@BOTH
def test_without_an_order_windows_are_drawn_by_pytorch(style: Style) -> None:
    case = text_case("own order")
    made = trainer(case, style)
    losses = []
    for _ in range(2):
        made.load(weights(case))
        made.begin_epoch(EpochPlan(case.sizes, None))
        losses.append(made.read(made.train(STEPS, lambda: None)).losses)
    assert np.isfinite(losses).all()
    assert not np.array_equal(*losses)


@BOTH
def test_the_whole_training_set_is_augmented_anew_in_every_step(style: Style) -> None:
    case = CASES[-1]
    draws = draw_augmentation(AUGMENTED, 2 * case.train, np.random.default_rng(4))
    losses = []
    for kind in (style, None):
        made = trainer(case, kind)
        order = np.tile(np.arange(case.train), 2)
        whole = EpochPlan((case.train,) * 2, None if kind else order, whole=bool(kind), augmented=draws)
        made.begin_epoch(whole)
        losses.append(made.read(made.train(2, lambda: None)).losses)
    np.testing.assert_allclose(losses[0], losses[1], rtol=1e-9)


@BOTH
def test_looking_at_outputs_in_training_leaves_running_averages(style: Style) -> None:
    case = next(case for case in CASES if case.name == "batch norm")
    made = trainer(case, style)
    before = made.weights()
    made.activations(np.arange(6), training=True)
    for name, value in made.weights().items():
        np.testing.assert_array_equal(value, before[name])


def test_the_head_shares_the_table() -> None:
    made = trainer(text_case("tied"), "fast")
    modules = dict(made._network.named_modules())
    assert modules["tied-head1"].weight is modules["token-embedding1"].weight
    assert len(made._parameters) == len(made._model.trained)
