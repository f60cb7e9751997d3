"""What has been heard of one run of a command, and the record that it makes, however the run ended."""

from __future__ import annotations

from pathlib import Path
from typing import Literal

from msgspec import structs

from trainmark.execute.parent.command import Run
from trainmark.execute.parent.here import Here
from trainmark.execute.parent.record_builder import NOT_LEARNING_MARGIN, RecordBuilder
from trainmark.execute.protocol.answers import Answer, CommandExited, CommandStarted, EpochEnded, Evaluated
from trainmark.measure.energy import energy
from trainmark.record.caveats import Caveat
from trainmark.record.record import (
    NOT_TOLD,
    BackendRef,
    DeviceRef,
    Epoch,
    Group,
    Memory,
    Outcome,
    Process,
    Python,
    Record,
    Samples,
    WorkloadRef,
)


class CommandNotes(RecordBuilder):
    """Collects the answers of one run.

    Args:
        run: what is being run.
        here: the machine as it was before.
        token: makes the id of the record unlike any other.
    """

    rest_seconds = 0.0

    def __init__(self, run: Run, here: Here, token: str) -> None:
        super().__init__((run.of.name, *run.side.values.values(), f"r{run.round}", token), here)
        self.run = run
        self._packages: dict[str, str] = {}
        self._program_sha256 = run.program_sha256  # as it is now: it may be edited while it runs
        self._exited: CommandExited | None = None
        self._start: float | None = None

    @property
    def gpu(self) -> int | None:
        """The driver's number of the GPU that the command should use."""
        device = self.run.side.device
        return None if device is None else self.here.gpu("cuda:0" if device == "cuda" else device)

    def hear(self, answer: Answer) -> None:
        """Take in one answer of the run."""
        match answer:
            case EpochEnded():
                self._add_epoch(answer)
                self._packages = answer.packages
            case Evaluated():
                self._add_evaluation(answer)
            case CommandStarted():
                self._start = answer.start
            case CommandExited():
                self._exited = answer

    def go_on_from(self, before: RecordBuilder) -> None:
        """A command has a process of its own, so nothing comes before."""
        raise NotImplementedError

    def records(self, outcome: Outcome, samples: Samples | None = None) -> list[Record]:
        """The record of the reports so far."""
        run, settings, exited = self.run, self.run.settings, self._exited
        device, gpu = run.side.device, self.gpu
        kind: Literal["cpu", "accelerator"] | None = (
            "cpu" if device == "cpu" else None if gpu is None else "accelerator"
        )
        used = energy(self._windows, samples, gpu) if kind is not None else None
        program = run.words[0]
        record = Record(
            id=self.id,
            created=self.created,
            command=settings.command,
            trainmark=self.here.trainmark,
            outcome=outcome,
            workload=WorkloadRef(
                run.of.name, run.of.fingerprint, run.of.fingerprint, {"command": list(run.of.template)}
            ),
            dataset=None,
            backend=BackendRef(
                name=Path(program).name,
                version=self._versions,
                style=run.side.style,
                precision=None,
                compile_cache="none",
            ),
            device=DeviceRef(
                id=device or NOT_TOLD,
                name=self._device_name,
                kind=kind,
                gpu=gpu,
            ),
            machine=self.here.machine,
            python=Python("default", None, program, self._packages),
            seed=run.seed,
            repeat=run.round,
            round=run.round,
            protocol="fresh",
            threads=None,
            price_per_hour=settings.prices.get(device or ""),
            model=None,
            epochs=self.epochs,
            metrics=None,
            final=self._final(),
            samples=samples,
            energy=used,
            memory=Memory(exited.host_peak_bytes if exited else None),
            process=self._process(),
            group=Group(run.group_id, run.session),
            caveats=self._caveats(self._holds(outcome), self._windows, samples, used, on_cpu=gpu is None),
        )
        return [record]

    def _process(self) -> Process:
        run, exited = self.run, self._exited
        seen = Process(
            argv=run.words,
            directory=str(run.of.directory),
            start_seconds=self._start,
            program_sha256=self._program_sha256,
        )
        if exited is None:
            return seen
        return structs.replace(
            seen,
            seconds=exited.seconds,
            exit_code=exited.code,
            user_seconds=exited.user_seconds,
            system_seconds=exited.system_seconds,
            language=exited.language,
            odd=exited.odd,
            left_out=exited.left_out,
        )

    @property
    def _versions(self) -> str | None:
        """Of the frameworks that it reports."""
        told = [f"{name} {version}" for name, version in sorted(self._packages.items()) if name != "numpy"]
        return ", ".join(told) or None

    @property
    def _device_name(self) -> str | None:
        if self.run.side.device == "cpu":
            return self.here.machine.cpu
        return next((each.name for each in self.here.driver.gpus if each.index == self.gpu), None)

    @property
    def _windows(self) -> list[Epoch]:
        """When it trained: its epochs, or all of it where it reports none."""
        if self.epochs or self._exited is None or self._start is None:
            return self.epochs
        return [Epoch(0, self._start, self._exited.seconds, None, None)]

    def _holds(self, outcome: Outcome) -> dict[Caveat, bool]:
        return {
            Caveat.NO_EPOCHS: not self.epochs,
            Caveat.ODD_REPORTS: self._exited is not None and self._exited.left_out > 0,
            Caveat.LEFT_PROCESSES: self._exited is not None and self._exited.left > 0,
            Caveat.NOT_LEARNING: outcome.status in ("ok", "diverged") and not self._learned(outcome),
        }

    def _learned(self, outcome: Outcome) -> bool:
        """Whether the reported loss fell; True for fewer than two reports."""
        losses = [epoch.train_loss for epoch in self.epochs if epoch.train_loss is not None]
        if outcome.status == "diverged":
            return False
        return len(losses) < 2 or losses[-1] < losses[0] - NOT_LEARNING_MARGIN * abs(losses[0])
