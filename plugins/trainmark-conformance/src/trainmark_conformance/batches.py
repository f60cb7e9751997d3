"""Which examples a step takes. At a negligible learning rate, the loss of a batch of one identifies
its example.
"""

from __future__ import annotations

from functools import cache
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from trainmark.backends.base import EpochPlan
from trainmark.workload.optimizers import SGD
from trainmark.workload.schedule import Batches
from trainmark_conformance import acts
from trainmark_conformance.cases import Case, a_workload
from trainmark_conformance.oracle import oracle_trainer
from trainmark_conformance.suite import Suite

EXAMPLES = 29
CLOSE = 1e-5  # relative, of losses; they are much further apart


def still(size: int, last: Any = "keep") -> Case:
    """Return a case with batches of ``size`` that learns nothing."""
    workload = a_workload(optimizer=SGD(1e-12), batches=Batches(size, last))
    return Case("not learning", workload, workload.batches.sizes(EXAMPLES), train=EXAMPLES)


@cache
def example_losses() -> NDArray[np.float64]:
    """Return the oracle's loss of each example in stored order, ``[examples]``."""
    case = still(1)
    losses = acts.train(oracle_trainer(case), EpochPlan(case.sizes, np.arange(EXAMPLES))).losses
    assert np.diff(np.sort(losses)).min() > 10 * CLOSE, "no two examples have the same loss"
    return losses


def passes(count: int) -> NDArray[np.int64]:
    """Return the order of ``count`` passes over the training set, each shuffled anew."""
    return np.concatenate(
        [np.random.default_rng(start).permutation(EXAMPLES) for start in range(count)]
    )


class BatchConformance(Suite):
    """Given orders are followed; the framework's own shuffle takes each example once a pass."""

    @pytest.mark.parametrize("taken", [EXAMPLES, 20, 3 * EXAMPLES])
    def test_a_given_order_is_followed(self, taken: int) -> None:
        """All examples, some of them, several passes."""
        order = passes(3)[:taken]
        found = self._losses(still(1), EpochPlan((1,) * taken, order))
        np.testing.assert_allclose(found, example_losses()[order], rtol=CLOSE)

    def test_a_given_order_is_cut_into_batches(self) -> None:
        """Two passes, each with a smaller last batch."""
        case = still(8)
        order = passes(2)
        edges = np.cumsum(case.sizes * 2)[:-1]
        expected = [example_losses()[part].mean() for part in np.split(order, edges)]
        np.testing.assert_allclose(
            self._losses(case, EpochPlan(case.sizes * 2, order)), expected, rtol=CLOSE
        )

    def test_its_own_shuffle_takes_every_example_once(self) -> None:
        case = still(1)
        trainer = self.trainer(case)
        plan = EpochPlan(case.sizes, None)
        trainer.compile(plan)
        first, second = (acts.train(trainer, plan).losses for _ in range(2))
        for found in (first, second):
            np.testing.assert_allclose(np.sort(found), np.sort(example_losses()), rtol=CLOSE)
            assert np.abs(found - example_losses()).max() > CLOSE, "not the stored order"
        assert np.abs(first - second).max() > CLOSE, "another order every epoch"

    def test_its_own_shuffle_of_several_passes(self) -> None:
        found = self._losses(still(1), EpochPlan((1,) * (2 * EXAMPLES), None)).reshape(2, EXAMPLES)
        for one_pass in found:
            np.testing.assert_allclose(np.sort(one_pass), np.sort(example_losses()), rtol=CLOSE)

    def test_its_own_shuffle_of_a_part(self) -> None:
        """An epoch that ends in the middle of a pass."""
        found = self._losses(still(1), EpochPlan((1,) * 20, None))
        apart = np.abs(found[:, None] - example_losses())
        assert apart.min(axis=1).max() < 10 * CLOSE, "every step takes one example"
        assert len(set(apart.argmin(axis=1))) == 20, "none is taken twice"

    def test_its_own_shuffle_keeps_the_smaller_last_batch(self) -> None:
        case = still(8)
        found = self._losses(case, EpochPlan(case.sizes, None))
        assert found @ case.sizes == pytest.approx(example_losses().sum(), rel=CLOSE)

    def test_its_own_shuffle_drops_the_smaller_last_batch(self) -> None:
        case = still(2, "drop")
        found = self._losses(case, EpochPlan(case.sizes, None))
        missing = example_losses().sum() - found @ case.sizes
        assert np.abs(example_losses() - missing).min() < 10 * CLOSE, (
            "the loss of one example is missing"
        )

    def test_the_whole_training_set_at_every_step(self) -> None:
        workload = a_workload(optimizer=SGD(1e-12), batches=Batches("full"))
        case = Case("whole", workload, (EXAMPLES,) * 2, train=EXAMPLES)
        np.testing.assert_allclose(
            self._losses(case, case.plan), example_losses().mean(), rtol=CLOSE
        )

    def test_every_step_is_ticked(self) -> None:
        case = still(8)
        ticks = list[int]()
        trainer = self.trainer(case)
        trainer.begin_epoch(case.plan)
        for count in (3, 1):
            trainer.train(count, lambda: ticks.append(1))
        trainer.synchronize()
        assert len(ticks) == len(case.sizes) == 4

    def _losses(self, case: Case, plan: EpochPlan) -> NDArray[np.float64]:
        trainer = self.trainer(case)
        trainer.compile(plan)
        return acts.train(trainer, plan).losses
