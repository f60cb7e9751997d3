from __future__ import annotations

import math
import typing
from dataclasses import replace

import numpy as np
import pytest

from trainmark.backends.numpy.layers import _MODULES, Module, Parameters, build
from trainmark.workload.layers import (
    GELU,
    Attention,
    AveragePool,
    BatchNorm,
    ChannelDropout,
    Conv2D,
    Dense,
    Dropout,
    Flatten,
    GlobalAveragePool,
    Layer,
    LayerNorm,
    LocalResponseNorm,
    LogSoftmax,
    MaxPool,
    PositionEmbedding,
    ReLU,
    Repeat,
    Residual,
    Scale,
    TiedHead,
    TokenEmbedding,
)
from trainmark.workload.model import LayerPlan, Model, plans_of

from .differences import Float64, by_differences

Shape = tuple[int, ...]


def test_every_kind_of_layer_has_a_module() -> None:
    # its layers are laid out one by one
    kinds = {each for each in typing.get_args(Layer) if each is not Repeat}
    assert _MODULES.keys() == kinds


def module_of(layer: Layer, shape: Shape) -> tuple[Module, Parameters, Parameters]:
    """A layer in the middle of a network, with random weights, and its weights and gradients."""
    rng = np.random.default_rng(7)
    (plan,) = plans_of([layer], shape)
    every = Model(shape, (plan,)).weights
    weights: Parameters = {key: rng.standard_normal(weight.shape) for key, weight in every.items()}
    weights |= {key: np.ones(weight.shape) for key, weight in every.items() if not weight.trained}
    gradients: Parameters = {}
    return build(in_the_middle(plan), weights, gradients, rng), weights, gradients


def in_the_middle(plan: LayerPlan) -> LayerPlan:
    """The layer with a gradient of its input, as if it were not the first one with weights."""
    body, shortcut = (tuple(map(in_the_middle, plans)) for plans in (plan.body, plan.shortcut))
    return replace(plan, input_gradient_macs=1, body=body, shortcut=shortcut)


def forward(layer: Layer, x: Float64, *, training: bool = True) -> Float64:
    """Output of a layer that has no weights."""
    module, _, _ = module_of(layer, x.shape[1:])
    return module.forward(x, training)


CASES = [
    pytest.param(Dense(3), (4,), (3,), (4, 3), id="dense"),
    pytest.param(Conv2D(3, 3), (5, 6, 2), (3, 4, 3), (3, 3, 2, 3), id="conv valid"),
    pytest.param(Conv2D(2, 1), (3, 3, 2), (3, 3, 2), (1, 1, 2, 2), id="conv 1x1"),
    pytest.param(Conv2D(2, 3, "same"), (4, 5, 2), (4, 5, 2), (3, 3, 2, 2), id="conv same"),
    pytest.param(
        Conv2D(2, 2, "same"), (4, 4, 1), (4, 4, 2), (2, 2, 1, 2), id="conv same, even window"
    ),
    pytest.param(
        Conv2D(1, 5, "same"), (3, 3, 1), (3, 3, 1), (5, 5, 1, 1), id="conv same, window above image"
    ),
    pytest.param(MaxPool(2, 2), (4, 6, 2), (2, 3, 2), None, id="pool"),
    pytest.param(MaxPool(2, 2), (5, 5, 1), (2, 2, 1), None, id="pool with a rest"),
    pytest.param(MaxPool(3, 2), (7, 7, 2), (3, 3, 2), None, id="pool overlapping"),
    pytest.param(MaxPool(3, 2, "same"), (6, 8, 2), (3, 4, 2), None, id="pool same, overlapping"),
    pytest.param(MaxPool(3, 1, "same"), (3, 3, 1), (3, 3, 1), None, id="pool same, stride 1"),
    pytest.param(MaxPool(1, 2), (5, 5, 1), (3, 3, 1), None, id="pool that skips"),
    pytest.param(LocalResponseNorm(1, 0.5, 0.75), (2, 2, 5), (2, 2, 5), None, id="lrn"),
    pytest.param(
        LocalResponseNorm(4, 0.001, 0.75),
        (2, 2, 3),
        (2, 2, 3),
        None,
        id="lrn, radius above channels",
    ),
    pytest.param(
        LocalResponseNorm(0, 2.0, 0.5, 3.0), (1, 2, 3), (1, 2, 3), None, id="lrn, radius 0"
    ),
    pytest.param(ReLU(), (3, 3, 2), (3, 3, 2), None, id="relu"),
    pytest.param(Flatten(), (2, 3, 2), (12,), None, id="flatten"),
    pytest.param(LogSoftmax(), (5,), (5,), None, id="log-softmax"),
    pytest.param(Dense(3), (5, 4), (5, 3), (4, 3), id="dense on a sequence"),
    pytest.param(Dense(3, bias="none"), (4,), (3,), (4, 3), id="dense without bias"),
    pytest.param(
        Conv2D(2, 3, "same", 2), (5, 6, 2), (3, 3, 2), (3, 3, 2, 2), id="conv same, stride 2"
    ),
    pytest.param(
        Conv2D(2, 3, 1, 2, bias="none"),
        (6, 5, 1),
        (3, 3, 2),
        (3, 3, 1, 2),
        id="conv padded by 1, stride 2",
    ),
    pytest.param(MaxPool(3, 2, 1), (6, 5, 2), (3, 3, 2), None, id="pool padded by 1"),
    pytest.param(AveragePool(3, 2), (5, 6, 2), (2, 2, 2), None, id="average pool"),
    pytest.param(GlobalAveragePool(), (3, 4, 2), (2,), None, id="global average pool"),
    pytest.param(BatchNorm(epsilon=0.1), (3, 2, 3), (3, 2, 3), None, id="batch norm"),
    pytest.param(LayerNorm(epsilon=0.1), (3, 4), (3, 4), None, id="layer norm"),
    pytest.param(LayerNorm(shift=False), (5,), (5,), None, id="layer norm without shift"),
    pytest.param(PositionEmbedding(5), (3, 4), (3, 4), None, id="position embedding"),
    pytest.param(Attention(2), (4, 6), (4, 6), None, id="attention"),
    pytest.param(GELU(), (3, 4), (3, 4), None, id="gelu"),
    pytest.param(Scale(0.125), (3,), (3,), None, id="scale"),
    pytest.param(Residual((LayerNorm(), Dense(4))), (3, 4), (3, 4), None, id="residual"),
    pytest.param(
        Residual((Conv2D(3, 3, "same", 2), BatchNorm()), (Conv2D(3, 1, "valid", 2),)),
        (5, 5, 2),
        (3, 3, 3),
        None,
        id="residual with a projection",
    ),
]


@pytest.mark.parametrize(("layer", "shape", "output", "kernel"), CASES)
def test_backward_is_the_slope_of_forward(
    layer: Layer, shape: Shape, output: Shape, kernel: Shape | None
) -> None:
    rng = np.random.default_rng(11)
    module, weights, gradients = module_of(layer, shape)
    assert kernel is None or kernel in [weight.shape for weight in weights.values()]
    x = rng.standard_normal((2, *shape))
    probe = rng.standard_normal((2, *output))

    def answer(there: Float64) -> float:
        return float((module.forward(there, True) * probe).sum())

    def answer_with(name: str, value: Float64) -> float:
        kept = weights[name]
        weights[name] = value
        try:
            return answer(x)
        finally:
            weights[name] = kept

    y = module.forward(x, True)
    assert y.shape == (2, *output)
    by_input = module.backward(probe)
    assert by_input.shape == x.shape
    np.testing.assert_allclose(by_input, by_differences(answer, x), atol=1e-7)
    for name in gradients:
        expected = by_differences(lambda value, name=name: answer_with(name, value), weights[name])
        np.testing.assert_allclose(gradients[name], expected, atol=1e-7)


def test_this_check_of_gradients_can_fail() -> None:
    def square(x: Float64) -> float:
        return float((x**2).sum())

    np.testing.assert_allclose(by_differences(square, np.array([3.0])), [6.0], atol=1e-6)
    with pytest.raises(AssertionError):
        np.testing.assert_allclose(by_differences(square, np.array([3.0])), [6.001], atol=1e-6)


def test_convolution_does_not_turn_its_kernel_around() -> None:
    module, weights, _ = module_of(Conv2D(1, 2), (2, 3, 1))
    weights["conv2d1.kernel"] = np.array([[1.0, 10], [100, 1000]]).reshape(2, 2, 1, 1)
    weights["conv2d1.bias"] = np.array([0.5])
    x = np.array([[1.0, 2, 3], [4, 5, 6]]).reshape(1, 2, 3, 1)
    assert module.forward(x, True).ravel().tolist() == [
        1 + 20 + 400 + 5000 + 0.5,
        2 + 30 + 500 + 6000 + 0.5,
    ]


def test_same_convolution_pads_with_zeros() -> None:
    module, weights, _ = module_of(Conv2D(1, 3, "same"), (2, 2, 1))
    weights.update({"conv2d1.kernel": np.ones((3, 3, 1, 1)), "conv2d1.bias": np.zeros(1)})
    assert module.forward(np.ones((1, 2, 2, 1)), True).ravel().tolist() == [4, 4, 4, 4]


def test_max_pooling_of_four_columns_pads_one_at_the_end() -> None:
    x = np.array([[-5.0, -4, -3, -2]] * 4).reshape(1, 4, 4, 1)
    y = forward(MaxPool(3, 2, "same"), x)
    # columns 0-2, then 2-3 and the padding, which never wins
    assert y[0, 0, :, 0].tolist() == [-3, -2]


def test_the_gradient_of_a_tie_goes_to_the_first_maximum() -> None:
    module, _, _ = module_of(MaxPool(2, 2), (2, 2, 1))
    module.forward(np.ones((1, 2, 2, 1)), True)
    assert module.backward(np.full((1, 1, 1, 1), 3.0)).ravel().tolist() == [3, 0, 0, 0]


def test_one_maximum_may_win_in_two_windows() -> None:
    module, _, _ = module_of(MaxPool(3, 2), (3, 5, 1))
    x = np.zeros((1, 3, 5, 1))
    x[0, 1, 2, 0] = 9
    assert module.forward(x, True).ravel().tolist() == [9, 9]
    assert module.backward(np.array([1.0, 10]).reshape(1, 1, 2, 1))[0, 1, 2, 0] == 11


def test_local_response_norm_by_hand() -> None:
    x = np.array([1.0, 2.0, 3.0]).reshape(1, 1, 1, 3)
    y = forward(LocalResponseNorm(1, 0.1, 0.75), x).ravel()
    sums = (1 + 4, 1 + 4 + 9, 4 + 9)  # cut at the ends
    assert y == pytest.approx(
        [value / (1 + 0.1 * s) ** 0.75 for value, s in zip((1, 2, 3), sums, strict=True)]
    )


def test_relu_and_its_slope_at_zero() -> None:
    module, _, _ = module_of(ReLU(), (3,))
    assert module.forward(np.array([[-1.0, 0, 2]]), True).tolist() == [[0, 0, 2]]
    assert module.backward(np.array([[5.0, 5, 5]])).tolist() == [[0, 0, 5]]


def test_log_softmax_of_large_values() -> None:
    y = forward(LogSoftmax(), np.array([[1000.0, 1000, 0], [-1000.0, -1000, -1000]]))
    assert y[0, :2] == pytest.approx([-np.log(2)] * 2)
    assert y[1] == pytest.approx([-np.log(3)] * 3)


@pytest.mark.parametrize("rate", [0.2, 0.5])
def test_dropout_drops_its_share_and_scales_the_rest(rate: float) -> None:
    y = forward(Dropout(rate), np.ones((1000, 100)))
    assert sorted(set(y.ravel().tolist())) == pytest.approx([0, 1 / (1 - rate)])
    assert (y == 0).mean() == pytest.approx(rate, abs=0.01)
    assert y.mean() == pytest.approx(1, abs=0.02)


@pytest.mark.parametrize("layer", [Dropout(0.5), ChannelDropout(0.5)])
def test_dropout_is_off_in_evaluation(layer: Layer) -> None:
    x = np.random.default_rng(0).standard_normal((2, 3, 3, 2))
    assert np.array_equal(forward(layer, x, training=False), x)


@pytest.mark.parametrize("layer", [Dropout(0.0), ChannelDropout(0.0)])
def test_dropout_of_nothing_changes_nothing(layer: Layer) -> None:
    x = np.random.default_rng(0).standard_normal((2, 3, 3, 2))
    assert np.array_equal(forward(layer, x), x)


@pytest.mark.parametrize("layer", [Dropout(0.5), ChannelDropout(0.5)])
def test_the_gradient_of_dropout_passes_where_the_value_passed(layer: Layer) -> None:
    module, _, _ = module_of(layer, (4, 4, 6))
    factor = module.forward(np.ones((5, 4, 4, 6)), True)
    gradient = np.random.default_rng(0).standard_normal((5, 4, 4, 6))
    np.testing.assert_array_equal(module.backward(gradient), gradient * factor)


def test_dropout_draws_anew_every_time() -> None:
    module, _, _ = module_of(Dropout(0.5), (100,))
    x = np.ones((1, 100))
    assert not np.array_equal(module.forward(x, True), module.forward(x, True))


def test_channel_dropout_drops_whole_maps_of_single_images() -> None:
    y = forward(ChannelDropout(0.5), np.ones((100, 4, 4, 20)))
    assert (y == y[:, :1, :1, :]).all()
    assert set(y.ravel().tolist()) == {0, 2}
    kept = y[:, 0, 0, :] > 0
    assert kept.mean() == pytest.approx(0.5, abs=0.05)
    # the same channel is kept in one image and dropped in another
    assert 0 < kept[:, 0].sum() < 100


def test_dropout_of_single_values_leaves_no_map_whole() -> None:
    y = forward(Dropout(0.5), np.ones((20, 8, 8, 4)))
    assert (np.ptp(y, axis=(1, 2)) == 2).all()


def test_batch_norm_uses_biased_and_stores_unbiased_variance() -> None:
    module, weights, _ = module_of(BatchNorm(momentum=0.25, epsilon=1e-5), (1, 1, 1))
    weights |= {"batch-norm1.scale": np.ones(1), "batch-norm1.shift": np.zeros(1)}
    x = np.array([1.0, 3.0]).reshape(2, 1, 1, 1)
    assert module.forward(x, True).ravel() == pytest.approx([-1, 1], abs=1e-4)
    assert weights["batch-norm1.mean"] == pytest.approx([1 + 0.25 * (2 - 1)])
    # ((1-2)² + (3-2)²)/(2-1)
    assert weights["batch-norm1.variance"] == pytest.approx([1 + 0.25 * (2 - 1)])
    kept = weights["batch-norm1.mean"].copy()
    assert module.forward(x, False).ravel() == pytest.approx(
        (x.ravel() - 1.25) / np.sqrt(1.25 + 1e-5)
    )
    assert np.array_equal(weights["batch-norm1.mean"], kept)


def test_attention_by_hand() -> None:
    module, weights, _ = module_of(Attention(1), (2, 1))
    weights |= {"attention1.qkv": np.array([[1.0, 1.0, 1.0]]), "attention1.out": np.array([[2.0]])}
    y = module.forward(np.array([[[1.0], [3.0]]]), True).ravel()
    shares = np.exp([3.0, 9.0]) / np.exp([3.0, 9.0]).sum()  # the second position sees both
    assert y == pytest.approx([2 * 1.0, 2 * (shares @ [1.0, 3.0])])


def test_a_head_takes_neighbouring_columns() -> None:
    module, weights, _ = module_of(Attention(2), (3, 4))
    weights["attention1.out"] = np.eye(4)
    x = np.random.default_rng(3).standard_normal((1, 3, 4))
    whole = module.forward(x, True)
    q, k, v = np.split(x @ weights["attention1.qkv"], 3, axis=-1)
    scores = np.where(np.tri(3, dtype=bool), q[0, :, :2] @ k[0, :, :2].T / np.sqrt(2), -np.inf)
    shares = np.exp(scores) / np.exp(scores).sum(axis=1, keepdims=True)
    np.testing.assert_allclose(whole[0, :, :2], shares @ v[0, :, :2], rtol=1e-12)


def test_gelu_is_exact() -> None:
    values = [-30.0, -3.0, -0.5, 0.0, 1.0, 8.0]
    y = forward(GELU(), np.array([values]))[0]
    assert y == pytest.approx([x * 0.5 * math.erfc(-x / math.sqrt(2)) for x in values], rel=1e-15)


def test_gradients_of_a_repeated_token_and_a_tied_head_are_added() -> None:
    plans = plans_of([TokenEmbedding(3, 2), TiedHead()], (2,))
    weights: Parameters = {"token-embedding1.table": np.array([[1.0, 2], [3, 4], [5, 6]])}
    gradients: Parameters = {}
    embedding, head = (build(plan, weights, gradients, np.random.default_rng(0)) for plan in plans)
    tokens = np.array([[1, 1]])
    probe = np.random.default_rng(1).standard_normal((1, 2, 3))

    def answer(table: Float64) -> float:
        return float((table[tokens] @ table.T * probe).sum())

    y = head.forward(embedding.forward(tokens, True), True)
    np.testing.assert_allclose(
        y, weights["token-embedding1.table"][tokens] @ weights["token-embedding1.table"].T
    )
    embedding.backward(head.backward(probe))
    expected = by_differences(answer, weights["token-embedding1.table"])
    np.testing.assert_allclose(gradients["token-embedding1.table"], expected, atol=1e-7)
