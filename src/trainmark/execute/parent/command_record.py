"""The record of a run of a command."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any, Literal

from msgspec import structs

from trainmark.backends.base import is_numbered
from trainmark.execute.parent.command import CommandRun, program_of
from trainmark.execute.parent.find_metric import MetricFinder
from trainmark.execute.parent.machine_state import MachineState
from trainmark.execute.parent.peaks import PeakKey
from trainmark.execute.parent.record_builder import (
    NOT_LEARNING_MARGIN,
    RecordBuilder,
    ThreadsByTitle,
)
from trainmark.execute.protocol.answers import (
    Answer,
    CommandExited,
    CommandStarted,
    EpochEnded,
    MetricLogged,
    StepsObserved,
)
from trainmark.record import record as schema
from trainmark.record.caveats import Caveat
from trainmark.record.ends_of_losses import ends_of_losses
from trainmark.record.growth import growth_of
from trainmark.record.named_metric import NamedMetric
from trainmark.record.observed import LOSS_DID_NOT_FALL, Observed
from trainmark.record.record import Outcome, Record, Samples

_MOST_LOSSES = 20_000
"""Maximum number of per-step losses stored in a record."""


class CommandRecordBuilder(RecordBuilder):
    """Collects the answers of one run.

    Args:
        run: the run.
        state: the machine before the run.
        token: makes the record's id unique.
    """

    run: CommandRun

    def __init__(self, run: CommandRun, state: MachineState, token: str) -> None:
        parts = (
            run.of.name,
            *run.side.values.values(),
            *run.side.environment.values(),
            f"r{run.round}",
            token,
        )
        super().__init__(run, parts, state)
        self._packages: dict[str, str] = {}
        self._program_sha256 = run.program_sha256  # now, since it may be edited while it runs
        self._exited: CommandExited | None = None
        self._start: float | None = None
        self._examples_of_step: float | None = None
        self._observed: StepsObserved | None = None
        self._losses: list[float] = []
        self._threads_search: schema.ThreadsSearch | None = None
        metric = run.of.metric
        self._metric = None if metric is None else MetricFinder(metric)

    @property
    def gpu(self) -> int | None:
        """The driver's number of the GPU that the command should use."""
        device = self.run.side.device
        if device is None:
            return None
        return self.state.gpu(device if is_numbered(device) else f"{device}:0")

    def on_answer(self, answer: Answer) -> None:
        """Take in one answer of the run."""
        super().on_answer(answer)
        match answer:
            case EpochEnded():
                self._packages = answer.packages
                self._examples_of_step = (answer.examples or 1) / (answer.batches or 1)
            case StepsObserved():
                self._observed = answer
                self._packages = answer.packages
                self._losses += answer.losses[: _MOST_LOSSES - len(self._losses)]
            case MetricLogged() if self._metric is not None:
                self._metric.on_logged(answer)
            case CommandStarted():
                self._start = answer.start
            case CommandExited():
                self._exited = answer
                self._packages = answer.packages

    def on_output(self, printed: bytes) -> None:
        """Look for the figure that the user names in what the command prints."""
        if self._metric is not None:
            self._metric.on_output(printed)

    def take_findings(self, peaks: Mapping[PeakKey, schema.Peaks], threads: ThreadsByTitle) -> None:
        """Take its best number of threads, if known; a command has no peaks."""
        del peaks
        if self.run.next_to_accelerator:
            self._threads_search = threads.get(self.run.title)

    @property
    def slices(self) -> list[schema.Slice]:
        """The slices so far.

        There are none until the observer or the first epoch reports the examples of a step.
        """
        seen = self._observed
        per_step = self._examples_of_step if seen is None else seen.examples_per_step or 1.0
        if per_step is None:
            return []
        return [
            structs.replace(each, examples=each.timed_steps * per_step) for each in self._slices
        ]

    @property
    def has_results(self) -> bool:
        """Whether anything was measured so far."""
        return super().has_results or self._observed is not None

    def record(self, outcome: Outcome, samples: Samples | None = None) -> Record:
        """Return the record of the reports so far."""
        run = self.run
        of = run.of
        program = run.shown_words[0]
        gpu = self.gpu
        without_gpu: Literal["cpu"] | None = "cpu" if run.side.device == "cpu" else None
        kind = without_gpu if gpu is None else "accelerator"
        return self._record(
            outcome,
            samples,
            schema.DeviceRef(run.side.device, self._device_name, kind, gpu=gpu),
            self._windows,
            self._holds(outcome),
            workload=schema.WorkloadRef(
                of.name,
                of.fingerprint,
                of.fingerprint,
                {"command": of.shown_template},
            ),
            dataset=None,
            backend=schema.BackendRef(self._backend, self._versions, run.side.style, None, None),
            python=schema.Python(None, None, program, self._packages),
            protocol="fresh",
            model=None,
            metrics=None,
            threads_search=self._found_threads,
            memory=schema.Memory(
                self._exited.host_peak_bytes if self._exited else None,
                self._observed.device_peak_bytes if self._observed else None,
            ),
            process=self._process(),
            observed=self._seen(outcome),
            named_metric=self._named_metric(outcome),
            group=schema.Group(run.group_id, run.session),
        )

    @property
    def _found_threads(self) -> schema.ThreadsSearch | None:
        """How its number of threads was found.

        The result is None if it ran with another number, such as one that the script set.
        """
        found = self._threads_search
        seen = self._observed
        if found is None or seen is None or seen.threads != found.chosen:
            return None
        return found

    def _seen(self, outcome: Outcome) -> Observed | None:
        seen = self._observed
        if seen is None:
            return None
        facts = {name: value for name, value in vars(seen).items() if name != "packages"}
        if outcome.status == "ok" and outcome.reason is not None:
            facts["ended_early"] = True  # it had no time to report that itself
        if self._is_flat(outcome):
            facts["unknown"] = {"learning": LOSS_DID_NOT_FALL, **seen.unknown}
        return Observed(**facts | {"losses": self._losses})

    def _named_metric(self, outcome: Outcome) -> NamedMetric | None:
        if self._metric is None:
            return None
        return self._metric.found(self.epochs, is_final=self._is_whole(outcome))

    def _is_whole(self, outcome: Outcome) -> bool:
        """Whether the training ran to its end, or to ``--steps``, so that others end there, too."""
        if outcome.status not in ("ok", "diverged") or outcome.reason is not None:
            return False
        seen = self._observed
        most = self.run.of.most_steps
        return seen is None or not seen.ended_early or (most is not None and seen.steps >= most)

    def _process(self) -> schema.Process:
        run = self.run
        end: dict[str, Any] = {
            "program_sha256": self._program_sha256,
            "environment": dict(run.side.environment),
        }
        exited = self._exited
        if exited is not None:
            alike = (
                "seconds",
                "user_seconds",
                "system_seconds",
                "language",
                "odd",
                "left_out",
                "attached",
            )
            end |= {"exit_code": exited.code, **{name: getattr(exited, name) for name in alike}}
        return schema.Process(run.shown_words, run.of.shown_directory, self._start, **end)

    @property
    def _versions(self) -> str | None:
        """Return the versions of the reported frameworks."""
        packages = dict(self._packages)
        own = [packages.pop(self._backend)] if self._backend in packages else []
        reported = [
            f"{name} {version}" for name, version in sorted(packages.items()) if name != "numpy"
        ]
        return ", ".join([*own, *reported]) or None

    @property
    def _backend(self) -> str:
        """The observed framework, else the program."""
        return self._observed.framework if self._observed else program_of(self.run.shown_words)

    @property
    def _device_name(self) -> str | None:
        if self.run.side.device == "cpu":
            return self.state.machine.cpu
        return next((each.name for each in self.state.driver.gpus if each.index == self.gpu), None)

    @property
    def _windows(self) -> list[schema.Epoch]:
        """Return the times of training: its epochs, or the whole process if it reports none."""
        if self.epochs or self._exited is None or self._start is None:
            return self.epochs
        return [schema.Epoch(0, self._start, self._exited.seconds, None, None)]

    def _holds(self, outcome: Outcome) -> dict[Caveat, bool]:
        return {
            Caveat.DEFAULT_THREADS: self._has_default_threads,
            Caveat.SHORTENED: self._was_shortened(outcome),
            Caveat.NO_EPOCHS: not self.epochs and self._observed is None,
            Caveat.ODD_REPORTS: self._exited is not None and self._exited.left_out > 0,
            Caveat.LEFT_PROCESSES: self._exited is not None and self._exited.left > 0,
            Caveat.GROWING: self._observed is not None and growth_of(self._observed) is not None,
            Caveat.NOT_LEARNING: self._fails_to_learn(outcome),
            Caveat.LEARNING_UNSEEN: self._is_judged(outcome)
            and (self._shows_no_learning or self._is_flat(outcome)),
        }

    @property
    def _has_default_threads(self) -> bool:
        """Whether it runs with the default number of threads next to an accelerator.

        That number may not be the fastest.
        """
        is_open = self.run.next_to_accelerator and self._found_threads is None
        return is_open and len(self.state.cores) > 1

    def _is_judged(self, outcome: Outcome) -> bool:
        """Whether enough of the training has happened to ask if it learns."""
        return outcome.status in ("ok", "diverged") and not self._was_shortened(outcome)

    @property
    def _shows_no_learning(self) -> bool:
        """Whether its loss need not fall while it learns, as that of a GAN."""
        return self._observed is not None and "learning" in self._observed.unknown

    def _fails_to_learn(self, outcome: Outcome) -> bool:
        """Whether its loss shows that it does not learn.

        A loss that the script reports itself is the one that should fall. One that was only
        observed may be that of any method.
        """
        if not self._is_judged(outcome):
            return False
        if outcome.status == "diverged":
            return True
        ends = self._ends_of_losses
        if ends is None:
            return False
        if not math.isfinite(ends[1]):
            return True
        is_reported = self._observed is None or self._observed.own_epochs
        return is_reported and not self._shows_no_learning and not _fell(*ends)

    def _is_flat(self, outcome: Outcome) -> bool:
        """Whether its observed loss is finite, but did not fall, for whatever reason."""
        is_open = self._is_judged(outcome) and not self._shows_no_learning
        if self._observed is None or not is_open or self._fails_to_learn(outcome):
            return False
        ends = self._ends_of_losses
        return ends is not None and not _fell(*ends)

    @property
    def _ends_of_losses(self) -> tuple[float, float] | None:
        """The loss in the beginning and at the end; None if it is unknown."""
        starts = self._observed.training_starts if self._observed else ()
        return ends_of_losses(self.epochs, self._losses, starts)


def _fell(first: float, last: float) -> bool:
    """Whether a loss fell by enough to count as learning."""
    return last < first - NOT_LEARNING_MARGIN * abs(first)
