"""Compare records: which is faster, by how much, how certain, and whether they learn the same."""

from __future__ import annotations

import dataclasses
import itertools
import math
from collections.abc import Iterable, Mapping, Sequence, Set
from dataclasses import dataclass
from operator import attrgetter
from typing import Any

from trainmark.analysis.cost import cost
from trainmark.analysis.differences import Difference, differences
from trainmark.analysis.efficiency import Place, PlacePeaks, efficiency, peaks_by_place
from trainmark.analysis.flat_losses import judge_flat_losses
from trainmark.analysis.grouping import grouped
from trainmark.analysis.groups import Repeats, group_records
from trainmark.analysis.named_metrics import compare_metrics, learning_of_reference, metric_of
from trainmark.analysis.pace import changes_pace
from trainmark.analysis.pairing import Reading, match
from trainmark.analysis.reference import references
from trainmark.analysis.results import (
    BestThreads,
    Comparison,
    GroupResult,
    Learning,
    MedianInterval,
    MetricResult,
    Reached,
    SpeedOf,
    Speedup,
)
from trainmark.analysis.slices import SliceComparison, compare_slices
from trainmark.analysis.statistics import (
    FEWEST_FOR_INTERVAL,
    SLICES_CONFIDENCE,
    TRIMMED,
    WHOLE,
    Estimate,
    learning_verdict,
    mean,
    median,
    speed_verdict,
    unpaired_difference,
)
from trainmark.analysis.summary import RunSummary, perplexity, summarize
from trainmark.analysis.work import Work, of_steps
from trainmark.errors import UsageError
from trainmark.record.caveats import Caveat
from trainmark.record.facts import FACTS, Dimension, tokens_of
from trainmark.record.record import Record

MARGIN = 0.03
"""Speeds within ±3 % count as the same."""

LEARNING_MARGIN = 0.005
"""Final accuracies within ±0.5 percentage points count as the same.

Changing only the seed changes the catalogue's workloads by 0.3 to 0.4 points.
"""

LOSS_MARGIN = 0.02
"""Final losses on text within ±0.02 count as the same.

A different seed alone changes those of ``shakespeare-gpt`` by 0.02.
"""

WIDE = 1.2
"""Ratio of the slowest to the fastest round of a group above which a caveat is shown."""

_MEDIANS = ("training_seconds", "compile_seconds", "train_loss", "test_loss")
"""Figures averaged by median, so that a slow or unlucky run doesn't change them."""
_MEANS = ("test_accuracy", "train_accuracy")
"""Figures averaged by mean, like the difference in learning, so that all three are consistent."""
_UNKNOWN_SPEED = Speedup(None, None, None, "unclear")
_UNKNOWN_LEARNING = Learning(None, None, None, None, "unclear")


@dataclass(frozen=True)
class _Side:
    """A group and the figures of its runs."""

    group: Repeats
    runs: tuple[RunSummary, ...]

    @property
    def tokens(self) -> int | None:
        """Tokens per example; None for images."""
        return tokens_of(self.group.records[0]) if self.group.records else None

    @property
    def learning_quantities(self) -> tuple[str, ...]:
        """The quantities that show whether it learnt, the best first."""
        if any(Caveat.RANDOM_DATA in run.caveats for run in self.runs):
            return ()
        return ("test_loss", "train_loss") if self.tokens else _MEANS

    @property
    def breaks(self) -> bool:
        """Whether runs failed and none was completed, so that its speed says nothing yet."""
        if self.group.key.dataset is None:
            return self.group.broken > 0 and self.group.runs == 0
        return self.group.broken > 0 and all(map(FACTS["slices_alone"].of, self.group.records))

    @property
    def learns(self) -> bool:
        return not self.breaks and all(run.learns for run in self.runs)

    @property
    def timed_by(self) -> SpeedOf:
        """What can be compared; a command that reports no epochs is compared as a whole."""
        if self.known("epoch_seconds") or not self.known("process_seconds"):
            return "epoch"
        return "process"

    @property
    def examples(self) -> frozenset[int]:
        """Known numbers of examples of a steady epoch; equal for two sides with the same work."""
        if self.group.key.dataset_sha256 is not None:
            return frozenset()  # for trainings, the key covers this
        return frozenset(run.examples for run in self.runs if run.examples is not None)

    @property
    def trainmarks(self) -> frozenset[str]:
        """The versions of trainmark that measured it, as far as known."""
        versions = {record.trainmark for record in self.group.records}
        return frozenset(version for version in versions if version is not None)

    def known(self, figure: str) -> list[float]:
        """Return the known values of a figure of the runs."""
        values = (getattr(run, figure) for run in self.runs)
        return [value for value in values if value is not None]


def compare(
    records: Iterable[Record],
    by: Dimension | None = None,
    baseline: tuple[str, str] | None = None,
    margin: float = MARGIN,
    confidence: float = SLICES_CONFIDENCE,
) -> Comparison:
    """Group ``records`` and compare each group with its reference.

    Without ``by``, every group of a workload is compared with one reference; with it, groups that
    are otherwise equal are compared along that dimension. A run that does not learn is never called
    faster: if either side has one, the verdict on speed is ``unclear``, whatever the interval.

    Args:
        records: records of any workloads, backends, devices and machines; only equal workloads are
            compared.
        by: the dimension to compare along.
        baseline: key and value of the reference, such as ``("device", "cpu")``; default: the first
            measured group.
        margin: largest difference that counts as the same speed, as a fraction.
        confidence: confidence level of the intervals of slices.

    Raises:
        UnknownName: no such dimension, or no group has the baseline's value.
        UsageError: the baseline is not of the dimension ``by``, or the margin is negative.
    """
    if not 0 <= margin < math.inf:
        raise UsageError(
            "the margin is out of range", expected="a number from 0", found=f"{100 * margin:g} %"
        )
    records = list(records)
    differing = differences(records) if by == "machine" else ()
    return compare_groups(
        group_records(records), by, baseline, margin, peaks_by_place(records), differing, confidence
    )


def compare_groups(
    groups: Sequence[Repeats],
    by: Dimension | None,
    baseline: tuple[str, str] | None,
    margin: float,
    peaks: Mapping[Place, PlacePeaks] | None = None,
    differences: tuple[Difference, ...] = (),
    confidence: float = SLICES_CONFIDENCE,
) -> Comparison:
    """Compare records that are already grouped; see :func:`compare`.

    Args:
        peaks: measured peaks, needed for the efficiency.
        differences: differences between the machines.
    """
    chosen = references(groups, by, baseline)
    sides = _sides(groups)
    results = []
    for position, (side, reference) in enumerate(zip(sides, chosen, strict=True)):
        alone = _alone(side, reference, peaks or {})
        if reference == position:
            quantity = next((name for name in side.learning_quantities if side.known(name)), None)
            learning = Learning(quantity, 0.0, None, None, "same")
            if alone.metric is not None:
                learning = learning_of_reference(alone.metric)
            itself = Speedup(1.0, None, None, "same", side.timed_by)
            alone = dataclasses.replace(alone, speedup=itself, learning=learning)
        elif reference is not None:
            alone = _held_against(alone, side, sides[reference], by, margin, confidence)
        results.append(alone)
    margins = margin, LEARNING_MARGIN, LOSS_MARGIN
    return Comparison(
        tuple(results), (), by, baseline, *margins, differences, measured=tuple(groups)
    )


def _sides(groups: Sequence[Repeats]) -> list[_Side]:
    """Return the groups with the figures of their runs."""
    runs = [tuple(map(summarize, group.records)) for group in groups]
    for positions in grouped(range(len(groups)), lambda at: groups[at].key.same_work).values():
        judged = judge_flat_losses([runs[position] for position in positions])
        for position, each in zip(positions, judged, strict=True):
            runs[position] = each
    return [_Side(group, each) for group, each in zip(groups, runs, strict=True)]


def _alone(side: _Side, reference: int | None, peaks: Mapping[Place, PlacePeaks]) -> GroupResult:
    """Return a group's own figures, not yet compared."""
    records = side.group.records
    pace = median(side.known("samples_per_second"))
    caveats = set(itertools.chain.from_iterable(run.caveats for run in side.runs))
    metric = _metric(side)
    if metric is not None and metric.is_comparable:
        caveats.discard(Caveat.LEARNING_UNSEEN)
    if side.group.failed:
        caveats.add(Caveat.FAILED_RUNS)
    if len(side.trainmarks) > 1:
        caveats.add(Caveat.DIFFERENT_TRAINMARKS)
    seconds = side.known(f"{side.timed_by}_seconds")
    if len(seconds) < FEWEST_FOR_INTERVAL and not any(record.slices for record in records):
        caveats.add(Caveat.FEW_ROUNDS)
    if seconds and max(seconds) > WIDE * min(seconds):
        caveats.add(Caveat.WIDE_SPREAD)
    complete = [record for record in records if record.epochs]
    return GroupResult(
        key=side.group.key,
        runs=side.group.runs,
        trainings=sum(map(_is_complete, records)),
        failed=side.group.failed,
        breaks=side.breaks,
        reference=reference,
        learning_unseen=_why_unseen(side),
        metric=metric,
        epochs=max((record.epoch_count or 0 for record in records), default=0),
        steps=max(map(_steps, records), default=0),
        by_steps=any(record.workload.view.schedule.steps for record in records),
        epoch_seconds=MedianInterval.of(side.known("epoch_seconds")),
        process_seconds=MedianInterval.of(side.known("process_seconds")),
        samples_per_second=pace,
        **{name: median(side.known(name)) for name in _MEDIANS},
        **{name: mean(side.known(name)) for name in _MEANS},
        speedup=_UNKNOWN_SPEED,
        learning=_UNKNOWN_LEARNING,
        caveats=ordered(caveats),
        efficiency=efficiency(complete[0], pace, peaks) if complete else None,
        cost=cost(records),
        reached=_reached(records),
        best_threads=_best_threads(records),
        tokens=side.tokens,
        tokens_per_second=pace * side.tokens if pace and side.tokens else None,
        test_perplexity=perplexity(median(side.known("test_loss"))) if side.tokens else None,
    )


def _metric(side: _Side) -> MetricResult | None:
    """Return the figure that --metric names; None without the option."""
    records = side.group.records
    by_budget = any(map(_ended_by_budget, records))
    return metric_of([record.named_metric for record in records], by_budget=by_budget)


def _ended_by_budget(record: Record) -> bool:
    """Whether the budget ended the training of a command."""
    metric = record.named_metric
    if metric is None or metric.is_final or record.outcome.status != "ok":
        return False
    reason = record.outcome.reason
    if reason is not None:
        return reason.startswith("the budget of ")
    # Trainings end after their last slice only with a budget. At --steps, the value is final.
    return record.observed is not None and record.observed.ended_early


def _why_unseen(side: _Side) -> str | None:
    """Return why the loss of a command does not show whether it learns; None if it may."""
    if not any(Caveat.LEARNING_UNSEEN in run.caveats for run in side.runs):
        return None
    reasons = [
        each.observed.unknown.get("learning") for each in side.group.records if each.observed
    ]
    return next(filter(None, reasons), None)


def _is_complete(record: Record) -> bool:
    """Return whether it is a training to its end."""
    return not FACTS["slices_alone"].of(record) and Caveat.SHORTENED not in record.caveats


def _steps(record: Record) -> int:
    """Return the number of steps; the epochs of an observed command lack the first one."""
    if record.observed is not None:
        return record.observed.steps
    return sum(epoch.steps or 0 for epoch in record.epochs)


def _best_threads(records: Sequence[Record]) -> BestThreads | None:
    """Return the best number of CPU threads of these runs; None if there was no search."""
    searches = [record.threads_search for record in records if record.threads_search is not None]
    if not searches:
        return None
    search = searches[0]
    return BestThreads(search.chosen, search.default, search.slowdown)


def _reached(records: Sequence[Record]) -> Reached | None:
    target = records[0].workload.view.schedule.until if records else None
    if target is None:
        return None
    there = _to_target(records)
    time = MedianInterval.of([seconds for seconds, _ in there])
    runs = sum(seconds < math.inf for seconds, _ in there)
    epochs = median([number for _, number in there])
    return Reached(str(target), runs, time.median, time.low, time.high, epochs)


def _to_target(records: Sequence[Record]) -> list[tuple[float, float]]:
    """Return seconds and epochs to the target of each training, infinite if it missed it."""
    found: list[tuple[float, float]] = []
    for record in records:
        if not _is_complete(record):
            continue
        seconds = record.final.time_to_target_seconds
        found.append((math.inf, math.inf) if seconds is None else (seconds, len(record.epochs)))
    return found


def _converges_faster(side: _Side, reference: _Side) -> bool:
    """Return whether runs need significantly fewer epochs to their target than the reference's.

    A faster device or framework trains the same, in the same number of epochs. MLPerf checks its
    submissions likewise, against the reference's convergence points.
    """
    these = [epochs for _, epochs in _to_target(side.group.records)]
    those = [epochs for _, epochs in _to_target(reference.group.records)]
    if not (these and those) or math.inf in these + those:
        return False
    difference = unpaired_difference(these, those, WHOLE)
    # Epochs are whole, so a difference of one is no evidence.
    return difference.high is not None and difference.high < 0 and difference.value < -1


def _held_against(
    result: GroupResult,
    side: _Side,
    reference: _Side,
    by: Dimension | None,
    margin: float,
    confidence: float,
) -> GroupResult:
    """Return ``result`` with its speed-up and learning, both relative to ``reference``."""
    caveats = set(result.caveats) | _differences(side, reference, by)
    speedup = _UNKNOWN_SPEED
    learning = _UNKNOWN_LEARNING
    # Epochs of commands may differ in their number of examples, which may be unknown; then they
    # aren't comparable.
    same_length = side.group.key.train_examples == reference.group.key.train_examples
    work = _work(reference, side)
    if not work.can_be_compared:
        caveats.add(Caveat.UNEQUAL_WORK)
    differs = _known_to_differ(side.examples, reference.examples) or not work.can_be_compared
    if same_length and not differs:
        speedup, found = _by_runs(side, reference, margin)
        sliced = compare_slices(work.reference, work.these)
        if sliced is not None and (_has_enough(sliced) or speedup.low is None):
            learn = side.learns and reference.learns
            of_slices, its_caveats = by_slices(sliced, margin, confidence, learns=learn)
            # Trainings that confirm an obvious difference have an interval, which says more than
            # the bound.
            is_confirmed = speedup.low is not None and speedup.verdict == of_slices.verdict
            if of_slices.at_least is None or not is_confirmed:
                speedup = of_slices
                found = its_caveats
                if work.caveat is not None:
                    found = found | {work.caveat}
        elif sliced is not None and sliced.too_disturbed:
            speedup = dataclasses.replace(speedup, verdict="unclear")
            found = found | {Caveat.TOO_DISTURBED}
        caveats |= found
    if _converges_faster(side, reference):
        caveats.add(Caveat.CONVERGES_FASTER)
    metric = _metric(reference)
    if result.metric is not None and metric is not None:
        learning = compare_metrics(side.runs, reference.runs, result.metric, metric)
    elif Caveat.DIFFERENT_DATA not in caveats:
        learning = _learning(side, reference, pairs=side.group.key.protocol == "fresh")
    return dataclasses.replace(result, speedup=speedup, learning=learning, caveats=ordered(caveats))


def _work(reference: _Side, side: _Side) -> Work:
    """Return what slices are compared by.

    Those of a command count examples or, if they are unknown on a side, what its steps do.
    """
    those = reference.group.records
    these = side.group.records
    know_examples = {bool(each.known("samples_per_second")) for each in (reference, side)}
    if side.group.key.dataset is not None or know_examples == {True}:
        return Work(those, these)
    if all(record.observed is not None for record in (*those, *these)):
        return of_steps(those, these)
    # Without an observer, a slice counts batches or epochs, or their examples.
    return Work(those, these if len(know_examples) == 1 else ())


def _has_enough(sliced: SliceComparison) -> bool:
    """Whether there are enough slices to decide.

    A training of a few steps may end before it has a block in every round.
    """
    return len(sliced.rounds) >= FEWEST_FOR_INTERVAL or sliced.is_obvious


def _by_runs(side: _Side, reference: _Side, margin: float) -> tuple[Speedup, set[Caveat]]:
    """Return the speed-up by steady epochs or whole processes, paired by round, and its caveats."""
    of: SpeedOf = "epoch" if side.timed_by == reference.timed_by == "epoch" else "process"
    is_fresh = side.group.key.protocol == "fresh"
    times = match(reference.runs, side.runs, _logarithm(of), pairs=is_fresh)
    difference = times.difference(TRIMMED)
    if difference is None:
        return _UNKNOWN_SPEED, set()
    caveats = set()
    if not times.paired:
        caveats.add(Caveat.UNPAIRED)
    if times.count < FEWEST_FOR_INTERVAL:
        caveats.add(Caveat.FEW_ROUNDS)
    learns = side.learns and reference.learns
    return _speedup(difference.exponential(), margin, of, learns=learns), caveats


def by_slices(
    sliced: SliceComparison, margin: float, confidence: float, *, learns: bool
) -> tuple[Speedup, set[Caveat]]:
    """Return the speed-up by undisturbed blocks, and its caveats.

    It is ``unclear`` if too many blocks are disturbed, or if they would change the verdict. The
    interval over rounds decides. If there is none, or it is unclear, an obvious difference in the
    first two rounds decides.
    """
    caveats = set()
    if sliced.disturbed:
        caveats.add(Caveat.DISTURBED)
    if changes_pace(sliced.ratios):
        caveats.add(Caveat.PACE_CHANGED)
    if len(sliced.all) < FEWEST_FOR_INTERVAL and not sliced.is_obvious:
        caveats.add(Caveat.FEW_ROUNDS)
    ratio = _decisive(sliced.ratio(confidence), sliced.obvious(), margin)
    every = sliced.ratio(confidence, disturbed=True)
    of_all = _decisive(every, sliced.obvious(disturbed=True), margin)
    changed = speed_verdict(ratio, margin) != speed_verdict(of_all, margin)
    fewer = len(sliced.kept) < min(FEWEST_FOR_INTERVAL, len(sliced.all))
    if sliced.too_disturbed or fewer or changed:
        caveats = caveats - {Caveat.DISTURBED} | {Caveat.TOO_DISTURBED}
    trusted = learns and Caveat.TOO_DISTURBED not in caveats
    return _speedup(ratio, margin, "slice", learns=trusted), caveats


def _decisive(interval: Estimate, obvious: Estimate | None, margin: float) -> Estimate:
    """Return ``interval`` if it gives a verdict, else ``obvious`` if that is known."""
    if obvious is not None and speed_verdict(interval, margin) == "unclear":
        return obvious
    return interval


def _speedup(ratio: Estimate, margin: float, of: SpeedOf, *, learns: bool) -> Speedup:
    verdict = speed_verdict(ratio, margin) if learns else "unclear"
    return Speedup(ratio.value, ratio.low, ratio.high, verdict, of)


def _learning(side: _Side, reference: _Side, *, pairs: bool) -> Learning:
    """Return the difference of the final accuracies or losses.

    Two sides that both learn nothing are not *the same*.
    """
    these = side.runs if pairs else _last_repeats(side.runs)
    those = reference.runs if pairs else _last_repeats(reference.runs)
    # match() returns the first minus the second; above 0 is better, so losses are swapped.
    ends = (those, these) if side.tokens else (these, those)
    margin = LOSS_MARGIN if side.tokens else LEARNING_MARGIN
    for quantity in side.learning_quantities:
        difference = match(*ends, attrgetter(quantity), pairs=pairs).difference(WHOLE)
        if difference is not None:
            verdict = learning_verdict(difference, margin)
            one_learns = side.learns or reference.learns
            both_learn = side.learns and reference.learns
            if not both_learn and not (verdict == "differs" and one_learns):
                verdict = "unclear"
            return Learning(quantity, difference.value, difference.low, difference.high, verdict)
    return _UNKNOWN_LEARNING


def _last_repeats(runs: Sequence[RunSummary]) -> tuple[RunSummary, ...]:
    """Return the last repeats of continued trainings, whose repeats are not independent."""
    last = max((run.round for run in runs), default=0)
    return tuple(run for run in runs if run.round == last)


def _differences(side: _Side, reference: _Side, by: Dimension | None) -> set[Caveat]:
    """Return caveats for what differs between two sides, besides the compared dimension."""
    these = side.group.key
    those = reference.group.key
    data = (
        these.dataset_sha256 != those.dataset_sha256 or these.train_examples != those.train_examples
    )
    machines = (these.machine, these.cpu, these.cores) != (those.machine, those.cpu, those.cores)
    differs = {
        Caveat.DIFFERENT_DATA: data or _known_to_differ(side.examples, reference.examples),
        Caveat.DIFFERENT_MACHINES: machines and by != "machine",
        Caveat.DIFFERENT_VERSIONS: these.version != those.version and by == "machine",
        Caveat.DIFFERENT_TRAINMARKS: _known_to_differ(side.trainmarks, reference.trainmarks),
        Caveat.DIFFERENT_WEIGHTS: _weights_differ(side.runs, reference.runs),
    }
    return {caveat for caveat in differs if differs[caveat]}


def _known_to_differ(these: frozenset[Any], those: frozenset[Any]) -> bool:
    """Return whether both are known and differ."""
    return bool(these and those) and these != those


def _weights_differ(these: Sequence[RunSummary], those: Sequence[RunSummary]) -> bool:
    """Whether the runs of a round, or of all rounds, started from different weights."""
    a = {(run.group, run.round): run.weights_sha256 for run in these if run.weights_sha256}
    b = {(run.group, run.round): run.weights_sha256 for run in those if run.weights_sha256}
    shared = a.keys() & b.keys()
    if shared:
        return any(a[round] != b[round] for round in shared)
    first = set(a.values())
    second = set(b.values())
    return bool(a and b) and not (first <= second or second <= first)


def ordered(caveats: Set[Caveat]) -> tuple[Caveat, ...]:
    """Return the caveats in the order of their list."""
    return tuple(caveat for caveat in Caveat if caveat in caveats)


def _logarithm(of: SpeedOf) -> Reading:
    """Return a reading of the logarithm of the compared seconds."""

    def read(run: RunSummary) -> float | None:
        seconds = getattr(run, f"{of}_seconds")
        return math.log(seconds) if seconds else None

    return read
