"""What the rounds say: how each contender stands against the reference, and against what the machine can give.

Ratios and fractions are means of paired logarithms, round by round, with a 95 % interval: each round's time is held
against the same round's reference, and against the same round's peak.
"""

from __future__ import annotations

import math
import statistics
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from rounds import Outcome

from trainmark import units
from trainmark.analysis.statistics import Estimate, median, paired_difference
from trainmark.report.table import Cell, Column, Row, Table, span
from trainmark.workload import traffic
from trainmark.workload.model import lay_out
from trainmark.workload.spec import Workload

LIMIT = "limit"
REFERENCES = ("Keras fit", "PyTorch DataLoader")
OURS = "trainmark "
ACCURACY_MARGIN = 0.02


@dataclass(frozen=True)
class Bar:
    """What trainmark's fastest side must reach with the lower bound of its interval."""

    ratio: float
    fraction: float | None = None


BARS = {
    "mnist-mlp512": Bar(2.2, 0.35),
    "mnist-mlp128": Bar(3.5, 0.20),
    "mnist-mlp32": Bar(1.5),
    "mnist-cnn": Bar(1.2),
    "cifar10-cnn": Bar(1.0),
}


@dataclass(frozen=True)
class Course:
    """What every contender trains in one turn.

    Args:
        examples: of one epoch.
    """

    workload: Workload
    examples: int
    epochs_a_turn: int
    test_examples: int

    @property
    def batch(self) -> int:
        """Examples of a whole batch."""
        return self.workload.batches.sizes(self.examples)[0]

    @property
    def steps(self) -> int:
        """Of one turn."""
        return len(self.workload.batches.sizes(self.examples)) * self.epochs_a_turn

    @property
    def examples_a_turn(self) -> int:
        """Examples of one turn, each as often as it is trained on."""
        return sum(self.workload.batches.sizes(self.examples)) * self.epochs_a_turn

    @property
    def flops_a_turn(self) -> int:
        """Of matrix products and convolutions."""
        return lay_out(self.workload).training_flops * self.examples_a_turn


@dataclass(frozen=True)
class Standing:
    """One contender's numbers.

    Args:
        ratio: reference seconds / these seconds; None without a reference.
        fraction: of the machine's peak; None without a measured peak.
        learns: its accuracy reaches :func:`least_accuracy`; None without one.
    """

    name: str
    seconds: float
    ratio: Estimate | None
    fraction: Estimate | None
    test_accuracy: float | None
    learns: bool | None


def reference_of(seconds: Mapping[str, Sequence[float]]) -> str | None:
    """The faster of the two loops that most people write; None when both were left out."""
    present = [name for name in REFERENCES if name in seconds]
    return min(present, key=lambda name: median(seconds[name]) or math.inf, default=None)


def standings(course: Course, outcome: Outcome) -> list[Standing]:
    """All that finished, fastest first."""
    reference = reference_of(outcome.seconds)
    least = least_accuracy(outcome.test_accuracy, reference, course.test_examples)
    peaks = [fact["flops_per_second"] for fact in outcome.facts.get(LIMIT, [])]
    found = []
    for name, seconds in outcome.seconds.items():
        if name == LIMIT:
            continue
        accuracy = outcome.test_accuracy.get(name)
        ideal = [course.flops_a_turn / peak for peak in peaks]
        found.append(
            Standing(
                name,
                median(seconds) or math.nan,
                paired_ratio(outcome.seconds[reference], seconds) if reference else None,
                paired_ratio(ideal, seconds) if ideal else None,
                accuracy,
                None if least is None or accuracy is None else accuracy >= least,
            )
        )
    return sorted(found, key=lambda standing: standing.seconds)


def paired_ratio(theirs: Sequence[float], these: Sequence[float]) -> Estimate:
    """Their seconds / these seconds, paired round by round."""
    return paired_difference([math.log(a / b) for a, b in zip(theirs, these, strict=True)]).exponential()


def least_accuracy(accuracies: Mapping[str, float], reference: str | None, examples: int) -> float | None:
    """The accuracy below which a contender learns something else than the reference; None without one.

    It is 2 points below the reference's; or 3 standard errors, where the test set is small; or 3 standard deviations of
    the peers among each other, where the run is so short that accuracy still depends on the first weights.
    """
    if reference is None or reference not in accuracies:
        return None
    expected = accuracies[reference]
    chance = math.sqrt(2 * expected * (1 - expected) / examples)
    peers = [accuracy for name, accuracy in accuracies.items() if not name.startswith(OURS)]
    seeds = statistics.stdev(peers) if len(peers) > 1 else 0.0
    return expected - max(ACCURACY_MARGIN, 3 * chance, 3 * seeds)


def table(course: Course, outcome: Outcome, conditions: Sequence[str]) -> Table:
    """All contenders of one workload."""
    reference = reference_of(outcome.seconds)
    rows = standings(course, outcome)
    columns = [Column("contender")]
    columns += [
        Column(title, "right")
        for title in ("samples/s", "against the reference", "test accuracy", "GFLOP/s", "of the peak", "a step")
    ]
    return Table(
        course.workload.name,
        (*conditions, *_conditions(course, outcome)),
        tuple(columns),
        tuple(_row(course, row, row.name == reference) for row in rows),
        (
            *verdicts(course, rows),
            *(f"left out: {name}: {reason}" for name, reason in outcome.left_out.items()),
        ),
    )


def verdicts(course: Course, rows: Sequence[Standing]) -> list[str]:
    """Which bars trainmark's fastest side meets."""
    bar = BARS.get(course.workload.name)
    ours = next((row for row in rows if row.name.startswith(OURS) and row.learns is not False), None)
    if bar is None or ours is None:
        return []
    said = [_verdict(f"at least {bar.ratio}× the reference", ours.ratio, bar.ratio, units.ratio, ours.name)]
    if bar.fraction is not None:
        percent = units.percent(bar.fraction, 0)
        said.append(_verdict(f"at least {percent} of the peak", ours.fraction, bar.fraction, _percent, ours.name))
    return said


def _verdict(what: str, found: Estimate | None, bar: float, written: Callable[[float], str], name: str) -> str:
    if found is None or found.low is None:
        return f"bar not decided: {what}: {name} has no interval"
    met = "bar met" if found.low >= bar else "bar MISSED"
    return f"{met}: {what}: {name} has {written(found.value)}, at least {written(found.low)}"


def _conditions(course: Course, outcome: Outcome) -> list[str]:
    reference = reference_of(outcome.seconds)
    rounds = max((len(seconds) for seconds in outcome.seconds.values()), default=0)
    said = [
        f"a turn is {units.many(course.epochs_a_turn, 'epoch')} of {course.examples:,} examples, "
        f"{units.many(course.steps, 'step')} of {course.batch:,}; {units.many(rounds, 'round')} count; "
        f"accuracy on {course.test_examples:,} test images",
        f"reference: {reference or 'none: both were left out'}",
    ]
    facts = outcome.facts.get(LIMIT)
    if not facts:
        return said
    flops = [fact["flops_per_second"] for fact in facts]
    copied = [fact["bytes_per_second"] for fact in facts]
    peak, bandwidth = median(flops) or math.nan, median(copied) or math.nan
    model, optimizer = lay_out(course.workload), course.workload.optimizer
    least, unfused = (
        bound(model, optimizer, course.batch) / bandwidth for bound in (traffic.compulsory, traffic.layer_by_layer)
    )
    arithmetic = model.training_flops * course.batch / peak
    return [
        *said,
        f"peak of matrix products in the same rounds: median {peak / 1e9:,.0f}, best {max(flops) / 1e9:,.0f} GFLOP/s "
        f"({facts[-1]['product']}); copy: median {bandwidth / 1e9:.1f}, best {max(copied) / 1e9:.1f} GB/s "
        f"({facts[-1]['copy']})",
        f"a step at these: {units.seconds(arithmetic)} of arithmetic; memory {units.seconds(least)} where all is read "
        f"and written once, {units.seconds(unfused)} layer by layer",
    ]


def _row(course: Course, row: Standing, is_reference: bool) -> Row:
    accuracy = units.percent(row.test_accuracy)
    return Row(
        (
            Cell(row.name, "the reference" if is_reference else "", "strong" if row.name.startswith(OURS) else "plain"),
            Cell(f"{course.examples_a_turn / row.seconds:,.0f}"),
            Cell("1") if is_reference else _interval(row.ratio, units.ratio),
            Cell(accuracy, "LOWER than the reference's" if row.learns is False else ""),
            Cell(f"{course.flops_a_turn / row.seconds / 1e9:,.1f}"),
            _interval(row.fraction, _percent),
            Cell(units.seconds(row.seconds / course.steps)),
        )
    )


def _interval(found: Estimate | None, written: Callable[[float], str]) -> Cell:
    if found is None:
        return Cell(units.MISSING)
    if found.low is None or found.high is None:
        return Cell(written(found.value), "no interval")
    return Cell(written(found.value), span(written(found.low), written(found.high)))


def _percent(value: float) -> str:
    return units.percent(value, 1)
