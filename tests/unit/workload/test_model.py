"""The numbers are those of the table in the specification of the workloads."""

from __future__ import annotations

import dataclasses

import numpy as np
import pytest

from trainmark.workload import catalog
from trainmark.workload.decode import Misfit
from trainmark.workload.initializers import Constant, TruncatedNormal
from trainmark.workload.layers import (
    GELU,
    Attention,
    ChannelDropout,
    Conv2D,
    Dense,
    Flatten,
    Layer,
    LocalResponseNorm,
    LogSoftmax,
    MaxPool,
    PositionEmbedding,
    ReLU,
    Repeat,
    Residual,
    TiedHead,
    TokenEmbedding,
)
from trainmark.workload.losses import NegativeLogLikelihood
from trainmark.workload.model import Model, initial_weights, lay_out, plans_of
from trainmark.workload.tokens import Tokens

from .samples import a_workload

TABLE = TokenEmbedding(9, 4)


def model_of(name: str) -> Model:
    return lay_out(catalog.find(name))


@pytest.mark.parametrize(
    ("name", "parameters", "forward_macs", "training_macs"),
    [
        ("mnist-mlp32", 25_450, 25_408, 51_136),
        ("mnist-mlp128", 109_386, 109_184, 227_200),
        ("mnist-cnn", 21_840, 480_500, 1_297_500),
        ("mnist-mlp512", 669_706, 668_672, 1_604_608),
        ("cifar10-cnn", 1_068_298, 18_470_784, 52_647_552),
    ],
)
def test_size_and_cost(name: str, parameters: int, forward_macs: int, training_macs: int) -> None:
    model = model_of(name)
    assert model.parameters == parameters
    assert model.forward_flops == 2 * forward_macs
    assert model.training_flops == 2 * training_macs
    assert model.classes == 10


@pytest.mark.parametrize(
    ("name", "macs"),
    [
        ("mnist-cnn", {"conv2d1": 144_000, "conv2d2": 320_000, "dense1": 16_000, "dense2": 500}),
        (
            "cifar10-cnn",
            {
                "conv2d1": 2_764_800,
                "conv2d2": 14_745_600,
                "dense1": 884_736,
                "dense2": 73_728,
                "dense3": 1_920,
            },
        ),
    ],
)
def test_cost_of_each_layer(name: str, macs: dict[str, int]) -> None:
    model = model_of(name)
    assert {plan.name: plan.forward_macs for plan in model.layers if plan.forward_macs} == macs
    first, *rest = model.weighted_layers
    # no one asks for the gradient by the pixels
    assert first.training_macs == 2 * first.forward_macs
    assert all(plan.training_macs == 3 * plan.forward_macs for plan in rest)


@pytest.mark.parametrize(
    ("name", "shapes"),
    [
        (
            "mnist-cnn",
            [
                *(
                    (24, 24, 10),
                    (12, 12, 10),
                    (12, 12, 10),
                    (8, 8, 20),
                    (8, 8, 20),
                    (4, 4, 20),
                    (4, 4, 20),
                ),
                *((320,), (50,), (50,), (50,), (10,), (10,)),
            ],
        ),
        (
            "cifar10-cnn",
            [
                *((24, 24, 64), (24, 24, 64), (12, 12, 64), (12, 12, 64)),
                *((12, 12, 64), (12, 12, 64), (12, 12, 64), (6, 6, 64)),
                *((2304,), (384,), (384,), (192,), (192,), (10,)),
            ],
        ),
    ],
)
def test_shapes(name: str, shapes: list[tuple[int, ...]]) -> None:
    assert [plan.output_shape for plan in model_of(name).layers] == shapes


@pytest.mark.parametrize(
    ("layers", "path", "message"),
    [
        ((Dense(10),), ("model", 0), "a 'flatten' layer before 'dense', found images of 4 × 4 × 1"),
        (
            (Flatten(), Conv2D(1, 1)),
            ("model", 1),
            "images before 'conv2d', found 16 values per example",
        ),
        ((Flatten(), MaxPool(1, 1)), ("model", 1), "images before 'max-pool'"),
        (
            (Flatten(), LocalResponseNorm(1, 1, 1)),
            ("model", 1),
            "images before 'local-response-norm'",
        ),
        ((Flatten(), ChannelDropout(0.5)), ("model", 1), "images before 'channel-dropout'"),
        ((Conv2D(1, 5),), ("model", 0, "size"), "a window of at most 4, found 5"),
        ((MaxPool(2, 2), MaxPool(3, 1)), ("model", 1, "size"), "a window of at most 2, found 3"),
        ((ReLU(),), ("model", 0), "one value per class at the end of the network"),
        (
            (TokenEmbedding(9, 4),),
            ("model", 0),
            "tokens before 'token-embedding', found values of the shape 4 × 4 × 1",
        ),
        (
            (Flatten(), TokenEmbedding(9, 4)),
            ("model", 1),
            "'token-embedding' as the first layer, .* found another",
        ),
        (
            (Flatten(), Dense(9), TiedHead()),
            ("model", 2),
            "sequences of vectors before 'tied-head'",
        ),
        (
            (Residual((Flatten(),)),),
            ("model", 0, "body"),
            "branches of equal shape, 16 in the body, .* 4 × 4 × 1",
        ),
        (
            (Residual((Conv2D(2, 1),), (Conv2D(3, 1),)),),
            ("model", 0, "shortcut"),
            "4 × 4 × 2 in the body, .* 4 × 4 × 3",
        ),
    ],
)
def test_a_layer_that_does_not_fit_is_named(
    layers: tuple[Layer, ...], path: tuple[object, ...], message: str
) -> None:
    with pytest.raises(Misfit, match=message) as caught:
        lay_out(a_workload(*layers))
    assert caught.value.path == path


@pytest.mark.parametrize(
    ("model", "path", "message"),
    [
        ((Repeat(2, (TABLE,)),), ("model", 0, "layers", 0), "tokens before 'token-embedding'"),
        ((GELU(), TABLE), ("model", 1), "'token-embedding' as the first layer"),
        (
            (Residual((Dense(4), TABLE)),),
            ("model", 0, "body", 1),
            "'token-embedding' as the first layer",
        ),
        ((TABLE, Attention(3)), ("model", 1, "heads"), "a divisor of the width, 4, found 3"),
        (
            (TABLE, PositionEmbedding(7)),
            ("model", 1, "length"),
            "at least 8, the length of the sequences, found 7",
        ),
        (
            (TABLE, Dense(5), TiedHead()),
            ("model", 2),
            "vectors of the embedding's width, 4, found the shape 8 × 5",
        ),
        (
            (Residual((Dense(8),)), TiedHead()),
            ("model", 1),
            "sequences of vectors before 'tied-head'",
        ),
        ((TABLE, Flatten()), ("model", 1), "one value per token of the vocabulary"),
    ],
)
def test_a_layer_that_does_not_fit_a_text_is_named(
    model: tuple[Layer, ...], path: tuple[object, ...], message: str
) -> None:
    with pytest.raises(Misfit, match=message) as caught:
        lay_out(a_workload(*model, input=Tokens(8)))
    assert caught.value.path == path


def test_a_tied_head_needs_an_embedding() -> None:
    with pytest.raises(Misfit, match="a 'token-embedding' before 'tied-head', found none"):
        plans_of((TiedHead(),), (8, 4))


def test_log_softmax_wants_rows() -> None:
    with pytest.raises(Misfit, match="a 'flatten' layer before 'log-softmax'"):
        lay_out(a_workload(Conv2D(1, 3), LogSoftmax(), loss=NegativeLogLikelihood()))


def test_a_padded_window_may_be_larger_than_the_image() -> None:
    model = lay_out(a_workload(Conv2D(2, 7, padding="same"), Flatten(), Dense(10)))
    assert model.layers[0].output_shape == (4, 4, 2)


@pytest.mark.parametrize(
    ("name", "bounds"),
    [
        ("mnist-mlp32", [0.085749, 0.377964]),
        ("mnist-mlp128", [0.01, 0.01, 0.01]),
        ("mnist-mlp512", [0.068041, 0.076547, 0.107211]),
        ("mnist-cnn", [0.2, 0.063246, 0.055902, 0.141421]),
    ],
)
def test_uniform_weights_fill_their_bounds(name: str, bounds: list[float]) -> None:
    model = model_of(name)
    weights = initial_weights(model, seed=1)
    for plan, bound in zip(model.weighted_layers, bounds, strict=True):
        kernel = weights[plan.kernel_name]
        assert 0.95 * bound < np.abs(kernel).max() <= bound * 1.00001
        assert abs(kernel.mean()) < 4 * bound / np.sqrt(3 * kernel.size)


def test_biases_are_zero_but_in_the_cnn_as_wide_as_the_weights() -> None:
    for name in ("mnist-mlp32", "mnist-mlp128", "mnist-mlp512"):
        weights = initial_weights(model_of(name), seed=1)
        assert all(not value.any() for key, value in weights.items() if key.endswith(".bias"))
    bias = initial_weights(model_of("mnist-cnn"), seed=1)["dense1.bias"]
    assert 0.7 * 0.055902 < np.abs(bias).max() <= 0.055902
    assert len(set(bias.tolist())) == 50


def test_weights_of_the_cifar_network() -> None:
    model = model_of("cifar10-cnn")
    weights = initial_weights(model, seed=3)
    assert {name: value.shape for name, value in weights.items()} == {
        "conv2d1.kernel": (5, 5, 3, 64),
        "conv2d1.bias": (64,),
        "conv2d2.kernel": (5, 5, 64, 64),
        "conv2d2.bias": (64,),
        "dense1.kernel": (2304, 384),
        "dense1.bias": (384,),
        "dense2.kernel": (384, 192),
        "dense2.bias": (192,),
        "dense3.kernel": (192, 10),
        "dense3.bias": (10,),
    }
    assert all(value.dtype == np.float32 for value in weights.values())
    assert sum(value.size for value in weights.values()) == 1_068_298
    for name, sd in (("conv2d2", 0.05), ("dense1", 0.04), ("dense2", 0.04)):
        kernel = weights[f"{name}.kernel"]
        assert 1.99 * sd < np.abs(kernel).max() <= 2 * sd * 1.000001
        assert kernel.std() == pytest.approx(0.8796 * sd, rel=0.01)
    assert [
        float(weights[f"{name}.bias"][0])
        for name in ("conv2d1", "conv2d2", "dense1", "dense2", "dense3")
    ] == (pytest.approx([0, 0.1, 0.1, 0.1, 0]))
    parts = [
        0.5 * plan.l2 * float((weights[plan.kernel_name].astype(np.float64) ** 2).sum())
        for plan in model.weighted_layers
        if plan.l2
    ]
    assert parts == pytest.approx([2.191, 0.183], abs=0.01)
    assert sum(parts) == pytest.approx(2.374, abs=0.01)


def test_initial_weights_depend_on_the_seed_alone() -> None:
    model = model_of("mnist-cnn")
    first, again, other = (initial_weights(model, seed) for seed in (5, 5, 6))
    assert all(np.array_equal(first[name], again[name]) for name in first)
    assert all(not np.array_equal(first[name], other[name]) for name in first)


def test_weights_can_be_drawn_by_hand() -> None:
    """Any NumPy since 1.17: uniform numbers of PCG64 seeded with [seed, index of the layer]."""
    kernel = initial_weights(model_of("mnist-mlp32"), seed=7)["dense1.kernel"]
    uniform = np.random.Generator(np.random.PCG64([7, 1])).random((784, 32))
    np.testing.assert_allclose(kernel, (2 * uniform - 1) * np.sqrt(6 / 816), rtol=1e-6)


def test_each_layer_has_its_own_stream() -> None:
    normal = Dense(16, kernel=TruncatedNormal(0.1))
    workload = a_workload(Flatten(), normal, normal, Dense(10))
    weights = initial_weights(lay_out(workload), seed=1)
    assert not np.array_equal(weights["dense1.kernel"], weights["dense2.kernel"])
    changed = dataclasses.replace(
        workload, model=(Flatten(), Dense(16, kernel=Constant(0.5)), normal, Dense(10))
    )
    others = initial_weights(lay_out(changed), seed=1)
    assert np.array_equal(weights["dense2.kernel"], others["dense2.kernel"])
    assert (others["dense1.kernel"] == 0.5).all()
