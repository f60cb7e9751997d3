"""What is measured of one workload: trainmark's `fast` first, then the candidates."""

from __future__ import annotations

import functools
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal, cast

import torch

from gpu import stretches, subjects
from gpu.stretches import Timing
from gpu.styles.candidates import OURS, Candidate, candidates
from gpu.styles.step import CandidateTrainer
from gpu.survey.configurations import find_device
from trainmark.backends import registry
from trainmark.backends.base import EpochPlan, Options, Trainer
from trainmark.workload.precision import Precision

PRECISION: Precision = "bf16"
TIMED_SECONDS = 2.5
QUICK_SECONDS = 0.1
STEPS_PER_EPOCH = 200
"""Steps per epoch of a candidate, which has endless epochs; a stretch ends when an epoch does."""


@dataclass(frozen=True)
class StyleConfiguration:
    """One way to train a workload.

    Args:
        workload: name in the catalogue.
        candidate: the way to run a step; None is trainmark's `fast`.
        device: where it trains.
        quick: whether it is tiny.
        nanogpt: the checkout of nanoGPT.
    """

    workload: str
    candidate: Candidate | None
    device: str
    quick: bool
    nanogpt: Path | None

    @property
    def facts(self) -> dict[str, Any]:
        """What distinguishes it from the others."""
        name = self.candidate.name if self.candidate else OURS
        return {
            "workload": self.workload,
            "candidate": name,
            "device": self.device,
            "quick": self.quick,
        }

    def measure(self) -> dict[str, Any]:
        """Build it and time it."""
        subject = subjects.load(self.workload, quick=self.quick)
        timing = Timing(QUICK_SECONDS if self.quick else TIMED_SECONDS)
        began = time.perf_counter()
        if self.candidate is None:
            options = Options("fast", self.device, PRECISION, subjects.SEED)
            backend = registry.load("torch")
            trainer = backend.trainer(subject.workload, subject.model, subject.data, options)
            trainer.load(subject.weights())
            row = stretches.measure(
                trainer, functools.partial(subject.plans, "fast"), timing, began
            )
            row["settings"] = trainer.settings()
        else:
            ours = CandidateTrainer(subject, self.candidate, self.device, self.nanogpt)
            # It has the methods of a trainer that a timed epoch calls.
            trainer = cast(Trainer, ours)
            row = stretches.measure(
                trainer, functools.partial(_endless, subject.workload.batches.size), timing, began
            )
        return {
            **row,
            "name": subject.workload.name,
            "version": torch.__version__,
            "units_per_example": subject.units_per_example,
            "flops_per_example": subject.model.training_flops,
        }


def _endless(batch: int | Literal["full"]) -> Iterator[EpochPlan]:
    assert isinstance(batch, int), "no such workload takes everything in one step"
    yield EpochPlan((batch,) * STEPS_PER_EPOCH, None)


def configurations(
    workload: str, device: str, *, quick: bool, nanogpt: Path | None
) -> list[StyleConfiguration]:
    """List the ways to train a workload."""
    find_device(registry.load("torch").capabilities(), device)
    spec = subjects.load(workload, quick=quick).workload
    ways: list[Candidate | None] = [None]
    ways += candidates(images=not spec.is_text, nanogpt=nanogpt is not None and spec.is_text)
    return [StyleConfiguration(workload, way, device, quick, nanogpt) for way in ways]
