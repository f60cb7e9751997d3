"""The speed of each contender next to the reference, its twin and the machine's peak.

Ratios and fractions are means of paired logarithms with a 95 % interval: each round's time is
divided by the time of the same round's reference, twin or peak.
"""

from __future__ import annotations

import math
import statistics
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from rounds import WARM_UPS, Outcome

from trainmark import units
from trainmark.analysis.statistics import Estimate, median, paired_difference
from trainmark.report.table import Cell, Field, Table, TableRow, span
from trainmark.workload.model import lay_out
from trainmark.workload.spec import Workload

LIMIT = "limit"
REFERENCES = ("Keras fit", "PyTorch DataLoader")
OURS = "trainmark "
TWINS = {
    f"{OURS}torch idiomatic": ("PyTorch DataLoader, per image", "PyTorch DataLoader"),
    f"{OURS}torch compiled": ("PyTorch torch.compile, per image", "PyTorch torch.compile"),
    f"{OURS}jax idiomatic": ("JAX jitted step",),
    f"{OURS}keras idiomatic": ("Keras fit",),
    f"{OURS}mxnet idiomatic": ("MXNet Module.fit",),
}
"""Peers with the same loop as a style of trainmark, of which the first that finished counts: the
style must not be slower."""

TOLERANCE = 0.03
"""Largest slowdown next to its twin that still counts as equally fast."""

ACCURACY_MARGIN = 0.02


@dataclass(frozen=True)
class RacePlan:
    """The work of every contender in one turn.

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
        """Steps of one turn."""
        return len(self.workload.batches.sizes(self.examples)) * self.epochs_a_turn

    @property
    def examples_a_turn(self) -> int:
        """Examples of one turn, each counted as often as it is trained on."""
        return sum(self.workload.batches.sizes(self.examples)) * self.epochs_a_turn

    @property
    def flops_a_turn(self) -> int:
        """FLOPs of matrix products and convolutions."""
        return lay_out(self.workload).training_flops * self.examples_a_turn


@dataclass(frozen=True)
class Ranked:
    """One contender's numbers.

    Args:
        ratio: reference seconds / these seconds; None without a reference.
        twin: the peer that writes the same loop; None without one.
        twin_ratio: its seconds / these seconds.
        fraction: of the machine's peak; None without a measured peak.
        learns: its accuracy reaches :func:`least_accuracy`; None without one.
    """

    name: str
    seconds: float
    ratio: Estimate | None
    twin: str | None
    twin_ratio: Estimate | None
    fraction: Estimate | None
    test_accuracy: float | None
    learns: bool | None


def reference_of(seconds: Mapping[str, Sequence[float]]) -> str | None:
    """The faster of the two loops that most people write; None if both were left out."""
    present = [name for name in REFERENCES if name in seconds]
    return min(present, key=lambda name: median(seconds[name]) or math.inf, default=None)


def ranked(plan: RacePlan, outcome: Outcome) -> list[Ranked]:
    """All contenders that finished, fastest first."""
    reference = reference_of(outcome.seconds)
    least = least_accuracy(outcome.test_accuracy, reference, plan.test_examples)
    ideal = [plan.flops_a_turn / fact["flops_per_second"] for fact in outcome.facts.get(LIMIT, [])]
    found = []
    for name, seconds in outcome.seconds.items():
        if name == LIMIT:
            continue
        twin = next((peer for peer in TWINS.get(name, ()) if peer in outcome.seconds), None)
        accuracy = outcome.test_accuracy.get(name)
        found.append(
            Ranked(
                name,
                median(seconds) or math.nan,
                paired_ratio(outcome.seconds[reference], seconds) if reference else None,
                twin,
                paired_ratio(outcome.seconds[twin], seconds) if twin else None,
                paired_ratio(ideal, seconds) if ideal else None,
                accuracy,
                None if least is None or accuracy is None else accuracy >= least,
            )
        )
    return sorted(found, key=lambda contender: contender.seconds)


def paired_ratio(theirs: Sequence[float], these: Sequence[float]) -> Estimate:
    """Their seconds / these seconds, paired round by round."""
    return paired_difference(
        [math.log(a / b) for a, b in zip(theirs, these, strict=True)]
    ).exponential()


def least_accuracy(
    accuracies: Mapping[str, float], reference: str | None, examples: int
) -> float | None:
    """The accuracy below which a contender learns something else than the reference; None without
    one.

    It is 2 points below the reference's; or 3 standard errors, where the test set is small; or 3
    standard deviations of the peers among each other, where the run is so short that accuracy still
    depends on the first weights.
    """
    if reference is None or reference not in accuracies:
        return None
    expected = accuracies[reference]
    chance = math.sqrt(2 * expected * (1 - expected) / examples)
    peers = [accuracy for name, accuracy in accuracies.items() if not name.startswith(OURS)]
    seeds = statistics.stdev(peers) if len(peers) > 1 else 0.0
    return expected - max(ACCURACY_MARGIN, 3 * chance, 3 * seeds)


def table(plan: RacePlan, outcome: Outcome, conditions: Sequence[str]) -> Table:
    """All contenders of one workload."""
    reference = reference_of(outcome.seconds)
    rows = ranked(plan, outcome)
    titles = (
        "samples/s",
        "against the reference",
        "against the same loop",
        "test accuracy",
        "of the peak",
        "a step",
    )
    return Table(
        plan.workload.name,
        (*conditions, *_conditions(plan, outcome)),
        (Field("contender"), *(Field(title, align="right") for title in titles)),
        tuple(_row(plan, row, row.name == reference) for row in rows),
        (
            *verdicts(rows),
            *(f"left out: {name}: {reason}" for name, reason in outcome.left_out.items()),
        ),
    )


def verdicts(rows: Sequence[Ranked]) -> list[str]:
    """Whether each style is as fast as the peer that writes the same loop."""
    return [
        _verdict(row.name, row.twin, row.twin_ratio) for row in rows if row.twin and row.twin_ratio
    ]


def _verdict(name: str, twin: str, ratio: Estimate) -> str:
    if ratio.low is None or ratio.high is None:
        return f"not decided: {name} and {twin}: no interval"
    said = f"{name} has {units.ratio(ratio.value)} the speed of {twin}, "
    said += span(units.ratio(ratio.low), units.ratio(ratio.high))
    if ratio.low >= 1 - TOLERANCE:
        return f"not slower: {said}"
    return f"SLOWER: {said}" if ratio.high < 1 - TOLERANCE else f"not decided: {said}"


def _conditions(plan: RacePlan, outcome: Outcome) -> list[str]:
    reference = reference_of(outcome.seconds)
    rounds = max((len(seconds) for seconds in outcome.seconds.values()), default=0)
    said = [
        f"a turn is {units.many(plan.epochs_a_turn, 'epoch')} of {plan.examples:,} examples, "
        f"{units.many(plan.steps, 'step')} of {plan.batch:,}; {units.many(rounds, 'round')} "
        "after "
        f"{WARM_UPS} to warm up; accuracy on {plan.test_examples:,} test images",
        f"reference: {reference or 'none, both were left out'}",
    ]
    facts = outcome.facts.get(LIMIT)
    if facts:
        flops = [fact["flops_per_second"] for fact in facts]
        copied = [fact["bytes_per_second"] for fact in facts]
        said.append(
            "peak of matrix products in the same rounds: median "
            f"{(median(flops) or math.nan) / 1e9:,.0f}, best "
            f"{max(flops) / 1e9:,.0f} GFLOP/s ({facts[-1]['product']}); copy: median "
            f"{(median(copied) or math.nan) / 1e9:.1f}, best {max(copied) / 1e9:.1f} GB/s "
            f"({facts[-1]['copy']})"
        )
    return said


def _row(plan: RacePlan, row: Ranked, is_reference: bool) -> TableRow:
    return TableRow(
        (
            Cell(
                row.name,
                "the reference" if is_reference else "",
                "strong" if row.name.startswith(OURS) else "plain",
            ),
            Cell(f"{plan.examples_a_turn / row.seconds:,.0f}"),
            Cell("1") if is_reference else _interval(row.ratio, units.ratio),
            _interval(row.twin_ratio, units.ratio),
            Cell(
                units.percent(row.test_accuracy),
                "LOWER than the reference's" if row.learns is False else "",
            ),
            _interval(row.fraction, _percent),
            Cell(units.seconds(row.seconds / plan.steps)),
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
