"""Planned runs of workloads."""

from __future__ import annotations

import dataclasses
import platform
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal

from trainmark.backends.base import Options, ResourceLimits, Style, resource_limits_of
from trainmark.backends.layout import Layout, Rendezvous
from trainmark.data.locate import Located
from trainmark.execute.parent.bounds import (
    MOST_SEED,
    MOST_THREADS,
    require_positive,
    require_within,
)
from trainmark.execute.parent.probe import Interpreter
from trainmark.execute.protocol.worker_commands import StartRanks, Train, TurnsOfTraining
from trainmark.masking import mask
from trainmark.record.facts import RunKey
from trainmark.version import version
from trainmark.workload.model import Model, lay_out
from trainmark.workload.precision import Precision
from trainmark.workload.spec import Workload


@dataclass(frozen=True)
class Side:
    """One side of a comparison: everything that may differ between runs of the same workload."""

    backend: str
    style: Style
    device: str
    interpreter: Interpreter
    precision: Precision = "fp32"
    version: str | None = None

    def options(self, seed: int, limits: ResourceLimits, layout: Layout | None = None) -> Options:
        """Return the options for a trainer of this side."""
        return Options(
            self.style,
            self.device,
            self.precision,
            seed,
            layout=layout,
            **resource_limits_of(limits),
        )

    @property
    def title(self) -> str:
        """Title for the user."""
        label = "" if self.interpreter.label == "default" else f"@{self.interpreter.label}"
        precision = "" if self.precision == "fp32" else f" {self.precision}"
        return f"{self.backend}{label} {self.style} {self.device}{precision}"


@dataclass(frozen=True)
class ScheduledWorkload:
    """One workload with its schedule and its data."""

    workload: Workload
    dataset: Located
    repeats: int
    published_run: str | None = None

    @property
    def model(self) -> Model:
        """Shapes and cost."""
        return lay_out(self.workload)


@dataclass(frozen=True)
class Spreading:
    """One training on several devices.

    Args:
        layout: how it is spread.
        weak: whether its batch has grown with the copies.
        rendezvous: where the machines connect.
        processes: whether each device has a separate process, or one process uses them all.
    """

    layout: Layout
    weak: bool = False
    rendezvous: Rendezvous = field(default_factory=Rendezvous)
    processes: bool = True

    @property
    def launched(self) -> bool:
        """Whether an engine has to start ranks."""
        return self.processes and self.layout.ranks > 1

    @property
    def ranks_here(self) -> int:
        """Number of ranks on this machine."""
        return self.layout.ranks // self.rendezvous.nodes

    @property
    def key(self) -> tuple[int | bool, ...]:
        """What distinguishes it from other ways to spread the same training."""
        layout = self.layout
        return (
            layout.data,
            layout.pipeline,
            layout.microbatches,
            layout.reduces,
            self.weak,
            self.rendezvous.nodes,
        )

    @property
    def title(self) -> str:
        """Title for the user."""
        return self.layout.title + ("" if self.layout.reduces else ", without averaging")


@dataclass(frozen=True)
class Settings(ResourceLimits):
    """Settings of every run of a plan.

    Args:
        seed: seed of the first repeat; repeat ``k`` of a fresh protocol has ``seed + k``.
        weights_from: file of the initial weights, and the record it belongs to.
        timeout: time limit of each process, in seconds; None is no limit.
        prices: price per hour by device id, in any currency.
        kind: kind of study.
    """

    kind: Literal["rounds", "scale", "sweep"] = "rounds"
    seed: int = 1
    log_every: int | None = None
    save_weights: bool = False
    weights_from: tuple[Path, str] | None = None
    timeout: float | None = None
    command: str = "trainmark run"
    substituted: bool = False
    prices: Mapping[str, float] = field(default_factory=dict)

    def __post_init__(self) -> None:
        require_within("the seed", self.seed, 0, MOST_SEED)
        require_within("the number of threads", self.threads, 1, MOST_THREADS)
        require_positive("the memory_fraction", self.memory_fraction, most=1.0)
        require_positive("log_every", self.log_every)
        require_positive("the timeout", self.timeout)


@dataclass(frozen=True)
class Trial:
    """A trial of a sweep.

    Args:
        number: number of the trial, from 1.
        values: values of the varied hyper-parameters.
        side_by_side: whether other trials may train at the same time.
    """

    number: int
    values: Mapping[str, str | int | float | bool]
    side_by_side: bool = False


@dataclass(frozen=True)
class Run:
    """One planned run of a workload.

    Args:
        spread: how it is spread over devices; None for an ordinary run on one.
        trial: the trial of a sweep that it is, if any.
        blocks: number of blocks of slices after which it stops; None trains to the end.
        decided: whether its speed is known already, so that it takes part in no blocks.
        next_to_accelerator: whether this run on the CPU is compared with an accelerator, and the
            user has not fixed its number of threads, so that it should run with the best number.
        best_threads: the best number of threads, once it is known.
    """

    scheduled: ScheduledWorkload
    side: Side
    settings: Settings
    repeat: int
    round: int
    group_id: str
    session: str
    spread: Spreading | None = None
    trial: Trial | None = None
    blocks: int | None = None
    decided: bool = False
    next_to_accelerator: bool = False
    best_threads: int | None = None

    @property
    def threads(self) -> int | None:
        """Number of CPU threads that it starts with; None is the framework's choice."""
        return self.settings.threads or self.best_threads

    def threads_here(self, best: int | None) -> int | None:
        """Return how many CPU threads all its ranks on this machine may use; None is all.

        Args:
            best: the best number of threads, if it is known.
        """
        each = self.settings.threads or best
        ranks = self.spread.ranks_here if self.spread else 1
        return each and each * ranks

    @property
    def title(self) -> str:
        """What is run, for the user."""
        which = f", {self.scheduled.published_run}" if self.scheduled.published_run else ""
        spread = f" {self.spread.title}" if self.spread else ""
        return f"{self.scheduled.workload.name} {self.side.title}{spread}{which}"

    @property
    def turn(self) -> str:
        """Which of its side's runs this is, for the user."""
        if self.trial is not None:
            values = " ".join(f"{name}={value}" for name, value in self.trial.values.items())
            return f"trial {self.trial.number}, {values}"
        return f"{'short ' if self.blocks else ''}round {self.round + 1}"

    @property
    def seed(self) -> int:
        """Seed of this run.

        Repeats of the continued protocol are one training, so they share it; so do those of a
        ``pytorch_seed``.
        """
        schedule = self.scheduled.workload.schedule
        if schedule.pytorch_seed is not None:
            return schedule.pytorch_seed
        return self.settings.seed + (self.repeat if schedule.protocol == "fresh" else 0)

    @property
    def python(self) -> Path:
        """The interpreter that trains."""
        return self.side.interpreter.path

    def request(
        self,
        origin: float,
        weight_files: Sequence[Path | None],
        *,
        in_turns: bool = False,
        slices_first: bool = False,
        ends_at: float | None = None,
    ) -> Train | StartRanks:
        """The request to the worker.

        Args:
            weight_files: one file per run of its process; None saves no weights.
            in_turns: whether it is interleaved with other sides.
            slices_first: whether slices come before the training, which then starts from the
                beginning.
            ends_at: reading of the clock at which the training stops at a step; None trains to the
                end.
        """
        settings = self.settings
        side = self.side
        layout = self.spread.layout if self.spread else None
        options = side.options(self.seed, settings, layout)
        train = Train(
            origin=origin,
            backend=side.backend,
            workload=self.scheduled.workload,
            dataset=self.scheduled.dataset.folder,
            options=dataclasses.replace(options, threads=self.threads),
            inject_order=side.style == "fast" or layout is not None,
            initial_weights=str(settings.weights_from[0]) if settings.weights_from else None,
            # All machines of one training must have the same version.
            trainmark=version() if layout else None,
            log_every=settings.log_every,
            weight_files=tuple(str(file) if file else None for file in weight_files),
            turns=self._turns(slices_first=slices_first) if in_turns else None,
            ends_at=ends_at,
        )
        if self.spread is None or not self.spread.launched:
            return train
        return StartRanks(train, self.spread.ranks_here, self.spread.rendezvous)

    def _turns(self, *, slices_first: bool) -> TurnsOfTraining:
        """Return what an interleaved run does in its turns."""
        if self.blocks is not None:
            return "until-stopped"
        return "slices-first" if slices_first else "to-the-end"

    @property
    def key(self) -> RunKey:
        """What it measures; used by ``--resume``."""
        workload = self.scheduled.workload
        side = self.side
        settings = self.settings
        return RunKey(
            step_fingerprint=workload.step_fingerprint,
            machine=platform.node(),
            repeat=self.repeat,
            schedule_fingerprint=workload.schedule_fingerprint,
            dataset_sha256=self.scheduled.dataset.sha256,
            backend=side.backend,
            version=side.version,
            python=side.interpreter.label,
            executable=mask(str(side.interpreter.path)),  # as in a record
            style=side.style,
            device=side.device,
            precision=side.precision,
            seed=self.seed,
            **resource_limits_of(settings),
            logged=settings.log_every is not None,
            slices_alone=self.blocks is not None,
            weights_from=settings.weights_from[1] if settings.weights_from else None,
            spread=self.spread.key if self.spread else None,
        )
