"""What is wrong with a run that did not learn: the cause in words, and the steps that were opened up."""

from __future__ import annotations

from trainmark import units
from trainmark.analysis.diagnosis import Diagnosis, Replay
from trainmark.record.inspection import StepInspection
from trainmark.report.table import Cell, Column, Row, Table


def diagnosis_tables(title: str, diagnosis: Diagnosis, replay: Replay, notes: tuple[str, ...]) -> list[Table]:
    """The cause first, then what was seen at each step that was opened."""
    where = "" if diagnosis.where is None else f", first seen in: {diagnosis.where}"
    step = "" if diagnosis.step is None else f" at step {diagnosis.step:,} (counted from 0)"
    cause = Table(
        title=f"{title}: {diagnosis.cause}{step}{where}",
        conditions=(),
        columns=(),
        rows=(),
        notes=tuple(_sentence(each) for each in (*diagnosis.evidence, diagnosis.do, *notes)),
    )
    return [cause, *([_steps(replay)] if replay.opened else [])]


def _sentence(words: str) -> str:
    return f"{words[0].upper()}{words[1:].removesuffix('.')}."


def _steps(replay: Replay) -> Table:
    return Table(
        title="The inspected steps",
        conditions=(
            "the backend, and the reference from the same weights on the same batch, without dropout or distortions",
        ),
        columns=(
            Column("step", "right"),
            Column("loss", "right"),
            Column("loss of the\nreference", "right"),
            Column("first tensor that\nis not finite"),
            Column("logit gap", "right"),
            Column("largest move\nof a weight", "right"),
            Column("weights that\ndid not move", optional=True),
        ),
        rows=tuple(_step(opened) for opened in replay.opened),
    )


def _step(opened: StepInspection) -> Row:
    bad = opened.first_bad
    moves = [move for move in opened.moved.values() if move is not None]
    return Row(
        (
            Cell(units.count(opened.step)),
            Cell(units.loss(opened.loss)),
            Cell(units.loss(opened.reference_loss)),
            Cell("none" if bad is None else bad.title, tone="plain" if bad is None else "bad"),
            Cell(units.MISSING if opened.gap is None else units.significant(opened.gap)),
            Cell(units.percent(max(moves), 3) if moves else units.MISSING),
            Cell(", ".join(opened.unchanged) or "none"),
        )
    )
