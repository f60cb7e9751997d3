"""A step without one of its parts computes what is left of it, and nothing else."""

from __future__ import annotations

import dataclasses

import numpy as np
import pytest

from trainmark.backends.base import Options, Part, Trainer
from trainmark.backends.parts import PARTS, Separable
from trainmark.workload.optimizers import SGD, WeightAverage
from trainmark_conformance import acts
from trainmark_conformance.cases import Case, a_workload
from trainmark_conformance.suite import Suite

REMEMBERING = Case(
    "remembering", a_workload(optimizer=SGD(0.5, 0.9), weight_average=WeightAverage(0.3)), (8, 8, 8, 8), train=32
)


class PartsConformance(Suite):
    """What ``explain`` takes away is away, and the rest is there. Skipped by backends that are not separable."""

    @property
    def parts(self) -> frozenset[Part]:
        """What it says it can leave out."""
        made = self.made
        if not isinstance(made, Separable):
            pytest.skip(f"{self.backend} can't leave anything out")
        return made.parts(self.options())

    def without(self, *parts: Part) -> Trainer:
        """A trainer without those; skips the test where it does not have them."""
        if not set(parts) <= self.parts:
            pytest.skip(f"{self.backend} {self.style} on {self.device} has no part {' or '.join(parts)}")
        options: Options = dataclasses.replace(self.options(), without=frozenset(parts))
        trainer = self.made.trainer(REMEMBERING.workload, REMEMBERING.model, REMEMBERING.data, options)
        trainer.load(REMEMBERING.weights)
        trainer.compile(REMEMBERING.plan)
        return trainer

    def test_its_parts_are_of_the_known_words(self) -> None:
        assert self.parts <= set(PARTS)

    def test_without_the_optimizer_nothing_moves_and_every_loss_is_that_of_the_first_weights(self) -> None:
        trainer = self.without("optimizer")
        before = trainer.weights()
        losses = acts.train(trainer, REMEMBERING.plan).losses
        for name, value in trainer.weights().items():
            np.testing.assert_array_equal(value, before[name], name)
        learning = self.trainer(REMEMBERING)
        learning.load(REMEMBERING.weights)
        np.testing.assert_allclose(losses[0], acts.train(learning, REMEMBERING.plan).losses[0], rtol=1e-5)
        assert len(set(losses.round(6))) == len(losses), "each of another batch"

    def test_without_input_every_step_takes_the_same_batch(self) -> None:
        trainer = self.without("input", "optimizer")
        losses = acts.train(trainer, REMEMBERING.plan).losses
        np.testing.assert_allclose(losses, losses[0], rtol=1e-6)

    def test_without_input_it_learns_that_batch_by_heart(self) -> None:
        trainer = self.without("input")
        first = acts.train(trainer, REMEMBERING.plan).losses
        second = acts.train(trainer, REMEMBERING.plan).losses
        assert second[-1] < first[0]

    def test_without_the_loss_it_learns_to_lower_its_outputs(self) -> None:
        trainer = self.without("loss")
        order = REMEMBERING.plan.order
        assert order is not None
        expected = trainer.outputs(REMEMBERING.data.train.images[order[: REMEMBERING.sizes[0]]]).mean()
        losses = acts.train(trainer, REMEMBERING.plan).losses
        np.testing.assert_allclose(losses[0], expected, rtol=1e-5, atol=1e-6)
        assert losses[-1] < losses[0]

    def test_without_all_of_them_it_still_counts_its_steps(self) -> None:
        trainer = self.without(*self.parts)
        assert len(acts.train(trainer, REMEMBERING.plan).losses) == len(REMEMBERING.sizes)
