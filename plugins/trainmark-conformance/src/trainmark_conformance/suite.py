"""What all conformance tests share: which backend, and comparing it with the oracle."""

from __future__ import annotations

from functools import cache
from typing import ClassVar

import pytest

from trainmark.backends import base, registry
from trainmark.workload.precision import Precision
from trainmark_conformance.cases import Case
from trainmark_conformance.oracle import Act, differences

_load = cache(registry.load)


class Suite:
    """One backend in one style on one device.

    Attributes:
        backend: its name in the registry.
        precision: None takes float64 where the device has it, else float32.
        threads: of the CPU; these trainings are too small to gain by more than one.
    """

    backend: ClassVar[str]
    style: ClassVar[base.Style] = "idiomatic"
    device: ClassVar[str] = "cpu"
    precision: ClassVar[Precision | None] = None
    threads: ClassVar[int | None] = None

    @property
    def made(self) -> base.Backend:
        """The backend, one for all tests; skips the test where its framework is not installed."""
        entry = registry.find(self.backend)
        if not entry.installed:
            pytest.skip(f"{self.backend} needs {entry.needs}, which is not installed")
        return _load(self.backend)

    @property
    def can(self) -> base.Capabilities:
        """What it says it can do."""
        return self.made.capabilities()

    @property
    def on(self) -> base.Device:
        """The device as the backend reports it; skips the test where there is none."""
        for device in self.can.devices:
            if device.id == self.device:
                return device
        pytest.skip(f"{self.backend} does not see {self.device}")

    @property
    def digits(self) -> Precision:
        """The precision that is tested."""
        best: Precision = "fp64" if "fp64" in self.on.precisions else "fp32"
        return self.precision or best

    def options(self, seed: int = 1) -> base.Options:
        """How it is to train."""
        return base.Options(self.style, self.device, self.digits, seed, threads=self.threads)

    def trainer(self, case: Case, seed: int = 1) -> base.Trainer:
        """A trainer of ``case`` with no weights yet; skips the test where the backend lacks a layer or the like."""
        lacking = sorted(set(base.kinds_of(case.workload)) - self.can.kinds)
        if lacking:
            pytest.skip(f"{self.backend} does not have {', '.join(lacking)}")
        return self.made.trainer(case.workload, case.model, case.data, self.options(seed))

    def compare(self, case: Case, act: Act) -> None:
        """Fail unless ``act`` gives with this backend what it gives with the oracle."""
        found = differences(act(self.trainer(case), case), case, act, self.digits)
        assert not found, f"{self.backend} ({self.style}, {self.device}, {self.digits}):\n" + "\n".join(found)
