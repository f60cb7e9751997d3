"""Tables of which sides compute the same as the reference, and of the losses of a free training."""

from __future__ import annotations

import math
from collections.abc import Iterator

from trainmark import units
from trainmark.analysis.parity import Mistake, Parity, SideParity
from trainmark.record.checks import PARTS, CheckedPart
from trainmark.report.table import Cell, Field, Table, table_of, toned

_WORDS: dict[CheckedPart, str] = {"order": "batch\norder"}
_NAMED = 3
"""Layers or weights that are named."""


def parity_tables(parity: Parity) -> list[Table]:
    """Return the table of sides, then the losses of the free training."""
    tables = [_sides(parity)]
    if any(side.losses for side in parity.sides):
        tables.append(_free(parity))
    return tables


def _sides(parity: Parity) -> Table:
    checked = [part for part in PARTS if any(part in side.shares for side in parity.sides)]
    counts = (sum(step.step is not None for step in side.steps) for side in parity.sides)
    steps = max(counts, default=0)
    return table_of(
        parity.sides,
        (
            Field("side", toned("title", "strong")),
            *(_part(part) for part in checked),
            Field("verdict", _verdict),
        ),
        title=f"{parity.workload}: the same computation as the reference?",
        conditions=(
            f"{parity.dataset}, {parity.precision}, seed {parity.seed}: "
            f"{units.many(steps, 'step')}, each from the reference's state, on the same batch, "
            "without dropout and distortions",
        ),
        notes=tuple(_notes(parity)),
        answer=_answer(parity),
    )


def _part(part: CheckedPart) -> Field[SideParity]:
    def share(side: SideParity) -> Cell:
        found = side.shares.get(part)
        if found is None:
            return Cell(units.MISSING)
        words = "∞" if found == math.inf else f"{found:.2g}"
        return Cell(words, tone="bad" if found > 1 else "plain", value=found)

    return Field(
        _WORDS.get(part, part),
        share,
        "right",
        meaning="largest difference from the float64 reference, as a share of what rounding may "
        "cause (at most 1)",
    )


def _verdict(side: SideParity) -> Cell:
    return Cell("PASS", tone="good") if side.passed else Cell("FAIL", tone="bad")


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
    end = "." if whole else ", as far as checked; see the notes."
    return Cell(f"PASS: {sides} {same} the same as the reference{end}", tone="good")


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
            "maxima). Their examples were replaced by others of the batch; with batch norm, or "
            "if most are affected, gradient bounds include them instead."
        )
    yield from parity.left_out


def mistake_text(mistake: Mistake) -> str:
    """Name the part that is wrong, by how much, and what to look at."""
    check = mistake.check
    named = [name for name in mistake.names if name not in ("", mistake.part)]
    what = f": {', '.join(named[:_NAMED])}" if named else ""
    more = f" and {len(named) - _NAMED} more" if len(named) > _NAMED else ""
    when = "" if mistake.step is None else f" in step {mistake.step}"
    much = ""
    if check.error != math.inf:
        much = f" (off by {check.error:.1e}, allowed {check.bound:.1e})"
    part = _WORDS.get(mistake.part, mistake.part).replace("\n", " ")
    return f"wrong {part}{what}{more}{when}{much}. Look at {mistake.suspects}."


def _free(parity: Parity) -> Table:
    sides = [side for side in parity.sides if side.losses]
    last = max(len(side.losses) for side in sides)

    return table_of(
        shown_steps(last),
        (Field("step", units.count, "right"), *(_losses_of(side) for side in sides)),
        title="Losses of a free training",
        notes=(
            "Not judged: rounding grows from step to step, and in a chaotic training without "
            "limit.",
        ),
    )


def _losses_of(side: SideParity) -> Field[int]:
    def loss(step: int) -> str:
        return f"{side.losses[step]:.7g}" if step < len(side.losses) else units.MISSING

    return Field(side.title, loss, "right")


def shown_steps(steps: int) -> list[int]:
    """Return the first steps, ever sparser later ones, and the last."""
    shown = {0, steps - 1}
    step = 1
    while step < steps:
        shown.add(step)
        step *= 2
    return sorted(shown)
