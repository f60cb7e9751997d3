"""What the protocols of :mod:`trainmark.backends.base` promise beyond the numbers."""

from __future__ import annotations

import copy
import dataclasses
import json
from typing import Any

import numpy as np
import pytest

from trainmark.backends.base import COMMON_KINDS, STYLES, kinds_of
from trainmark.errors import AbsentDevice, Unsupported
from trainmark.workload.layers import Flatten
from trainmark.workload.optimizers import SGD, Adam, RMSprop, Staircase, WeightAverage
from trainmark.workload.precision import PRECISIONS
from trainmark_conformance import acts
from trainmark_conformance.cases import WITH_DROPOUT, Case, a_workload, dense
from trainmark_conformance.modern import NETWORKS, OPTIMIZERS, normal
from trainmark_conformance.oracle import Act, distance, exact
from trainmark_conformance.suite import Suite

# All state that a trainer keeps from step to step. The decay of the average is limited up to the
# fourth step.
REMEMBERING = tuple(
    Case(name, a_workload(optimizer=optimizer, weight_average=average), (8, 8, 8, 8, 3), train=35)
    for name, optimizer, average in (
        (
            "sgd, momentum, staircase, average",
            SGD(0.5, 0.9, staircase=Staircase(0.3, 3)),
            WeightAverage(0.3),
        ),
        ("sgd, velocity, staircase", SGD(0.5, 0.9, "velocity", staircase=Staircase(0.3, 3)), None),
        ("adam, average", Adam(0.05, epsilon=0.02), WeightAverage(0.3)),
        ("rmsprop", RMSprop(0.05, epsilon=0.02), None),
    )
)
RUNNING = Case(
    "batch norm", a_workload(*normal(3, 2), Flatten(), dense(10)), (8, 8, 8, 8, 3), train=35
)
PLAIN = Case("plain", a_workload(), (8, 8, 8))


class ContractConformance(Suite):
    """Loading, compiling, reading and evaluating do what they promise and nothing else."""

    @pytest.mark.parametrize(
        "act",
        [
            acts.two_epochs,
            acts.two_epochs_compiled,
            acts.two_epochs_looked_at,
            acts.two_epochs_read_late,
            acts.loaded_again,
        ],
        ids=lambda act: act.__name__,
    )
    @pytest.mark.parametrize("case", (*REMEMBERING, RUNNING), ids=str)
    def test_what_it_remembers(self, case: Case, act: Act) -> None:
        """Only ``load`` resets the optimiser, the learning rate or an average."""
        self.compare(case, act)

    def test_the_average_is_used_in_evaluation_and_in_nothing_else(self) -> None:
        averaged = REMEMBERING[0]
        plain = averaged.changed(weight_average=None)
        with_it, without = (exact(case, acts.two_epochs_looked_at) for case in (averaged, plain))
        assert (
            distance(with_it["epoch 0: evaluated losses"], without["epoch 0: evaluated losses"])
            > 0.001
        )
        assert distance(with_it["epoch 1: outputs"], without["epoch 1: outputs"]) == 0
        self.compare(averaged, acts.two_epochs_looked_at)

    def test_the_averaged_weights_are_those_that_evaluation_takes(self) -> None:
        """Loaded again, they evaluate as before, up to their rounding to float32."""
        case = REMEMBERING[0]
        trainer = self.trainer(case)
        acts.train(trainer, case.plan)
        before = trainer.evaluate("test")
        kept = trainer.averaged()
        assert any(
            not np.array_equal(value, kept[name]) for name, value in trainer.weights().items()
        )
        trainer.load(kept)
        after = trainer.evaluate("test")
        np.testing.assert_allclose(after.loss, before.loss, rtol=1e-5)
        assert after.accuracy == before.accuracy

    def test_weights_are_copies(self) -> None:
        """Training changes neither loaded nor returned weights, and changing those does not change
        the training.
        """
        given = PLAIN.weights
        trainer = self.trainer(PLAIN, given)
        returned = trainer.weights()
        kept = copy.deepcopy(returned)
        acts.train(trainer, PLAIN.plan)
        np.testing.assert_equal(given, PLAIN.weights)
        np.testing.assert_equal(returned, kept)
        now = copy.deepcopy(trainer.weights())
        for values in (given, returned, trainer.weights()):
            for value in values.values():
                if value.flags.writeable:
                    value[:] = 0
        np.testing.assert_equal(trainer.weights(), now)
        for name, value in now.items():
            assert not np.array_equal(value, kept[name]), f"{name} has been trained"

    def test_settings_can_be_recorded(self) -> None:
        trainer = self.trainer(PLAIN)
        acts.train(trainer, PLAIN.plan)
        settings = trainer.settings()
        assert json.loads(json.dumps(settings)) == settings
        peak = trainer.device_peak_bytes()
        assert peak is None or (type(peak) is int and peak > 0)

    def test_its_capabilities_are_of_the_known_words(self) -> None:
        can = self.can
        assert can.name == self.backend
        assert can.version and can.packages
        assert self.style in can.styles and set(can.styles) <= set(STYLES)
        assert can.kinds <= COMMON_KINDS
        assert len({device.id for device in can.devices}) == len(can.devices)
        for device in can.devices:
            assert set(device.precisions) <= set(PRECISIONS)
        json.dumps(
            dataclasses.asdict(dataclasses.replace(can, kinds=frozenset()))
            | {"kinds": sorted(can.kinds)}
        )

    def test_an_absent_device_is_refused(self) -> None:
        self._refused(PLAIN, "nowhere:9", error=AbsentDevice, device="nowhere:9")

    def test_an_unknown_style_is_refused(self) -> None:
        for style in {*STYLES, "slow"} - set(self.can.styles):
            self._refused(PLAIN, style, style=style)

    def test_a_precision_it_lacks_is_refused(self) -> None:
        for precision in {*PRECISIONS, "fp7"} - set(self.on.precisions):
            self._refused(PLAIN, precision, precision=precision)

    def test_a_layer_loss_or_optimizer_it_lacks_is_refused(self) -> None:
        if not COMMON_KINDS - self.can.kinds:
            pytest.skip(f"{self.backend} lacks nothing")
        for case in (*NETWORKS, *WITH_DROPOUT, *OPTIMIZERS):
            lacking = sorted(set(kinds_of(case.workload)) - self.can.kinds)
            if lacking:
                self._refused(case, "|".join(lacking))

    def test_a_share_of_the_memory_of_a_cpu_is_refused(self) -> None:
        if self.on.kind != "cpu":
            pytest.skip(f"{self.device} is not a CPU")
        self._refused(PLAIN, "memory-fraction", memory_fraction=0.5)

    def _refused(
        self, case: Case, said: str, error: type[Exception] = Unsupported, **changes: Any
    ) -> None:
        options = self.options(**changes)
        with pytest.raises(error, match=said):
            self.made.trainer(case.workload, case.model, case.data, options)
