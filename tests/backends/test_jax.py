"""What only the JAX backend has. All else is in ``test_conformance.py``."""

from __future__ import annotations

from functools import partial

import numpy as np
import pytest

from trainmark.backends import registry
from trainmark.backends.base import Options
from trainmark.workload.pixels import augment, draw_augmentation
from trainmark.workload.products import Convolution, Product
from trainmark_conformance.modern import AUGMENTED, LANGUAGE_MODEL

jax = pytest.importorskip("jax", reason="jax is not installed")


def test_an_image_is_augmented_as_defined() -> None:
    from trainmark.backends.jax import pixels

    rng = np.random.default_rng(0)
    spec = AUGMENTED.workload.augmented_input
    assert spec is not None
    x = rng.random((50, *spec.shape), np.float32)
    draws = draw_augmentation(spec, 50, rng)
    np.testing.assert_array_equal(
        pixels.augment(spec, jax.numpy.asarray(x), draws), augment(spec, x, draws)
    )


def test_limits_repeat_products_and_stride() -> None:
    from trainmark.backends.jax.peaks import _in_a_row, _layers_in_a_row

    limits = registry.load("jax").peak_kernels(Options("fast", "cpu", "fp32", 1))  # type: ignore[attr-defined]
    several = Product(5, 3, 4, number=6)
    turned = Product(5, 3, 4, turned=True, number=6)
    convolution = Convolution(2, 4, 3, 3, 3, 5, by_input=True, padding=1, stride=2)
    asked = [several, turned, Product(5, 3, 4)]
    shapes = jax.eval_shape(partial(_in_a_row, asked), limits._random(asked))
    assert [each.shape for each in shapes] == [(6, 5, 4), (6, 5, 4), (5, 4)]
    [(y, gradients)] = jax.eval_shape(
        partial(_layers_in_a_row, [convolution]), limits._random([convolution])
    )
    assert y.shape == (2, 4, 3, 5)
    assert [each.shape for each in gradients] == [(2, 7, 5, 3), (3, 3, 3, 5)]


def test_the_products_of_the_gradients_have_16_bits_too() -> None:
    from trainmark.backends.jax.network import Network

    case = LANGUAGE_MODEL
    network = Network(case.model, jax.numpy.bfloat16)
    weights = {name: jax.numpy.asarray(value) for name, value in case.weights.items()}
    x = np.zeros((2, 5), np.int32)
    traced = jax.make_jaxpr(jax.grad(lambda given: network(given, x, None)[0].sum()))(weights)
    products = [each for each in traced.eqns if each.primitive.name == "dot_general"]
    assert {str(factor.aval.dtype) for each in products for factor in each.invars} == {"bfloat16"}
    assert len(products) > len(weights)
