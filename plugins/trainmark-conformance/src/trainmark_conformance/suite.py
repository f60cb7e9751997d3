"""What all conformance tests share: the backend under test, and the comparison with the oracle."""

from __future__ import annotations

import dataclasses
from functools import cache
from typing import Any, ClassVar

import pytest

from trainmark.backends import base, registry
from trainmark.backends.stepwise import Stepwise
from trainmark.workload.model import Weights
from trainmark.workload.precision import Precision
from trainmark_conformance.cases import Case
from trainmark_conformance.oracle import Act, Results, differences

_find = cache(registry.find)
_load = cache(registry.load)


class Suite:
    """One backend in one style on one device.

    Attributes:
        backend: its name, as it is registered.
        style: the style to test.
        device: id of the device to test on.
        precision: the precision to test; None means float64 if the device has it, otherwise
            float32.
        threads: CPU threads; None leaves the framework's choice. One is enough for such small
            trainings.
    """

    backend: ClassVar[str]
    style: ClassVar[base.Style] = "idiomatic"
    device: ClassVar[str] = "cpu"
    precision: ClassVar[Precision | None] = None
    threads: ClassVar[int | None] = None

    @property
    def made(self) -> base.Backend:
        """The backend, one for all tests; skips the test if its framework is not installed."""
        entry = _find(self.backend)
        if not entry.installed:
            pytest.skip(f"{self.backend} needs {entry.needs}, which is not installed")
        return _load(self.backend)

    @property
    def can(self) -> base.Capabilities:
        """What the backend says it supports."""
        return self.made.capabilities()

    @property
    def on(self) -> base.Device:
        """The device as the backend reports it; skips the test if the backend does not see it."""
        for device in self.can.devices:
            if device.id == self.device:
                return device
        pytest.skip(f"{self.backend} does not see {self.device}")

    @property
    def digits(self) -> Precision:
        """The precision that is tested."""
        best: Precision = "fp64" if "fp64" in self.on.precisions else "fp32"
        return self.precision or best

    def options(self, **changes: Any) -> base.Options:
        """Make the options of a trainer from the attributes of this class.

        Args:
            changes: options with other values, by name.

        Returns:
            The options, with seed 1 unless changed.
        """
        options = base.Options(self.style, self.device, self.digits, seed=1, threads=self.threads)
        return dataclasses.replace(options, **changes)

    def trainer(self, case: Case, weights: Weights | None = None, **changes: Any) -> base.Trainer:
        """Make a trainer and load weights into it; skips the test if the backend lacks what the
        case needs.

        Args:
            case: the training.
            weights: weights to load instead of the first weights of the case.
            changes: options with other values, by name.

        Returns:
            The trainer.
        """
        lacking = sorted(set(base.kinds_of(case.workload)) - self.can.kinds)
        if lacking:
            pytest.skip(f"{self.backend} does not have {', '.join(lacking)}")
        trainer = self.made.trainer(case.workload, case.model, case.data, self.options(**changes))
        trainer.load(case.weights if weights is None else weights)
        return trainer

    def compare(self, case: Case, act: Act) -> None:
        """Fail unless a training has the same results with this backend as with the oracle, up to
        rounding.

        Args:
            case: the training.
            act: what is done with the trainer, and whose results are compared.
        """
        self.require(act(self.trainer(case), case), case, act)

    def stepwise(self, case: Case, weights: Weights | None = None) -> Any:
        """Make a trainer that keeps gradients; skips the test if its state can't be set and read.

        Args:
            case: the training.
            weights: weights to load instead of the first weights of the case.

        Returns:
            The trainer.
        """
        trainer = self.trainer(case, weights, keeps_gradients=True)
        if not isinstance(trainer, Stepwise):
            pytest.skip(f"{self.backend} can't set and read a state")
        return trainer

    def compare_stepwise(self, case: Case, act: Act) -> None:
        """Do the same as :meth:`compare` with a step-wise trainer.

        Args:
            case: the training.
            act: what is done with the trainer, and whose results are compared.
        """
        self.require(act(self.stepwise(case), case), case, act)

    def require(self, found: Results, case: Case, act: Act) -> None:
        """Fail unless results are the oracle's, up to rounding.

        Args:
            found: results of the backend, by name.
            case: the training.
            act: what the oracle does.
        """
        lines = differences(found, case, act, self.digits)
        assert not lines, (
            f"{self.backend} ({self.style}, {self.device}, {self.digits}):\n" + "\n".join(lines)
        )
