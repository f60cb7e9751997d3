"""Figures derived from one record; they are not stored, since the record has the raw numbers."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

from trainmark.analysis.statistics import median
from trainmark.record.caveats import Caveat
from trainmark.record.ends_of_losses import ends_of_losses
from trainmark.record.observed import LOSS_DID_NOT_FALL
from trainmark.record.record import Epoch, Record, Slice

_LARGEST_EXPONENT = 700
"""Largest loss whose exponential is a finite float64."""
MEASURED = ("ok", "diverged")
"""Outcomes whose epochs count.

The times of a diverged run are valid, so it is shown, as one that does not learn.
"""


@dataclass(frozen=True)
class RunSummary:
    """The figures of one run; None is unknown.

    Args:
        group: plan and session in which the run was measured.
        round: its round in them.
        epoch_seconds: median of the steady epochs.
        process_seconds: duration of a whole command, from start to end; unknown for trainmark's own
            trainings, and if --steps or --budget ended it.
        samples_per_second: examples of a steady epoch / ``epoch_seconds``.
        examples: examples of a steady epoch; unknown if the training was ended early and has slices
            instead.
        training_seconds: sum of all epochs, with warm-up, without evaluation; unknown for an
            incomplete run.
        train_loss, train_accuracy, test_loss, test_accuracy: unknown for an incomplete run.
        compile_seconds: compilation time before the first epoch; never part of the other durations.
        weights_sha256: hash of the initial weights.
        metric: last value of the figure that ``measure --metric`` names; unknown if it is not
            finite, or the training did not run to its end.
        loss_fell: whether the observed loss of a command fell; unknown with too few losses, or if
            it need not fall, as that of a GAN.
    """

    group: str
    round: int
    epoch_seconds: float | None
    process_seconds: float | None
    samples_per_second: float | None
    examples: int | None
    training_seconds: float | None
    compile_seconds: float | None
    train_loss: float | None
    train_accuracy: float | None
    test_loss: float | None
    test_accuracy: float | None
    weights_sha256: str | None
    caveats: frozenset[Caveat]
    loss_fell: bool | None = None
    metric: float | None = None

    @property
    def learns(self) -> bool:
        """Whether the training loss decreased and stayed finite."""
        return Caveat.NOT_LEARNING not in self.caveats


def perplexity(loss: float | None) -> float | None:
    """Return the perplexity of a loss; infinite if it is too large."""
    if loss is None:
        return None
    return math.exp(loss) if loss < _LARGEST_EXPONENT else math.inf


def whole_epochs(epochs: Sequence[Epoch]) -> list[Epoch]:
    """Return the epochs with the usual number of steps.

    ``--steps`` may end a run in the middle of its last one. The first one may lack the first step,
    whose start is not observed. Of several trainings, the end of an epoch may be missed where the
    next one begins, so the longest ones need not be whole.
    """
    counts = Counter(epoch.steps or 0 for epoch in epochs)
    usual = max(counts, key=lambda steps: (counts[steps], steps), default=0)
    return [
        epoch
        for epoch in epochs
        if (epoch.steps or 0) == usual or (epoch is epochs[0] and epoch.steps == usual - 1)
    ]


def steady_epochs(epochs: Sequence[Epoch]) -> list[Epoch]:
    """Return the whole epochs, without the first, which includes warm-up, if there are others."""
    whole = whole_epochs(epochs)
    return whole[1:] or whole


def summarize(record: Record) -> RunSummary:
    """Return the figures of one record whose outcome is in :data:`MEASURED`."""
    diverged = record.outcome.status == "diverged"
    steady = steady_epochs(record.epochs)
    seconds = median(epoch.seconds for epoch in steady)
    if seconds is not None and seconds <= 0:
        seconds = None  # the clock is too coarse for this epoch, so its rate is unknown
    rate = None if seconds is None or steady[0].examples is None else steady[0].examples / seconds
    seen = record.observed
    shortened = Caveat.SHORTENED in record.caveats
    ended_early = shortened or (seen is not None and seen.ended_early)
    if shortened and len(record.epochs) == 1:
        seconds = None  # it may be a part of an epoch
    if seen and not record.epochs and seen.examples_per_step and seen.seconds:
        rate = _rate_of_slices(record.slices)
        if rate is None:
            rate = (seen.steps - 1) * seen.examples_per_step / seen.seconds
    train_loss = record.final.train_loss
    if diverged and train_loss is None:
        train_loss = math.nan
    if shortened:
        train_loss = None
    caveats = {*record.caveats}
    if len(whole_epochs(record.epochs)) == 1:
        caveats.add(Caveat.ONE_EPOCH)
    if diverged or (train_loss is not None and not math.isfinite(train_loss)):
        caveats.add(Caveat.NOT_LEARNING)
    return RunSummary(
        group=f"{record.group.id}/{record.group.session}",
        round=record.round,
        epoch_seconds=seconds,
        process_seconds=record.process.seconds if record.process and not ended_early else None,
        samples_per_second=rate,
        examples=steady[0].examples if steady and not (ended_early and record.slices) else None,
        training_seconds=None if diverged or ended_early else _training_seconds(record),
        compile_seconds=record.compile_seconds,
        train_loss=train_loss,
        train_accuracy=None if shortened else record.final.train_accuracy,
        test_loss=None if shortened else record.final.test_loss,
        test_accuracy=None if shortened else record.final.test_accuracy,
        weights_sha256=record.model.initial_weights_sha256 if record.model else None,
        caveats=frozenset(caveats),
        loss_fell=None if diverged or shortened else _loss_fell(record),
        metric=_metric(record),
    )


def _metric(record: Record) -> float | None:
    found = record.named_metric
    if found is None or not found.is_final or found.last is None:
        return None
    return found.last if math.isfinite(found.last) else None


def _loss_fell(record: Record) -> bool | None:
    seen = record.observed
    if seen is None or not seen.losses:
        return None
    if ends_of_losses(record.epochs, seen.losses, seen.training_starts) is None:
        return None
    why = seen.unknown.get("learning")
    if why is None:
        return Caveat.NOT_LEARNING not in record.caveats
    return False if why == LOSS_DID_NOT_FALL else None


def _rate_of_slices(slices: Sequence[Slice]) -> float | None:
    """Return the examples per second in all slices; None without any.

    The observed steps also include those before the first slice, while the other sides were still
    starting up: one script was 2.5 times slower in them.
    """
    seconds = math.fsum(each.seconds for each in slices)
    return math.fsum(each.examples for each in slices) / seconds if seconds else None


def _training_seconds(record: Record) -> float | None:
    if record.final.training_seconds is not None:
        return record.final.training_seconds
    return math.fsum(epoch.seconds for epoch in record.epochs) if record.epochs else None
