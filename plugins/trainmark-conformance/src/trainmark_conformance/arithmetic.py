"""Every layer, loss and optimiser, and the workloads of the catalogue, compared with the oracle."""

from __future__ import annotations

import dataclasses

import numpy as np
import pytest

from trainmark.workload.layers import Dense, Flatten
from trainmark.workload.losses import (
    ClippedCrossEntropy,
    Loss,
    SoftmaxCrossEntropy,
    TwoStageCrossEntropy,
)
from trainmark.workload.optimizers import SGD
from trainmark.workload.schedule import Batches
from trainmark_conformance import acts
from trainmark_conformance.cases import CATALOGUE, WITH_DROPOUT, Case, a_workload
from trainmark_conformance.modern import AUGMENTED, NETWORKS, OPTIMIZERS, RECIPES, WHOLE
from trainmark_conformance.oracle import exact
from trainmark_conformance.suite import Suite

EVERY_NETWORK = pytest.mark.parametrize("case", (*NETWORKS, *WITH_DROPOUT, *CATALOGUE), ids=str)


class ArithmeticConformance(Suite):
    """The oracle's numbers, up to rounding."""

    @EVERY_NETWORK
    def test_weights_come_back_as_they_went_in(self, case: Case) -> None:
        found = self.trainer(case).weights()
        assert {name: value.shape for name, value in found.items()} == {
            name: weight.shape for name, weight in case.model.weights.items()
        }
        assert {value.dtype for value in found.values()} == {np.dtype(np.float32)}
        np.testing.assert_equal(found, case.weights)

    @EVERY_NETWORK
    def test_outputs_and_evaluations(self, case: Case) -> None:
        """Dropout and distortions are off in both."""
        self.compare(case, acts.look)

    @pytest.mark.parametrize("case", NETWORKS, ids=str)
    def test_loss_and_gradients(self, case: Case) -> None:
        self.compare(case, acts.one_step)

    @pytest.mark.parametrize("case", (*OPTIMIZERS, *RECIPES, WHOLE), ids=str)
    def test_the_first_updates(self, case: Case) -> None:
        self.compare(case, acts.step_by_step)

    @pytest.mark.parametrize("case", CATALOGUE, ids=str)
    def test_the_first_five_steps_of_the_catalogue(self, case: Case) -> None:
        deterministic = dataclasses.replace(case, workload=case.workload.deterministic())
        self.compare(deterministic, acts.losses_alone)

    def test_images_are_not_augmented_without_draws(self) -> None:
        self.compare(AUGMENTED, acts.without_draws)

    def test_hits_are_counted_before_the_update(self) -> None:
        """Three steps on the same examples, with a learning rate so high that each step gets more
        of them right.
        """
        case = Case("learning fast", a_workload(optimizer=SGD(1.0), batches=Batches(24)), (24,) * 3)
        assert case.plan.order is not None and sorted(case.plan.order[:24]) == list(range(24))
        assert len(set(exact(case, acts.losses_alone)["hits"])) == 3
        self.compare(case, acts.losses_alone)

    def test_an_evaluation_takes_every_example_once(self) -> None:
        """The splits don't fit in one batch, and no batch size divides them."""
        self.compare(Case("many", a_workload(), (8,), train=1_237, test=2_503), acts.look)

    @pytest.mark.parametrize(
        ("loss", "expected"),
        [
            (SoftmaxCrossEntropy(), 1000.0),
            (ClippedCrossEntropy(1e-7), -np.log(1e-7)),
            (TwoStageCrossEntropy(), np.inf),
        ],
        ids=lambda value: getattr(value, "kind", ""),
    )
    def test_a_probability_that_underflows(self, loss: Loss, expected: float) -> None:
        """Logits 1000 apart: a fused loss is finite, a clipped one has no gradient, and two stages
        give infinity.
        """
        workload = a_workload(
            Flatten(), Dense(10), loss=loss, optimizer=SGD(1.0), batches=Batches(1)
        )
        case = Case("underflow", workload, (1,), train=1)
        label = int(case.data.train.labels[0])
        bias = np.zeros(10, np.float32)
        bias[(label + 1) % 10] = 1000
        trainer = self.trainer(
            case, {"dense1.kernel": np.zeros((16, 10), np.float32), "dense1.bias": bias}
        )
        (found,) = acts.train(trainer, case.plan).losses
        after = trainer.weights()["dense1.bias"]
        assert found == pytest.approx(expected, rel=1e-6)
        if isinstance(loss, SoftmaxCrossEntropy):
            assert after[label] == pytest.approx(1, rel=1e-6), "the true class gains the whole rate"
        elif isinstance(loss, ClippedCrossEntropy):
            np.testing.assert_array_equal(
                after, bias, "an example outside the clip range has no gradient"
            )
        else:
            assert np.isnan(after).any(), "1/p times 0 is not a number"

    def test_the_probability_of_a_wrong_class_may_underflow(self) -> None:
        workload = a_workload(
            Flatten(),
            Dense(10),
            loss=TwoStageCrossEntropy(),
            optimizer=SGD(1.0),
            batches=Batches(1),
        )
        case = Case("right", workload, (1,), train=1)
        bias = np.zeros(10, np.float32)
        bias[int(case.data.train.labels[0])] = 1000
        trainer = self.trainer(
            case, {"dense1.kernel": np.zeros((16, 10), np.float32), "dense1.bias": bias}
        )
        assert acts.train(trainer, case.plan).losses.tolist() == [0.0]
        np.testing.assert_array_equal(trainer.weights()["dense1.bias"], bias)
