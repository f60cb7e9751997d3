"""Which sides compute the same: a table of pairs, and the curves of those that differ."""

from __future__ import annotations

import itertools
from collections.abc import Iterator

from trainmark import units
from trainmark.analysis.parity import FLOOR_UNITS, Pair, Parity
from trainmark.report.table import Cell, Column, Row, Table

_AROUND = 2
"""Steps shown on either side of the one where two sides part."""
_WIDE = 0.01
"""A tolerance from which on only a gross mistake would show, as a share of the loss."""


def parity_tables(parity: Parity) -> list[Table]:
    """The pairs, then the losses of each pair that has a step to show and did not pass."""
    return [_pairs(parity), *(_curve(pair) for pair in parity.pairs if not pair.passed and pair.steps)]


def _pairs(parity: Parity) -> Table:
    return Table(
        title=f"{parity.workload}: do the losses agree?",
        conditions=(
            f"{parity.dataset}, {parity.precision}, {units.many(parity.steps, 'step')}, seed {parity.seed}: "
            "same initial weights, same batches, no dropout, no distortions",
        ),
        columns=(
            Column("a"),
            Column("b"),
            Column("steps", "right"),
            Column("largest\ndifference", "right"),
            Column("tolerance", "right"),
            Column("part at\nstep", "right"),
            Column("verdict"),
        ),
        rows=tuple(_row(pair) for pair in parity.pairs),
        notes=tuple(_notes(parity)),
    )


def _row(pair: Pair) -> Row:
    return Row(
        (
            Cell(pair.a, tone="strong"),
            Cell(pair.b, tone="strong"),
            Cell(units.count(pair.steps)),
            Cell(_small(pair.largest_difference)),
            Cell(_small(pair.tolerance)),
            Cell(units.count(pair.parts_at_step)),
            Cell("PASS", tone="good") if pair.passed else Cell("FAIL", tone="bad"),
        )
    )


def _notes(parity: Parity) -> Iterator[str]:
    for pair in parity.pairs:
        if pair.reason:
            yield f"{pair.a} and {pair.b}: {pair.reason}."
    yield from parity.left_out
    yield (
        f"tolerance: {parity.multiple:g} times the change of the losses up to that step when the initial weights "
        f"change by one unit in the last place ({parity.nudges} nudges each); at least {FLOOR_UNITS:g} units in the "
        "last place of a loss. It grows as training amplifies rounding. Shown for the step where the sides part, "
        "otherwise for the largest difference."
    )
    wide = [step for pair in parity.pairs if (step := _first_above(pair, _WIDE)) is not None]
    if wide:
        yield (
            f"From step {min(wide)} on, rounding alone may move these losses by {units.percent(_WIDE, 0)} or more, "
            "so the early steps decide."
        )


def _curve(pair: Pair) -> Table:
    return Table(
        title=f"{pair.a} against {pair.b}",
        conditions=(),
        columns=(
            Column("step", "right"),
            Column("loss of a", "right"),
            Column("loss of b", "right"),
            Column("difference", "right"),
            Column("tolerance", "right"),
            Column("difference /\ntolerance", "right"),
        ),
        rows=tuple(_step(pair, step) for step in steps_to_show(pair.steps, pair.parts_at_step)),
        notes=("Steps count from 0; differences are relative to the larger loss.",),
    )


def steps_to_show(steps: int, parts_at: int | None) -> list[int]:
    """The first, the last, those around the parting, and more and more rarely those after it."""
    start = parts_at or 0
    around = range(start - _AROUND, start + _AROUND + 1)
    later = itertools.takewhile(lambda step: step < steps, (start + _AROUND + 2**power for power in range(1, 64)))
    return sorted({step for step in (0, *around, *later, steps - 1) if 0 <= step < steps})


def _step(pair: Pair, step: int) -> Row:
    difference, tolerance = pair.differences[step], pair.tolerances[step]
    apart = difference > tolerance
    return Row(
        (
            Cell(units.count(step), tone="bad" if step == pair.parts_at_step else "plain"),
            Cell(f"{pair.losses_a[step]:.7g}"),
            Cell(f"{pair.losses_b[step]:.7g}"),
            Cell(_small(difference)),
            Cell(_small(tolerance)),
            Cell(units.ratio(difference / tolerance), tone="bad" if apart else "plain"),
        )
    )


def _first_above(pair: Pair, bar: float) -> int | None:
    return next((step for step, tolerance in enumerate(pair.tolerances) if tolerance > bar), None)


def _small(share: float | None) -> str:
    """A relative difference, ``3.1e-08``: its order of magnitude is what matters."""
    if share is None:
        return units.MISSING
    return f"{share:.1e}" if share else "0"
