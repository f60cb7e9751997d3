from __future__ import annotations

import warnings

import numpy as np
import pytest

from trainmark.backends.numpy.losses import loss_and_gradient
from trainmark.workload.losses import (
    ClippedCrossEntropy,
    Loss,
    NegativeLogLikelihood,
    SoftmaxCrossEntropy,
    TwoStageCrossEntropy,
)

from .differences import Float64, by_differences

KERAS = ClippedCrossEntropy(1e-7)
ON_LOGITS = [SoftmaxCrossEntropy(), TwoStageCrossEntropy(), KERAS]
LABELS = np.array([2, 0, 1])


def logits_with_gap(gap: float) -> np.ndarray:
    """One example of two classes in single precision; the true one, 0, lies ``gap`` below the
    other."""
    return np.array([[0, gap]], np.float32)


@pytest.mark.parametrize("loss", [NegativeLogLikelihood(), *ON_LOGITS], ids=lambda loss: loss.kind)
def test_the_gradient_is_the_slope_of_the_mean_loss(loss: Loss) -> None:
    outputs = np.random.default_rng(0).standard_normal((3, 4))

    def mean(there: Float64) -> float:
        return float(loss_and_gradient(loss, there, LABELS)[0].mean())

    _, gradient = loss_and_gradient(loss, outputs, LABELS)
    np.testing.assert_allclose(gradient, by_differences(mean, outputs), atol=1e-8)


@pytest.mark.parametrize("loss", ON_LOGITS, ids=lambda loss: loss.kind)
def test_all_forms_say_the_same_of_tame_logits(loss: Loss) -> None:
    logits = np.array([[0.0, np.log(3.0)], [0.0, 0.0]])
    each, gradient = loss_and_gradient(loss, logits, np.array([0, 1]))
    assert each == pytest.approx([np.log(4), np.log(2)])  # p of the true class is 1/4, then 1/2
    assert gradient == pytest.approx(np.array([[-0.75, 0.75], [0.5, -0.5]]) / 2)


def test_nll_takes_log_probabilities() -> None:
    each, gradient = loss_and_gradient(
        NegativeLogLikelihood(), np.log([[0.25, 0.75]]), np.array([0])
    )
    assert each == pytest.approx([np.log(4)])
    assert gradient.tolist() == [[-1, 0]]


@pytest.mark.parametrize("loss", ON_LOGITS, ids=lambda loss: loss.kind)
def test_a_constant_added_to_all_logits_changes_nothing(loss: Loss) -> None:
    logits = np.array([[1.0, -2.0, 0.5]])
    plain, shifted = (loss_and_gradient(loss, logits + shift, np.array([1])) for shift in (0, 800))
    np.testing.assert_allclose(plain[0], shifted[0])
    np.testing.assert_allclose(plain[1], shifted[1])


@pytest.mark.parametrize("gap", [89.0, 95, 100, 103])
def test_a_two_stage_gradient_overflows_if_p_is_subnormal(
    gap: float,
) -> None:
    """1/p overflows: the published 'Loss is NaN' of mnist-mlp32 on the CPU."""
    each, gradient = loss_and_gradient(TwoStageCrossEntropy(), logits_with_gap(gap), np.array([0]))
    assert each[0] == pytest.approx(gap, rel=0.01)
    assert not np.isfinite(gradient).all()


@pytest.mark.parametrize("gap", [105.0, 200, 1e4])
def test_two_stages_have_an_infinite_loss_where_p_is_zero(gap: float) -> None:
    each, gradient = loss_and_gradient(TwoStageCrossEntropy(), logits_with_gap(gap), np.array([0]))
    assert each[0] == np.inf
    assert not np.isfinite(gradient).all()


@pytest.mark.parametrize("gap", [0.0, 10, 50, 88])
def test_two_stages_are_well_below_that(gap: float) -> None:
    each, gradient = loss_and_gradient(TwoStageCrossEntropy(), logits_with_gap(gap), np.array([0]))
    fused, slope = loss_and_gradient(SoftmaxCrossEntropy(), logits_with_gap(gap), np.array([0]))
    np.testing.assert_allclose(each, fused, rtol=1e-5)
    np.testing.assert_allclose(gradient, slope, rtol=1e-5, atol=1e-6)


def test_a_wrong_class_with_probability_zero_does_no_harm() -> None:
    each, gradient = loss_and_gradient(TwoStageCrossEntropy(), logits_with_gap(200), np.array([1]))
    assert each.tolist() == [0]
    assert gradient.tolist() == [[0, 0]]


@pytest.mark.parametrize("gap", [89.0, 95, 103, 200, 1e4])
def test_the_fused_form_stays_finite(gap: float) -> None:
    each, gradient = loss_and_gradient(SoftmaxCrossEntropy(), logits_with_gap(gap), np.array([0]))
    assert each == pytest.approx([gap])
    assert gradient == pytest.approx(np.array([[-1, 1]]))


@pytest.mark.parametrize("gap", [17.0, 50, 89, 95, 103, 200])
def test_a_clipped_loss_is_16_at_most_and_has_no_gradient_there(gap: float) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        each, gradient = loss_and_gradient(KERAS, logits_with_gap(gap), np.array([0]))
    assert each == pytest.approx([-np.log(1e-7)])  # 16.118
    assert gradient.tolist() == [[0, 0]]


def test_a_clipped_loss_of_a_certain_answer_is_positive_and_flat() -> None:
    each, gradient = loss_and_gradient(KERAS, logits_with_gap(50), np.array([1]))
    assert 0 < each[0] < 2e-7
    assert gradient.tolist() == [[0, 0]]


def test_only_examples_outside_the_clip_range_lose_the_gradient() -> None:
    logits = np.array([[0, 50], [0, 1]], np.float32)
    _, gradient = loss_and_gradient(KERAS, logits, np.array([0, 0]))
    assert gradient[0].tolist() == [0, 0]
    p = 1 / (1 + np.e)
    assert gradient[1] == pytest.approx(np.array([p - 1, 1 - p]) / 2, rel=1e-5)


@pytest.mark.parametrize("loss", [NegativeLogLikelihood(), *ON_LOGITS], ids=lambda loss: loss.kind)
def test_single_precision_stays_single(loss: Loss) -> None:
    each, gradient = loss_and_gradient(loss, np.zeros((3, 4), np.float32), LABELS)
    assert each.dtype == gradient.dtype == np.float32
