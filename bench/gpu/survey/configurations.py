"""What a survey measures, and how it measures one configuration."""

from __future__ import annotations

import functools
import itertools
import sys
import time
from dataclasses import dataclass
from typing import Any

from gpu import stretches, subjects
from gpu.stretches import Timing
from trainmark.backends import registry
from trainmark.backends.base import Backend, Capabilities, Device, Options, Style
from trainmark.workload.precision import Precision

WORKLOADS = (
    "mnist-mlp512",
    "mnist-cnn",
    "cifar10-cnn",
    "mnist-mlp128",
    "mnist-mlp32",
    "shakespeare-gpt-10m",
    "cifar10-resnet9",
    "resnet50",
    "gpt2-124m",
)
QUICK_WORKLOADS = ("mnist-mlp128", "mnist-cnn", "shakespeare-gpt-10m")
KINDS: tuple[tuple[Style, Precision], ...] = (
    ("fast", "fp32"),
    ("fast", "bf16"),
    ("fast", "tf32"),
    ("idiomatic", "fp32"),
    ("compiled", "fp32"),
)
"""The most important kind comes first; kinds that compile for long come last."""
TIMED_SECONDS = 1.5
QUICK_SECONDS = 0.1


@dataclass(frozen=True)
class TrainerConfiguration:
    """One trainer.

    Args:
        framework: the backend.
        workload: name in the catalogue.
        style: its training loop.
        precision: its arithmetic.
        device: where it trains.
        quick: whether it is tiny.
    """

    framework: str
    workload: str
    style: Style
    precision: Precision
    device: str
    quick: bool

    @property
    def facts(self) -> dict[str, Any]:
        """What distinguishes it from the others."""
        names = ("framework", "workload", "style", "precision", "device", "quick")
        return {name: getattr(self, name) for name in names}

    def measure(self) -> dict[str, Any]:
        """Build the trainer as the worker does, and time it."""
        subject = subjects.load(self.workload, quick=self.quick)
        backend = _backend(self.framework)
        began = time.perf_counter()
        options = Options(self.style, self.device, self.precision, subjects.SEED)
        trainer = backend.trainer(subject.workload, subject.model, subject.data, options)
        trainer.load(subject.weights())
        timing = Timing(QUICK_SECONDS if self.quick else TIMED_SECONDS)
        row = stretches.measure(
            trainer, functools.partial(subject.plans, self.style), timing, began
        )
        return {
            **row,
            "name": subject.workload.name,
            "version": backend.capabilities().version,
            "units_per_example": subject.units_per_example,
            "flops_per_example": subject.model.training_flops,
        }


@functools.lru_cache
def _backend(name: str) -> Backend:
    return registry.load(name)


def find_device(can: Capabilities, device: str) -> Device:
    """Return a device that a backend sees; exit if it sees others only."""
    found = next((each for each in can.devices if each.id == device), None)
    if found is None:
        seen = ", ".join(each.id for each in can.devices)
        sys.exit(f"{can.name} does not see the device {device!r}: expected one of {seen}")
    return found


def configurations(framework: str, device: str, *, quick: bool) -> list[TrainerConfiguration]:
    """List what a framework offers on a device: all workloads, then the next style and
    precision."""
    can = _backend(framework).capabilities()
    precisions = find_device(can, device).precisions
    kinds = [kind for kind in KINDS if kind[0] in can.styles and kind[1] in precisions]
    workloads = QUICK_WORKLOADS if quick else WORKLOADS
    return [
        TrainerConfiguration(framework, workload, style, precision, device, quick)
        for (style, precision), workload in itertools.product(kinds, workloads)
    ]
