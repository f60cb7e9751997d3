"""The record of a run of a workload."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Literal

from trainmark.execute.parent.machine_state import MachineState
from trainmark.execute.parent.peaks import PeakKey
from trainmark.execute.parent.plan import Run, Spreading
from trainmark.execute.parent.probe import Seen
from trainmark.execute.parent.record_builder import (
    NOT_LEARNING_MARGIN,
    RecordBuilder,
    ThreadsByTitle,
)
from trainmark.execute.protocol.answers import (
    Answer,
    Compiled,
    EpochEnded,
    Finished,
    RankBorn,
    Ready,
)
from trainmark.execute.protocol.wire import broken
from trainmark.record import record as schema
from trainmark.record.caveats import Caveat
from trainmark.record.record import Outcome, Record, Samples
from trainmark.workload.schedule import Schedule

FEWEST_STEPS_TO_LEARN = 10
"""With fewer steps, an accuracy no better than chance proves nothing."""


class TrainingRecordBuilder(RecordBuilder):
    """Collects the answers of one run.

    Args:
        run: the run.
        seen: what its backend can do.
        state: the machine before the run.
        peaks: measured peaks of its device.
        replayed: whether earlier repeats are trained again in its process, without a record.
        token: makes the record's id unique.
        rank: the process, if the run has several; None for the whole.
    """

    run: Run

    def __init__(
        self,
        run: Run,
        seen: Seen,
        state: MachineState,
        peaks: schema.Peaks | None,
        replayed: bool,
        token: str,
        rank: RankBorn | None = None,
    ) -> None:
        super().__init__(run, _id(run, token, rank), state)
        self.seen = seen
        self.replayed = replayed
        self.peaks = peaks
        self._rank = rank
        self._threads_search: schema.ThreadsSearch | None = None
        self._finished = Finished()
        self._losses: list[float] = []
        self._l2_losses: list[float] | None = None
        self._log: list[schema.LogLine] = []

    def on_answer(self, answer: Answer) -> None:
        """Take in one answer of the run."""
        if isinstance(answer, EpochEnded):
            self._add_losses(answer)
        super().on_answer(answer)
        match answer:
            case Ready():
                self._ready = answer
            case Compiled():
                self._compile_seconds = answer.seconds
            case Finished():
                self._finished = answer

    def take_findings(self, peaks: Mapping[PeakKey, schema.Peaks], threads: ThreadsByTitle) -> None:
        """Take the peaks of its device and its best number of threads, as far as they are known."""
        self.peaks = peaks.get((self.run.side, self.run.settings.threads), self.peaks)
        if self.run.next_to_accelerator:
            self._threads_search = threads.get(self.run.title)

    def _is_complete(self, outcome: Outcome) -> bool:
        """Whether it is, or would have been, a training to the end and not slices alone."""
        return self.run.blocks is None and (bool(self.epochs) or outcome.status != "ok")

    @property
    def gpu(self) -> int | None:
        """The driver's number of the GPU that it trains on."""
        return self.state.gpu(self.run.side.device)

    @property
    def rest_seconds(self) -> float:  # type: ignore[override]
        """Seconds that evaluation after the latest epoch will probably take.

        It is as long as last time, and 0 if unknown.
        """
        evaluates = self._schedule.evaluate == "every-epoch"
        known = self.epochs[-2].evaluation_seconds if evaluates and len(self.epochs) > 1 else None
        return known or 0.0

    def record(self, outcome: Outcome, samples: Samples | None = None) -> Record:
        """Return the record of the answers so far."""
        run = self.run
        side = run.side
        workload = run.scheduled.workload
        model = run.scheduled.model
        dataset = run.scheduled.dataset
        device = self.seen.device(side.device)
        accelerator = device is not None and device.kind == "accelerator"
        return self._record(
            outcome,
            samples,
            schema.DeviceRef(
                id=side.device,
                name=device.name if device and accelerator else self.state.machine.cpu,
                kind="accelerator" if accelerator else "cpu",
                memory_bytes=device.memory_bytes if device else None,
                gpu=self.gpu,
            ),
            self.epochs,
            self._holds(outcome),
            workload=schema.WorkloadRef(
                workload.name,
                workload.step_fingerprint,
                workload.schedule_fingerprint,
                workload.to_data(),
            ),
            dataset=schema.DatasetRef(
                dataset.name, dataset.sha256, dataset.train_examples, dataset.test_examples
            ),
            backend=schema.BackendRef(
                name=side.backend,
                version=side.version,
                style=side.style,
                precision=side.precision,
                compile_cache=self._compile_cache,
                settings=self._finished.settings,
            ),
            python=schema.Python(
                side.interpreter.label,
                self.seen.python,
                str(side.interpreter.path),
                self._ready.packages,
            ),
            protocol=self._schedule.protocol,
            weights_from=run.settings.weights_from[1] if run.settings.weights_from else None,
            published_run=run.scheduled.published_run,
            model=schema.ModelRef(
                model.parameters,
                model.forward_flops,
                model.training_flops,
                self._ready.weights_sha256,
                self._finished.unchanged_weights,
            ),
            setup_seconds=self._ready.seconds,
            compile_seconds=self._compile_seconds,
            step_losses=list(self._losses),
            step_l2_losses=self._l2_losses,
            log=list(self._log),
            metrics=schema.MetricsRef(workload.metrics.train, workload.metrics.loss_includes_l2),
            peaks=self.peaks,
            threads_search=self._threads_search,
            memory=schema.Memory(self._finished.host_peak_bytes, self._finished.device_peak_bytes),
            group=self._group(),
        )

    @property
    def _compile_cache(self) -> Literal["cold", "warm", "none"]:
        """State of the cache on disk, as PyTorch reports it; the other backends keep no cache."""
        if self._compile_seconds is None:
            return "none"
        return "warm" if self._finished.settings.get("compile_cache") == "warm" else "cold"

    @property
    def _was_short_for_compiling(self) -> bool:
        """Whether compiling took longer than the compiled steps saved.

        The saving is estimated with the measured gain.
        """
        gain = self._finished.settings.get("compiled_gain")
        if self._compile_seconds is None or not isinstance(gain, float):
            return False
        trained = math.fsum(epoch.seconds for epoch in self.epochs)
        return self._compile_seconds > trained * (gain - 1)

    @property
    def _schedule(self) -> Schedule:
        return self.run.scheduled.workload.schedule

    def _group(self) -> schema.Group:
        run = self.run
        rank = self._rank
        return schema.Group(
            run.group_id,
            run.session,
            run.settings.kind,
            rank=rank.rank if rank else None,
            world=run.spread.layout.ranks if run.spread else None,
            trial=run.trial.number if run.trial else None,
            spread=self._spread(run.spread) if run.spread else None,
            values=dict(run.trial.values) if run.trial else None,
        )

    def _spread(self, spread: Spreading) -> schema.Spread:
        layout = spread.layout
        return schema.Spread(
            data=layout.data,
            pipeline=layout.pipeline,
            microbatches=layout.microbatches,
            all_reduce=layout.reduces,
            weak=spread.weak,
            nodes=spread.rendezvous.nodes,
            host=self._rank.host if self._rank else None,
        )

    def _add_losses(self, answer: EpochEnded) -> None:
        losses = answer.losses
        l2_losses = answer.l2_losses
        whole = answer.steps == len(losses) == len(losses if l2_losses is None else l2_losses)
        alike = not self.epochs or (l2_losses is None) == (self._l2_losses is None)
        if not (whole and alike):
            expected = (
                f"a loss for each of the {answer.steps or 0:,} steps of an epoch, of the "
                "same kinds as before"
            )
            raise broken(expected, f"{len(losses):,} losses")
        self._losses += losses
        if l2_losses is not None:
            self._l2_losses = (self._l2_losses or []) + l2_losses
        self._log += [schema.LogLine(**vars(line)) for line in answer.log]

    def _time_to_target(self) -> float | None:
        """Seconds of training up to the end of the epoch that reached the target.

        Compilation and evaluation don't count.
        """
        target = self._schedule.until
        for number, epoch in enumerate(self.epochs, 1):
            if target is not None and target.met_by(getattr(epoch, target.quantity)):
                return math.fsum(each.seconds for each in self.epochs[:number])
        return None

    def _holds(self, outcome: Outcome) -> dict[Caveat, bool]:
        """Return for each caveat whether it applies to this training.

        Learning is judged only where a training has run to its end.
        """
        settings = self.run.settings
        scheduled = self.run.scheduled
        complete = self._is_complete(outcome)
        ended = outcome.status in ("ok", "diverged")
        succeeded = complete and outcome.status == "ok"
        stopped = self._was_shortened(outcome)
        shortened = stopped and settings.kind != "sweep"
        judged = complete and ended and not shortened
        spread = self.run.spread
        needs_peaks = self.seen.limited and settings.kind == "rounds" and complete
        needs_target = complete and not shortened and self._schedule.until is not None
        unmoved = [scheduled.model.weights[name] for name in self._unchanged]
        return {
            Caveat.SUBSTITUTED_DATASET: settings.substituted,
            Caveat.PARTIAL_DATASET: not scheduled.dataset.complete,
            Caveat.UNKNOWN_PEAK: needs_peaks and self.peaks is None,
            Caveat.LOGGED_STEPS: settings.log_every is not None,
            Caveat.SIDE_BY_SIDE: self.run.trial is not None and self.run.trial.side_by_side,
            Caveat.STOPPED_EARLY: stopped and settings.kind == "sweep",
            Caveat.SHORTENED: shortened,
            Caveat.CONTINUED: self._schedule.protocol == "continued",
            Caveat.STARTED_FROM_RECORD: settings.weights_from is not None,
            Caveat.REPLAYED: self.replayed,
            Caveat.UNTESTED_VERSION: self.seen.can is not None and self.seen.can.untested,
            Caveat.TARGET_MISSED: needs_target and self._time_to_target() is None,
            Caveat.DEFAULT_THREADS: self._has_default_threads,
            Caveat.OVERSUBSCRIBED: self._is_oversubscribed,
            Caveat.NOTHING_AVERAGED: spread is not None and not spread.layout.reduces,
            Caveat.UNMOVED_WEIGHTS: any(len(weight.shape) > 1 for weight in unmoved),
            Caveat.NOT_LEARNING: judged and not self._learned(outcome),
            Caveat.STEP_NOT_COMPILED: "not_compiled" in self._finished.settings,
            Caveat.STEP_NOT_CAPTURED: "not_captured" in self._finished.settings,
            Caveat.SHORT_FOR_COMPILING: succeeded and self._was_short_for_compiling,
            Caveat.RANDOM_DATA: scheduled.dataset.source == "memory",
        }

    @property
    def _has_default_threads(self) -> bool:
        """Whether it runs with the default number of threads next to an accelerator.

        That number may not be the fastest.
        """
        is_open = self.run.next_to_accelerator and self._threads_search is None
        return is_open and len(self.state.cores) > 1

    @property
    def _is_oversubscribed(self) -> bool:
        """Whether the ranks of this machine have more threads than it has cores."""
        ranks = (
            self.run.spread.ranks_here if self.run.spread and self.run.side.device == "cpu" else 0
        )
        return ranks * (self.run.settings.threads or 1) > len(self.state.cores)

    def _learned(self, outcome: Outcome) -> bool:
        """Whether the run has learnt.

        The data loss must have fallen; the mean over the last tenth of the steps counts. The L2
        term does not count, since it falls by itself.

        Weights must have changed, and accuracy must be above chance if there was enough training.
        """
        if self.run.scheduled.dataset.source == "memory":  # it is random: nothing can be learnt
            return outcome.status == "ok"
        stands_still = len(self._unchanged) == len(self.run.scheduled.model.trained)
        if outcome.status != "ok" or not self._losses or stands_still or self._guesses:
            return False
        l2_losses = self._l2_losses or [0.0] * len(self._losses)
        losses = [loss - l2 for loss, l2 in zip(self._losses, l2_losses, strict=True)]
        tail = losses[-max(1, len(losses) // 10) :]
        last = math.fsum(tail) / len(tail)
        continues = self.run.repeat > 0 and self._schedule.protocol == "continued"
        if continues or self.run.settings.weights_from is not None:
            # The loss starts near its final value, so it need not fall; but it must be better than
            # guessing.
            return last < math.log(self.run.scheduled.model.classes)
        return last < losses[0] * (1 - NOT_LEARNING_MARGIN)

    @property
    def _unchanged(self) -> set[str]:
        """Names of trained weights that did not change; empty if unknown."""
        return {*self.run.scheduled.model.trained} & {*(self._finished.unchanged_weights or [])}

    @property
    def _guesses(self) -> bool:
        """Whether a run that trained long enough to learn is no better than chance.

        Long enough is :data:`FEWEST_STEPS_TO_LEARN` steps and a pass over the data.
        """
        scheduled = self.run.scheduled
        last = self.epochs[-1]
        accuracy = last.test_accuracy if last.test_accuracy is not None else last.train_accuracy
        examples = sum(epoch.examples or 0 for epoch in self.epochs)
        steps = len(self._losses)
        was_short = steps < FEWEST_STEPS_TO_LEARN or examples < scheduled.dataset.train_examples
        if accuracy is None or was_short:
            return False
        chance = 1 / scheduled.model.classes
        spread = math.sqrt(chance * (1 - chance) / scheduled.dataset.test_examples)
        return accuracy < chance + 3 * spread


def _id(run: Run, token: str, rank: RankBorn | None) -> tuple[str, ...]:
    side = run.side
    parts = [run.scheduled.workload.name, side.backend]
    if side.interpreter.label != "default":
        parts.append(side.interpreter.label)
    parts += [side.style, side.device]
    if side.precision != "fp32":
        parts.append(side.precision)
    if run.spread is not None:
        layout = run.spread.layout
        apart = "" if layout.reduces else "-apart"
        parts.append(f"{layout.data}x{layout.pipeline}{apart}")
    parts.append(f"r{run.repeat}" if run.trial is None else f"t{run.trial.number}")
    parts.append(token)
    if rank is not None:
        parts.append(f"rank{rank.rank}")
    return tuple(parts)
