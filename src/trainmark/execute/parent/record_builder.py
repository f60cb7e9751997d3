"""The common part of the records of workloads and of commands."""

from __future__ import annotations

import datetime
import math
import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, TypeAlias

from msgspec import structs

from trainmark.backends.base import resource_limits_of
from trainmark.execute.parent.check import require_in_place
from trainmark.execute.parent.command import CommandRun
from trainmark.execute.parent.machine_state import MachineState
from trainmark.execute.parent.peaks import PeakKey
from trainmark.execute.parent.plan import Run
from trainmark.execute.protocol.answers import (
    Answer,
    EpochEnded,
    Evaluated,
    EvaluatedBefore,
    Ready,
    SliceTimed,
)
from trainmark.masking import Secrets
from trainmark.measure.energy import energy, is_too_short
from trainmark.measure.noise import noise
from trainmark.record.caveats import Caveat
from trainmark.record.masked import masked
from trainmark.record.record import (
    DeviceRef,
    Epoch,
    Final,
    FirstEvaluation,
    Outcome,
    Peaks,
    Record,
    Samples,
    Slice,
    ThreadsSearch,
    Window,
)
from trainmark.record.store import safe_name

NOT_LEARNING_MARGIN = 1e-3
"""To count as learning, the loss must fall by at least this share."""
ThreadsByTitle: TypeAlias = "dict[str, ThreadsSearch | None]"
"""The best number of CPU threads by the title of a run, which names the workload and the side; None
if a search had no result."""
_FIGURES = ("train_loss", "train_accuracy", "test_loss", "test_accuracy")


class RecordBuilder:
    """Collects the answers of one run; makes its record, however the run ended.

    Args:
        run: the run.
        parts: parts of the record's id.
        state: the machine before the run.

    Attributes:
        alone: the other sides of its round could not run at the same time.
    """

    rest_seconds = 0.0
    """Seconds that evaluation after the latest epoch will probably take; 0 if unknown."""

    def __init__(self, run: Run | CommandRun, parts: Sequence[str], state: MachineState) -> None:
        self.run = run
        self.state = state
        self.id = "-".join(safe_name(part, min(60, 200 // len(parts))) for part in parts)
        self.created = datetime.datetime.now(datetime.timezone.utc).isoformat(
            timespec="milliseconds"
        )
        self.epochs: list[Epoch] = []
        self._before: FirstEvaluation | None = None
        self.alone = False
        self._slices: list[Slice] = []
        self._slices_in: str | None = None
        self._ready = Ready()
        self._compile_seconds: float | None = None

    @property
    def gpu(self) -> int | None:
        """The driver's number of the GPU that it trains on; None for a CPU or if unknown."""
        raise NotImplementedError

    def on_answer(self, answer: Answer) -> None:
        """Take in one answer of the run."""
        match answer:
            case EpochEnded():
                self._add_epoch(answer)
            case EvaluatedBefore():
                require_in_place(answer, len(self.epochs))
                self._before = FirstEvaluation(**vars(answer))
            case Evaluated():
                self._add_evaluation(answer)

    def on_output(self, printed: bytes) -> None:
        """Take in the next bytes that the process has printed."""

    def records(self, outcome: Outcome, samples: Samples | None = None) -> list[Record]:
        """Return the records of the answers so far; the last one is that of the whole run.

        Args:
            outcome: how the run ended.
            samples: what was measured from outside.
        """
        return [self.record(outcome, samples)]

    def record(self, outcome: Outcome, samples: Samples | None = None) -> Record:
        """Return the record of the whole run; arguments as for :meth:`records`."""
        raise NotImplementedError

    def continue_from(self, before: RecordBuilder) -> None:
        """Copy what a continued training reports only once, at its start."""
        self._ready = before._ready
        self._compile_seconds = before._compile_seconds

    def take_findings(self, peaks: Mapping[PeakKey, Peaks], threads: ThreadsByTitle) -> None:
        """Take what may have been found since the run started.

        Args:
            peaks: measured peaks of the sides.
            threads: the best numbers of CPU threads; None if a search had no result.
        """

    def leave_slices(self) -> None:
        """Leave the slices to the record that was already written, and use another id from now on.

        A run that fails after its opening has two records: one of the slices, which count, and one
        of the failure.
        """
        self._slices_in = self.id
        self.id = f"{self.id}-training"
        self._slices = []

    def _was_shortened(self, outcome: Outcome) -> bool:
        """Whether the time limit ended what would have been a training to the end."""
        return outcome.status == "ok" and outcome.reason is not None and self.run.blocks is None

    def weights_file(self, folder: Path) -> Path:
        """The file for this run's weights, next to its record."""
        return folder / f"{self.id}.safetensors"

    def hold_memory(self, tree_pss_bytes: int | None) -> None:
        """Keep the memory in use at the end of the latest epoch."""
        self.epochs[-1] = structs.replace(self.epochs[-1], tree_pss_bytes=tree_pss_bytes)

    def add_slice(
        self, timed: SliceTimed, block: int, order: int, load: Mapping[str, Any]
    ) -> Slice:
        """Keep a slice, its place in its round, and the load of other processes during it."""
        same: dict[str, Any] = {
            name: getattr(timed, name) for name in ("steps", "timed_steps", "seconds", "passes")
        }
        same["examples"] = timed.examples or timed.timed_steps
        found = Slice(block=block, order=order, start_seconds=timed.start, **same, **load)
        self._slices.append(found)
        return found

    @property
    def slices(self) -> list[Slice]:
        """The slices so far."""
        return self._slices

    @property
    def has_results(self) -> bool:
        """Whether anything was measured so far."""
        return bool(self.epochs or self.slices)

    def _add_epoch(self, answer: EpochEnded) -> None:
        require_in_place(answer, len(self.epochs))
        windows = [Window(*window) for window in answer.windows] if len(answer.windows) > 1 else []
        alike = (
            "index",
            "seconds",
            "steps",
            "examples",
            "data_wait_seconds",
            "train_loss",
            "train_accuracy",
        )
        same: dict[str, Any] = {name: getattr(answer, name) for name in alike}
        self.epochs.append(Epoch(start_seconds=answer.start, windows=windows, **same))

    def _add_evaluation(self, answer: Evaluated) -> None:
        require_in_place(answer, len(self.epochs))
        figures = {name: getattr(answer, name) for name in _FIGURES}
        known = {name: value for name, value in figures.items() if value is not None}
        self.epochs[-1] = structs.replace(
            self.epochs[-1], evaluation_seconds=answer.seconds, **known
        )

    def _in_slices(self) -> list[Epoch]:
        """Return the training of a run that has slices alone, as one epoch."""
        windows = [
            Window(each.start_seconds, each.seconds * each.steps / each.timed_steps)
            for each in self._slices
        ]
        if not windows:
            return []
        seconds = math.fsum(window.seconds for window in windows)
        return [Epoch(0, windows[0].start_seconds, seconds, None, None, windows=windows)]

    def _time_to_target(self) -> float | None:
        """Seconds of training until the target was met; None without one."""
        return None

    def _final(self) -> Final:
        if not self.epochs:
            return Final()
        figures: dict[str, Any] = {name: getattr(self.epochs[-1], name) for name in _FIGURES}
        seconds = math.fsum(epoch.seconds for epoch in self.epochs)
        return Final(
            training_seconds=seconds, time_to_target_seconds=self._time_to_target(), **figures
        )

    def _record(
        self,
        outcome: Outcome,
        samples: Samples | None,
        device: DeviceRef,
        windows: list[Epoch],
        holds: Mapping[Caveat, bool],
        **facts: Any,
    ) -> Record:
        """Make the record.

        Args:
            windows: times of training.
            holds: caveats of this kind of run.
            facts: fields of this kind of run.
        """
        run = self.run
        settings = run.settings
        state = self.state
        on_cpu = device.kind != "accelerator"
        counted = device.gpu is not None or device.kind == "cpu"
        used = energy(windows, samples, device.gpu, state.vendor) if counted else None
        too_short = used is not None and samples is not None and is_too_short(windows, samples)
        common = {
            Caveat.BUSY_MACHINE: state.is_busy,
            Caveat.ONE_AFTER_THE_OTHER: self.alone,
            Caveat.SHARED_DEVICE: state.is_shared(device.gpu),
            Caveat.SHORT_ENERGY_WINDOW: too_short,
        }
        timed = windows or self._in_slices()
        bits = state.vendor.slowdown_bits
        found = noise(
            timed, samples, cores=state.cores, on_cpu=on_cpu, gpu=device.gpu, slowdown_bits=bits
        )
        for each in (common, holds):
            found |= {caveat for caveat, applies in each.items() if applies}
        record = Record(
            id=self.id,
            created=self.created,
            command=settings.command,
            trainmark=state.trainmark,
            outcome=outcome,
            device=device,
            machine=state.machine,
            seed=run.seed,
            repeat=run.repeat,
            round=run.round,
            **resource_limits_of(settings),
            price_per_hour=settings.prices.get(device.id or ""),
            before=self._before,
            epochs=list(self.epochs),  # these are copies, since the run may go on
            slices=list(self.slices),
            slices_in=self._slices_in,
            final=self._final(),
            samples=samples,
            energy=used,
            caveats=[caveat for caveat in Caveat if caveat in found],
            **facts,
        )
        words = run.of.template if isinstance(run, CommandRun) else ()
        return masked(record, Secrets.of(words, os.environ))
