"""Tables of which sides compute the same losses, and of the losses of those that differ."""

from __future__ import annotations

import dataclasses
import itertools
from collections.abc import Iterator

from trainmark import units
from trainmark.analysis.parity import FLOOR_UNITS, Pair, Parity
from trainmark.report.table import Cell, Field, Table, table_of

_AROUND = 2
"""Steps shown before and after the one from which two sides differ."""
_WIDE = 0.01
"""Tolerance from which on only gross mistakes are detectable, as a share of the loss."""


def parity_tables(parity: Parity) -> list[Table]:
    """Return the table of pairs, then the losses of each pair that failed and has steps to show."""
    return [_pairs(parity), *(_curve(pair) for pair in parity.pairs if not pair.passed and pair.steps)]


def _pairs(parity: Parity) -> Table:
    tolerance = (
        f"{parity.multiple:g} times the change of the losses up to that step when the initial weights change by one "
        f"unit in the last place ({parity.nudges} nudges each); at least {FLOOR_UNITS:g} units in the last place of a "
        "loss. It grows as training amplifies rounding. Shown for the step from which the sides differ, else for the "
        "largest difference."
    )
    return table_of(
        parity.pairs,
        [dataclasses.replace(each, meaning=tolerance) if each.title == "tolerance" else each for each in _PAIR],
        title=f"{parity.workload}: do the losses agree?",
        conditions=(
            f"{parity.dataset}, {parity.precision}, {units.many(parity.steps, 'step')}, seed {parity.seed}: "
            "same initial weights, same batches, no dropout, no distortions",
        ),
        notes=tuple(_notes(parity)),
        answer=_answer(parity),
    )


def _answer(parity: Parity) -> Cell:
    pairs, failed = len(parity.pairs), sum(not pair.passed for pair in parity.pairs)
    if failed:
        return Cell(f"FAIL: the losses of {failed} of {units.many(pairs, 'pair')} do not agree.", tone="bad")
    return Cell(f"PASS: the losses of {units.many(pairs, 'pair')} agree within rounding.", tone="good")


def _notes(parity: Parity) -> Iterator[str]:
    for pair in parity.pairs:
        if pair.reason:
            yield f"{pair.a} and {pair.b}: {pair.reason}."
    yield from parity.left_out
    wide = [step for pair in parity.pairs for step, tolerance in enumerate(pair.tolerances) if tolerance > _WIDE]
    if wide:
        yield (
            f"From step {min(wide)} on, rounding alone may move these losses by {units.percent(_WIDE, 0)} or more, "
            "so the early steps decide."
        )


def _curve(pair: Pair) -> Table:
    def step(step: int) -> Cell:
        return Cell(units.count(step), tone="bad" if step == pair.parts_at_step else "plain")

    def share(step: int) -> Cell:
        difference, tolerance = pair.differences[step], pair.tolerances[step]
        return Cell(units.ratio(difference / tolerance), tone="bad" if difference > tolerance else "plain")

    return table_of(
        steps_to_show(pair.steps, pair.parts_at_step),
        (
            Field("step", step, "right"),
            Field("loss of a", lambda step: f"{pair.losses_a[step]:.7g}", "right"),
            Field("loss of b", lambda step: f"{pair.losses_b[step]:.7g}", "right"),
            Field("difference", lambda step: _small(pair.differences[step]), "right"),
            Field("tolerance", lambda step: _small(pair.tolerances[step]), "right"),
            Field("difference /\ntolerance", share, "right"),
        ),
        title=f"{pair.a} against {pair.b}",
        notes=("Steps count from 0; differences are relative to the larger loss.",),
    )


def steps_to_show(steps: int, parts_at: int | None) -> list[int]:
    """Return the first and last step, those around ``parts_at``, and ever sparser ones after it."""
    start = parts_at or 0
    around = range(start - _AROUND, start + _AROUND + 1)
    later = itertools.takewhile(lambda step: step < steps, (start + _AROUND + 2**power for power in range(1, 64)))
    return sorted({step for step in (0, *around, *later, steps - 1) if 0 <= step < steps})


def _small(share: float | None) -> str:
    """Format a relative difference as ``3.1e-08``; only its order of magnitude matters."""
    if share is None:
        return units.MISSING
    return f"{share:.1e}" if share else "0"


_PAIR: tuple[Field[Pair], ...] = (
    Field("a", lambda pair: Cell(pair.a, tone="strong")),
    Field("b", lambda pair: Cell(pair.b, tone="strong")),
    Field("steps", lambda pair: units.count(pair.steps), "right"),
    Field("largest\ndifference", lambda pair: _small(pair.largest_difference), "right"),
    Field("tolerance", lambda pair: _small(pair.tolerance), "right"),
    Field("differ from\nstep", lambda pair: units.count(pair.parts_at_step), "right"),
    Field("verdict", lambda pair: Cell("PASS", tone="good") if pair.passed else Cell("FAIL", tone="bad")),
)
