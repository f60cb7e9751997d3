"""Tables of which sides compute the same as the reference, what is wrong with the others, and of
free losses.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator

from trainmark import units
from trainmark.analysis.parity import Mistake, Parity, SideParity
from trainmark.record.checks import PARTS, CheckedPart
from trainmark.report.table import Cell, Field, Table, table_of

_WORDS: dict[CheckedPart, str] = {"order": "batch\norder"}
_NAMED = 3
"""Layers or weights that are named."""


def parity_tables(parity: Parity) -> list[Table]:
    """Return the table of sides, then the losses of the free training."""
    return [_sides(parity), *([_free(parity)] if any(side.losses for side in parity.sides) else [])]


def _sides(parity: Parity) -> Table:
    checked = [part for part in PARTS if any(part in side.shares for side in parity.sides)]
    steps = max(
        (sum(step.step is not None for step in side.steps) for side in parity.sides), default=0
    )
    return table_of(
        parity.sides,
        (
            Field("side", lambda side: Cell(side.title, tone="strong")),
            *(_part(part) for part in checked),
            Field(
                "verdict",
                lambda side: Cell("PASS", tone="good") if side.passed else Cell("FAIL", tone="bad"),
            ),
        ),
        title=f"{parity.workload}: the same computation as the reference?",
        conditions=(
            f"{parity.dataset}, {parity.precision}, seed {parity.seed}: "
            f"{units.many(steps, 'step')}, each from the "
            "reference's state, on the same batch, without dropout and distortions",
        ),
        notes=tuple(_notes(parity)),
        answer=_answer(parity),
    )


def _part(part: CheckedPart) -> Field[SideParity]:
    def share(side: SideParity) -> Cell:
        found = side.shares.get(part)
        if found is None:
            return Cell(units.MISSING)
        return Cell(
            "∞" if found == math.inf else f"{found:.2g}",
            tone="bad" if found > 1 else "plain",
            value=found,
        )

    return Field(
        _WORDS.get(part, part),
        share,
        "right",
        meaning="largest difference from the float64 reference, as a share of what rounding may "
        "cause (at most 1)",
    )


def _answer(parity: Parity) -> Cell:
    sides = units.many(len(parity.sides), "side")
    failed = sum(not side.passed for side in parity.sides)
    if failed:
        do = "does" if failed == 1 else "do"
        return Cell(
            f"FAIL: {failed} of {sides} {do} not compute the same as the reference.", tone="bad"
        )
    same = "computes" if len(parity.sides) == 1 else "compute"
    whole = all("update" in side.shares for side in parity.sides)
    return Cell(
        f"PASS: {sides} {same} the same as the "
        f"reference{'.' if whole else ', as far as checked; see the notes.'}",
        tone="good",
    )


def _notes(parity: Parity) -> Iterator[str]:
    for side in parity.sides:
        if side.mistake is not None:
            yield f"{side.title}: {mistake_text(side.mistake)}"
        if side.trouble is not None:
            yield f"{side.title}: {side.trouble}."
        if side.notes:
            yield f"{side.title}: {'; '.join(side.notes)}."
    near = max((side.near_kinks for side in parity.sides), default=0)
    if near:
        yield (
            f"{units.many(near, 'unit')} within rounding of a kink (a ReLU's 0, or two equal "
            "maxima). Their examples "
            "were replaced by others of the batch; with batch norm, or if most are affected, "
            "gradient bounds "
            "include them instead."
        )
    yield from parity.left_out


def mistake_text(mistake: Mistake) -> str:
    """Say which part is wrong, by how much, and what to look at."""
    check = mistake.check
    named = [name for name in mistake.names if name not in ("", mistake.part)]
    what = f": {', '.join(named[:_NAMED])}" if named else ""
    more = f" and {len(named) - _NAMED} more" if len(named) > _NAMED else ""
    when = "" if mistake.step is None else f" in step {mistake.step}"
    much = (
        "" if check.error == math.inf else f" (off by {check.error:.1e}, allowed {check.bound:.1e})"
    )
    part = _WORDS.get(mistake.part, mistake.part).replace("\n", " ")
    return f"wrong {part}{what}{more}{when}{much}. Look at {mistake.suspects}."


def _free(parity: Parity) -> Table:
    sides = [side for side in parity.sides if side.losses]
    last = max(len(side.losses) for side in sides)

    def loss(side: SideParity) -> Field[int]:
        return Field(
            side.title,
            lambda step: Cell(
                f"{side.losses[step]:.7g}" if step < len(side.losses) else units.MISSING
            ),
            "right",
        )

    return table_of(
        shown_steps(last),
        (
            Field("step", lambda step: Cell(units.count(step)), "right"),
            *(loss(side) for side in sides),
        ),
        title="Losses of a free training",
        notes=(
            "Not judged: rounding grows from step to step, and in a chaotic training without "
            "limit.",
        ),
    )


def shown_steps(steps: int) -> list[int]:
    """Return the first steps, ever sparser later ones, and the last."""
    sparse = itertools.takewhile(lambda step: step < steps, (0, *(2**power for power in range(64))))
    return sorted({*sparse, steps - 1})
