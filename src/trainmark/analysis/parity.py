"""Decide whether a side computes the same as the reference, and if not, which part is wrong."""

from __future__ import annotations

import itertools
import statistics
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from operator import attrgetter

from trainmark.record.checks import PARTS, Check, CheckedPart, StepChecks

SUSPECTS: dict[CheckedPart, str] = {
    "input": "the scale of the pixels, standardisation, the crop, the order of channels",
    "forward": "a transposed kernel, padding on the other side, a missing bias, the layer's "
    "constants",
    "loss": "sum instead of mean, clipping, the L2 terms",
    "gradient": "sum instead of mean over the batch, the gradient of L2 terms, a part without a "
    "gradient",
    "update": "the learning rate, weight decay, the form of momentum, epsilon inside the root, "
    "bias correction",
    "state": "the form of momentum, decay of moments, the weight average, running averages, "
    "state kept between steps",
    "order": "a batch taken twice or left out, another order, the smaller batch at the end of an "
    "epoch",
    "dropout": "the share that is dropped, the scale of the rest, dropout that is off in training",
}
SUSPECTS_OF_LAYERS = {
    "attention": "the scale of the scores, the causal mask, the order of queries, keys, values "
    "and heads",
    "layer-norm": "epsilon, the axis, a missing or extra shift",
    "batch-norm": "epsilon, batch statistics instead of running averages",
    "gelu": "the tanh approximation instead of the exact form",
    "tied-head": "a separate table instead of the shared one",
    "position-embedding": "the order of positions",
}
"""What to look at, by the kind of the first layer whose output is wrong."""
_VECTORS = (".bias", ".scale", ".shift")
"""Ends of the names of weights that weight decay often leaves out."""
_SEEN = 1e-4
"""Smallest distance from 1 of a factor that is worth reporting."""
_SAME_FACTOR = 0.1
"""Largest difference of the factors of one cause, as a share of their distance from 1."""


@dataclass(frozen=True)
class Mistake:
    """The first part of a side that is wrong; later parts inherit its mistake.

    Args:
        part: which part.
        names: layers or weights of that part that are wrong, in order of computation.
        step: the first step in which it is wrong; None if it belongs to no single step.
        check: the check that exceeds its bound most.
        suspects: what to look at.
    """

    part: CheckedPart
    names: tuple[str, ...]
    step: int | None
    check: Check
    suspects: str


@dataclass(frozen=True)
class SideParity:
    """One side next to the reference.

    Args:
        title: title for the user.
        passed: whether it finished, and agrees with the reference in everything that was checked.
        mistake: what is wrong with it, if anything.
        shares: the largest error of each part, as a share of its bound.
        near_kinks: units within rounding of a kink, in all steps.
        notes: what was not checked, in sentences without a full stop.
        trouble: why its process ended early; None if it did not.
        losses: losses of a free training, which is shown but not judged.
        steps: the checks of every step.
    """

    title: str
    passed: bool
    mistake: Mistake | None
    shares: Mapping[CheckedPart, float]
    near_kinks: int
    notes: tuple[str, ...]
    trouble: str | None
    losses: tuple[float, ...]
    steps: tuple[StepChecks, ...]


def judge(
    title: str,
    steps: Sequence[StepChecks],
    notes: Sequence[str] = (),
    losses: Sequence[float] = (),
    trouble: str | None = None,
) -> SideParity:
    """Find out what is wrong with a side; the arguments are the fields of :class:`SideParity`."""
    shares: dict[CheckedPart, float] = {}
    for step in steps:
        for check in step.checks:
            shares[check.part] = max(check.share, shares.get(check.part, 0.0))
    mistake = _mistake(steps)
    near = sum(step.near_kinks for step in steps)
    passed = mistake is None and trouble is None
    return SideParity(
        title, passed, mistake, shares, near, tuple(notes), trouble, tuple(losses), tuple(steps)
    )


def _mistake(steps: Sequence[StepChecks]) -> Mistake | None:
    wrong: list[tuple[int | None, Check]] = []
    for step in steps:
        wrong += [(step.step, check) for check in step.checks if check.share > 1]
    if not wrong:
        return None
    part = min((check.part for _, check in wrong), key=PARTS.index)
    of_part = [(step, check) for step, check in wrong if check.part == part]
    first = of_part[0][0]
    names = tuple(dict.fromkeys(check.name for step, check in of_part if step == first))
    checks = [check for _, check in of_part]
    worst = max(checks, key=attrgetter("share"))
    return Mistake(part, names, first, worst, _suspects(part, checks))


@dataclass(frozen=True)
class PairParity:
    """Two sides; they agree if each agrees with the reference."""

    a: str
    b: str
    passed: bool


@dataclass(frozen=True)
class Parity:
    """All sides, and their conditions; its field names are the keys of ``trainmark parity --json``.

    ``left_out`` has a sentence for each requested side that could not take part.
    """

    workload: str
    dataset: str
    precision: str
    seed: int
    sides: tuple[SideParity, ...]
    pairs: tuple[PairParity, ...]
    left_out: tuple[str, ...] = ()

    @property
    def passed(self) -> bool:
        """Whether every side passed."""
        return all(side.passed for side in self.sides)


def pairs_of(sides: Sequence[SideParity]) -> tuple[PairParity, ...]:
    """Return the verdict of every pair of sides."""
    return tuple(
        PairParity(a.title, b.title, a.passed and b.passed)
        for a, b in itertools.combinations(sides, 2)
    )


def _suspects(part: CheckedPart, wrong: Sequence[Check]) -> str:
    """Return what to look at, from what the wrong checks have in common."""
    factors = [check.factor for check in wrong if check.factor is not None]
    if part in ("input", "loss", "gradient", "update", "dropout") and factors:
        middle = statistics.median(factors)
        alike = all(abs(factor - middle) <= _SAME_FACTOR * abs(middle - 1) for factor in factors)
        if alike and abs(middle - 1) > _SEEN:
            what = {
                "input": "divisor of the pixels",
                "update": "learning rate",
                "dropout": "scale of dropout",
            }
            times = f"the values are {middle:.6g} times the reference's"
            if part in what:
                return f"the {what[part]}: {times}"
            return f"the scale: {times}; or {SUSPECTS[part]}"
    if part in ("update", "state") and all(check.name.endswith(_VECTORS) for check in wrong):
        return "weight decay of biases and scales: only they are wrong"
    if part == "forward":
        layer = wrong[0].name.rstrip("0123456789")
        return SUSPECTS_OF_LAYERS.get(layer, SUSPECTS[part])
    return SUSPECTS[part]
