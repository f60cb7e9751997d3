"""A step without one of its parts still computes all others."""

from __future__ import annotations

import numpy as np
import pytest

from trainmark.backends.base import StepPart, Trainer
from trainmark.backends.parts import PARTS, Separable
from trainmark.workload.layers import TiedHead, TokenEmbedding
from trainmark.workload.optimizers import SGD, WeightAverage
from trainmark.workload.tokens import Tokens
from trainmark_conformance import acts
from trainmark_conformance.cases import Case, a_workload
from trainmark_conformance.suite import Suite

WITH_AVERAGE = Case(
    "momentum and average",
    a_workload(optimizer=SGD(0.5, 0.9), weight_average=WeightAverage(0.3)),
    (8, 8, 8, 8),
    train=32,
)
TEXT = Case(
    "windows of a text",
    a_workload(TokenEmbedding(10, 8), TiedHead(), input=Tokens(5)),
    (4, 4, 4),
    train=12,
)


class PartsConformance(Suite):
    """The parts that ``explain`` omits are omitted, and no others. Skipped by backends that are not
    separable.
    """

    @property
    def parts(self) -> frozenset[StepPart]:
        """The parts that the backend says it can omit."""
        made = self.made
        if not isinstance(made, Separable):
            pytest.skip(f"{self.backend} can't omit anything")
        return made.parts(self.options())

    def without(self, *parts: StepPart, case: Case = WITH_AVERAGE) -> Trainer:
        """Return a trainer without these parts, ready to train; skips the test if the backend can't
        omit them.
        """
        if not set(parts) <= self.parts:
            pytest.skip(
                f"{self.backend} {self.style} on {self.device} has no part {' or '.join(parts)}"
            )
        trainer = self.trainer(case, without=frozenset(parts))
        trainer.compile(case.plan)
        return trainer

    def test_its_parts_are_of_the_known_words(self) -> None:
        assert self.parts <= set(PARTS)

    def test_without_the_optimizer_nothing_moves_and_every_loss_is_that_of_the_first_weights(
        self,
    ) -> None:
        trainer = self.without("optimizer")
        before = trainer.weights()
        losses = acts.train(trainer, WITH_AVERAGE.plan).losses
        np.testing.assert_equal(trainer.weights(), before)
        learning = acts.train(self.trainer(WITH_AVERAGE), WITH_AVERAGE.plan).losses
        np.testing.assert_allclose(losses[0], learning[0], rtol=1e-5)
        assert len(set(losses.round(6))) == len(losses), "each step has another batch"

    @pytest.mark.parametrize("case", [WITH_AVERAGE, TEXT], ids=str)
    def test_without_input_every_step_takes_the_same_batch(self, case: Case) -> None:
        trainer = self.without("input", "optimizer", case=case)
        losses = acts.train(trainer, case.plan).losses
        np.testing.assert_allclose(losses, losses[0], rtol=1e-6)

    def test_without_input_it_learns_that_batch_by_heart(self) -> None:
        trainer = self.without("input")
        first = acts.train(trainer, WITH_AVERAGE.plan).losses
        second = acts.train(trainer, WITH_AVERAGE.plan).losses
        assert second[-1] < first[0]

    def test_without_the_loss_it_learns_to_lower_its_outputs(self) -> None:
        trainer = self.without("loss")
        order = WITH_AVERAGE.plan.order
        assert order is not None
        expected = trainer.outputs(
            WITH_AVERAGE.data.train.images[order[: WITH_AVERAGE.sizes[0]]]
        ).mean()
        losses = acts.train(trainer, WITH_AVERAGE.plan).losses
        np.testing.assert_allclose(losses[0], expected, rtol=1e-5, atol=1e-6)
        assert losses[-1] < losses[0]

    def test_without_all_of_them_it_still_counts_its_steps(self) -> None:
        trainer = self.without(*self.parts)
        assert len(acts.train(trainer, WITH_AVERAGE.plan).losses) == len(WITH_AVERAGE.sizes)
