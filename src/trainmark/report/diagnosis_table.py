"""Tables of the diagnosis of a run that did not learn: the cause, and the inspected steps."""

from __future__ import annotations

from trainmark import units
from trainmark.analysis.diagnosis import Diagnosis, Replay
from trainmark.record.inspection import StepInspection
from trainmark.report.table import Cell, Field, Table, table_of, text_of


def diagnosis_tables(
    title: str, diagnosis: Diagnosis, replay: Replay, notes: tuple[str, ...]
) -> list[Table]:
    """Return the table of the cause, then that of the inspected steps."""
    where = "" if diagnosis.where is None else f", first seen in: {diagnosis.where}"
    step = "" if diagnosis.step is None else f" at step {diagnosis.step:,} (counted from 0)"
    cause = Table(
        title=f"{title}: {diagnosis.cause}{step}{where}",
        notes=tuple(_sentence(each) for each in (*diagnosis.evidence, *notes)),
        answer=Cell(_sentence(diagnosis.do)),
    )
    return [cause, *([_steps(replay)] if replay.opened else [])]


def _sentence(words: str) -> str:
    return f"{words[0].upper()}{words[1:].removesuffix('.')}."


def _steps(replay: Replay) -> Table:
    return table_of(
        replay.opened,
        _FIELDS,
        title="Inspected steps",
        conditions=(
            "the backend, and the reference from the same weights on the same batch, without "
            "dropout or distortions",
        ),
    )


def _first_bad(opened: StepInspection) -> Cell:
    bad = opened.first_bad
    return Cell("none" if bad is None else bad.title, tone="plain" if bad is None else "bad")


def _largest_move(opened: StepInspection) -> str:
    moves = [move for move in opened.moved.values() if move is not None]
    return units.percent(max(moves), 3) if moves else units.MISSING


def _gap(opened: StepInspection) -> str:
    return units.MISSING if opened.gap is None else units.significant(opened.gap)


def _unchanged(opened: StepInspection) -> str:
    return ", ".join(opened.unchanged) or "none"


_FIELDS: tuple[Field[StepInspection], ...] = (
    Field("step", text_of("step", units.count), "right"),
    Field("loss", text_of("loss", units.loss), "right"),
    Field("reference\nloss", text_of("reference_loss", units.loss), "right"),
    Field("first non-finite\ntensor", _first_bad),
    Field("logit gap", _gap, "right"),
    Field("largest change\nof a weight", _largest_move, "right"),
    Field("unchanged\nweights", _unchanged, optional=True),
)
