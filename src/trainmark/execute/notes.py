"""What has been heard of one run, and the record that it makes, however the run ended."""

from __future__ import annotations

import datetime
import math
from pathlib import Path

from trainmark.execute.plan import Run
from trainmark.execute.probe import Seen
from trainmark.execute.wire import Message
from trainmark.measure.machine import BUSY_SHARE
from trainmark.record.caveats import Caveat
from trainmark.record.record import (
    BackendRef,
    DatasetRef,
    DeviceRef,
    Epoch,
    Final,
    Group,
    LogLine,
    Machine,
    Memory,
    MetricsRef,
    ModelRef,
    Outcome,
    Python,
    Record,
    WorkloadRef,
)
from trainmark.record.store import safe_name

NOT_LEARNING_MARGIN = 1e-3
"""The loss must end at least this share below the first batch's to count as learning."""


class Notes:
    """Collects the messages of one run.

    Args:
        run: what is being run.
        seen: what its backend said of itself.
        machine: the machine as it was before the run.
        replayed: whether earlier repeats of its process are trained again without a record.
        token: makes the id of the record unlike any other.
    """

    def __init__(self, run: Run, seen: Seen, machine: Machine, replayed: bool, token: str) -> None:
        self.run, self.seen, self.machine, self.replayed = run, seen, machine, replayed
        self.id = _id(run, token)
        self.created = datetime.datetime.now(datetime.timezone.utc).isoformat(timespec="milliseconds")
        self.epochs: list[Epoch] = []
        self.steps_done = 0
        self._ready: Message = {}
        self._finished: Message = {}
        self._compile_seconds: float | None = None
        self._losses: list[float] = []
        self._l2_losses: list[float] | None = None
        self._log: list[LogLine] = []

    def weights_file(self, folder: Path) -> Path:
        """Where this run's weights stand beside its record."""
        return folder / f"{self.id}.safetensors"

    def hear(self, message: Message) -> None:
        """Take in one message of the run."""
        if message["event"] == "ready":
            self._ready = message
        elif message["event"] == "compiled":
            self._compile_seconds = message["seconds"]
        elif message["event"] == "epoch":
            self._hear_epoch(message)
        elif message["event"] == "evaluated":
            self._hear_evaluation(message)
        elif message["event"] == "finished":
            self._finished = message

    def go_on_from(self, before: Notes) -> None:
        """Take over what a continued training said once, at its start."""
        self._ready, self._compile_seconds = before._ready, before._compile_seconds

    def record(self, outcome: Outcome) -> Record:
        """The record of what was heard."""
        run, side, workload = self.run, self.run.side, self.run.course.workload
        model, dataset = run.course.model, run.course.dataset
        device = self.seen.device(side.device)
        return Record(
            id=self.id,
            created=self.created,
            command=run.settings.command,
            outcome=outcome,
            workload=WorkloadRef(
                workload.name, workload.step_fingerprint, workload.schedule_fingerprint, workload.to_data()
            ),
            dataset=DatasetRef(dataset.name, dataset.sha256, dataset.train_examples, dataset.test_examples),
            backend=BackendRef(
                name=side.backend,
                version=side.version,
                style=side.style,
                precision=side.precision,
                compile_cache="none" if self._compile_seconds is None else "cold",  # no backend keeps one on disk
                settings=self._finished.get("settings", {}),
            ),
            device=DeviceRef(
                id=side.device,
                name=device.name if device and device.kind == "accelerator" else self.machine.cpu,
                kind="accelerator" if device and device.kind == "accelerator" else "cpu",
                memory_bytes=device.memory_bytes if device else None,
            ),
            machine=self.machine,
            python=Python(
                label=side.interpreter.label,
                version=self.seen.python,
                executable=str(side.interpreter.path),
                packages=self._ready.get("packages", {}),
            ),
            seed=run.seed,
            repeat=run.repeat,
            round=run.round,
            protocol=workload.schedule.protocol,
            threads=run.settings.threads,
            memory_fraction=run.settings.memory_fraction,
            weights_from=run.settings.weights_from[1] if run.settings.weights_from else None,
            published_run=run.course.published_run,
            model=ModelRef(
                model.parameters, model.forward_flops, model.training_flops, self._ready.get("weights_sha256")
            ),
            setup_seconds=self._ready.get("seconds"),
            compile_seconds=self._compile_seconds,
            epochs=self.epochs,
            step_losses=self._losses,
            step_l2_losses=self._l2_losses,
            log=self._log,
            metrics=MetricsRef(workload.metrics.train, workload.metrics.loss_includes_l2),
            final=self._final(),
            memory=Memory(self._finished.get("host_peak_bytes"), self._finished.get("device_peak_bytes")),
            group=Group(run.group_id, run.session, run.settings.kind, trial=run.nudge),
            caveats=self._caveats(outcome),
        )

    def _hear_epoch(self, message: Message) -> None:
        self.epochs.append(
            Epoch(
                index=message["index"],
                start_seconds=message["start"],
                seconds=message["seconds"],
                steps=message["steps"],
                examples=message["examples"],
                train_loss=message.get("train_loss"),
                train_accuracy=message.get("train_accuracy"),
            )
        )
        self.steps_done += message["steps"]
        self._losses += message["losses"]
        if message["l2_losses"] is not None:
            self._l2_losses = (self._l2_losses or []) + message["l2_losses"]
        self._log += [LogLine(**line) for line in message["log"]]

    def _hear_evaluation(self, message: Message) -> None:
        epoch = self.epochs[message["index"]]
        self.epochs[message["index"]] = Epoch(
            index=epoch.index,
            start_seconds=epoch.start_seconds,
            seconds=epoch.seconds,
            steps=epoch.steps,
            examples=epoch.examples,
            train_loss=message.get("train_loss", epoch.train_loss),
            train_accuracy=message.get("train_accuracy", epoch.train_accuracy),
            test_loss=message["test_loss"],
            test_accuracy=message["test_accuracy"],
            evaluation_seconds=message["seconds"],
        )

    def _final(self) -> Final:
        if not self.epochs:
            return Final()
        last = self.epochs[-1]
        return Final(
            train_loss=last.train_loss,
            train_accuracy=last.train_accuracy,
            test_loss=last.test_loss,
            test_accuracy=last.test_accuracy,
            training_seconds=math.fsum(epoch.seconds for epoch in self.epochs),
        )

    def _caveats(self, outcome: Outcome) -> list[Caveat]:
        settings, course = self.run.settings, self.run.course
        load = self.machine.load_before
        holds = {
            Caveat.SUBSTITUTED_DATASET: settings.substituted,
            Caveat.PARTIAL_DATASET: not course.dataset.complete,
            Caveat.BUSY_MACHINE: load is not None and load > BUSY_SHARE,
            Caveat.LOGGED_STEPS: settings.log_every is not None,
            Caveat.CONTINUED: course.workload.schedule.protocol == "continued",
            Caveat.STARTED_FROM_RECORD: settings.weights_from is not None,
            Caveat.REPLAYED: self.replayed,
            Caveat.UNTESTED_VERSION: self.seen.can is not None and self.seen.can.untested,
            Caveat.NOT_LEARNING: outcome.status in ("ok", "diverged") and not self._learned(outcome),
        }
        return [caveat for caveat, applies in holds.items() if applies]

    def _learned(self, outcome: Outcome) -> bool:
        """Whether the loss fell: of the data alone, since an L2 term falls by itself; the last tenth of the steps."""
        if outcome.status != "ok" or not self._losses:
            return False
        losses = [
            loss - l2 for loss, l2 in zip(self._losses, self._l2_losses or [0.0] * len(self._losses), strict=True)
        ]
        tail = losses[-max(1, len(losses) // 10) :]
        last = math.fsum(tail) / len(tail)
        if self.run.settings.weights_from is not None or (self.run.repeat > 0 and self._is_continued):
            # It starts near its end, so it need not fall; but it must know more than who guesses.
            return last < math.log(self.run.course.model.classes)
        return last < losses[0] * (1 - NOT_LEARNING_MARGIN)

    @property
    def _is_continued(self) -> bool:
        return self.run.course.workload.schedule.protocol == "continued"


def _id(run: Run, token: str) -> str:
    side = run.side
    parts = (
        run.course.workload.name,
        side.backend,
        *(() if side.interpreter.label == "default" else (side.interpreter.label,)),
        side.style,
        side.device,
        *(() if side.precision == "fp32" else (side.precision,)),
        f"r{run.repeat}",
        token,
    )
    return "-".join(safe_name(part) for part in parts)
