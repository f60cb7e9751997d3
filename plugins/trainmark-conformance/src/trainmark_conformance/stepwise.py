"""All that :mod:`trainmark.backends.stepwise` shows of a step, compared with the oracle."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from trainmark.workload.layers import (
    Attention,
    Dropout,
    Flatten,
    MaxPool,
    ReLU,
    Residual,
    TiedHead,
    TokenEmbedding,
)
from trainmark.workload.optimizers import SGD
from trainmark.workload.pixels import Input
from trainmark.workload.tokens import Tokens
from trainmark_conformance import acts
from trainmark_conformance.cases import Case, a_workload, conv, dense
from trainmark_conformance.contract import PLAIN, REMEMBERING, RUNNING
from trainmark_conformance.modern import NETWORKS, OPTIMIZERS, RECIPES, WHOLE
from trainmark_conformance.suite import Suite

TRAINED = tuple(
    replace(case.changed(optimizer=SGD(0.1, 0.9, weight_decay=0.05)), sizes=(8, 8, 3))
    for case in NETWORKS
    if case.workload.input.distortions is None
)
_IMAGES = {
    "model": (conv(3, 3), MaxPool(2, 2), ReLU(), Flatten(), dense(10)),
    "input": Input((8, 6, 2)),
}
OF_IMAGES = tuple(case.changed(**_IMAGES) for case in (*OPTIMIZERS, *REMEMBERING))
_WIDTH = 8


class RecipeConformance(Suite):
    """A few trainings that need nearly all layers and options, and further promises to ``parity``.

    Skipped by backends whose trainers are not step-wise.
    """

    @pytest.mark.parametrize("case", (*RECIPES, WHOLE), ids=str)
    def test_everything_of_a_recipe(self, case: Case) -> None:
        self.compare_stepwise(case, acts.everything)

    @pytest.mark.parametrize("case", (*REMEMBERING, RUNNING), ids=str)
    def test_another_trainer_continues_in_the_middle_of_an_epoch(self, case: Case) -> None:
        first = self.stepwise(case)
        second = self.stepwise(case)
        first.begin_epoch(case.plan)
        steps = [first.read(first.train(2, acts.no_tick))]
        second.set_state(first.state())
        steps.append(acts.train(second, acts.part(case.plan, slice(2, None))))
        self.require(acts.of_steps(steps, case), case, acts.losses_alone)

    def test_its_state_has_its_precision(self) -> None:
        trainer = self.stepwise(PLAIN)
        acts.train(trainer, PLAIN.plan)
        rounded = [
            np.array_equal(value, value.astype(np.float32))
            for value in trainer.state().weights.values()
        ]
        assert all(rounded) if self.digits != "fp64" else not any(rounded)

    def test_looking_at_outputs_in_training_leaves_running_averages(self) -> None:
        trainer = self.stepwise(RUNNING)
        trainer.activations(np.arange(6), training=True)
        np.testing.assert_equal(trainer.weights(), RUNNING.weights)

    def test_attention_drops_its_share_of_probabilities_in_training_only(self) -> None:
        """With queries of 0, every position seen has the same share; with values of 1, outputs are
        sums of shares.
        """
        layers = TokenEmbedding(10, _WIDTH), Attention(2, 0.25), TiedHead()
        case = Case("attention", a_workload(*layers, input=Tokens(6)), (8,), train=400)
        weights = {
            "token-embedding1.table": np.full((10, _WIDTH), 1 / _WIDTH, np.float32),
            "attention1.qkv": np.tile(np.repeat([0, 0, 1], _WIDTH), (_WIDTH, 1)).astype(np.float32),
            "attention1.out": np.eye(_WIDTH, dtype=np.float32),
        }
        trainer = self.stepwise(case, weights)
        off, on = (
            # one value of each head
            trainer.activations(np.arange(400), training=training)["attention1"][..., ::4]
            for training in (False, True)
        )
        np.testing.assert_allclose(off, 1, rtol=1e-5)
        first = on[:, 0]  # sees only itself
        assert np.unique(first.round(4)) == pytest.approx([0, 1 / 0.75], abs=1e-4)
        assert (first == 0).mean() == pytest.approx(0.25, abs=0.08)
        assert on.mean() == pytest.approx(1, abs=0.05)

    def test_each_layer_drops_other_values(self) -> None:
        twice = Residual((Dropout(0.5), Dropout(0.5)))
        workload = a_workload(TokenEmbedding(10, _WIDTH), twice, twice, TiedHead(), input=Tokens(6))
        case = Case("dropouts", workload, (8,))
        found = self.stepwise(case).activations(np.arange(20), training=True)
        kept = {name: value != 0 for name, value in found.items()}
        one = kept["dropout1"]
        other = kept["dropout2"]
        third = kept["dropout3"]
        assert one.mean() == pytest.approx(0.5, abs=0.1)
        assert other[one].mean() == pytest.approx(0.5, abs=0.1)
        assert (one == third)[kept["residual1"]].mean() == pytest.approx(0.5, abs=0.2)


class StepwiseConformance(RecipeConformance):
    """States, gradients and the outputs of all layers, for every network and optimiser."""

    @pytest.mark.parametrize("case", (*TRAINED, *OPTIMIZERS), ids=str)
    def test_everything_of_an_epoch(self, case: Case) -> None:
        self.compare_stepwise(case, acts.everything)

    @pytest.mark.parametrize("case", (*OF_IMAGES, RUNNING, *RECIPES), ids=str)
    def test_a_state_is_given_back_and_continued(self, case: Case) -> None:
        self.compare_stepwise(case, acts.from_a_state)
