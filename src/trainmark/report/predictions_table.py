"""Tables of predictions: the confusion matrix, and the probabilities of one example."""

from __future__ import annotations

import math
from collections.abc import Sequence

from trainmark import units
from trainmark.analysis.predictions import Predictions, confusion
from trainmark.record.record import Record
from trainmark.report.table import Cell, Field, Table, TableRow, Tone, table_of


def confusion_table(
    found: Predictions, names: Sequence[str], side: str, record: Record, notes: Sequence[str]
) -> Table:
    """Return the confusion matrix, with true classes in rows and predicted ones in columns."""
    recorded = record.final.test_accuracy
    same = "as recorded" if recorded == found.accuracy else f"recorded: {units.percent(recorded)}"
    rows = []
    for label, counts in enumerate(confusion(found).tolist()):
        cells = [_count(count, right=predicted == label) for predicted, count in enumerate(counts)]
        recall = counts[label] / sum(counts) if sum(counts) else None
        rows.append(
            TableRow((Cell(names[label], tone="strong"), *cells, Cell(units.percent(recall))))
        )
    return Table(
        title=f"{record.workload.name}: {side}",
        conditions=tuple(f"{each[0].upper()}{each[1:]}." for each in notes),
        columns=(Field("true"), *(Field(name, align="right") for name in (*names, "recognised"))),
        rows=tuple(rows),
        notes=("Rows: true class; columns: predicted class.",),
        answer=Cell(
            f"Test accuracy {units.percent(found.accuracy)} ({same}), "
            f"loss {units.loss(found.loss)}, {units.many(len(found.labels), 'example')}."
        ),
    )


def _count(count: int, *, right: bool) -> Cell:
    """Return a cell of the confusion matrix; ``right`` on its diagonal."""
    tone: Tone = "bad" if count else "dim"
    return Cell(units.count(count) if count else "·", tone="good" if right else tone)


def probabilities_table(found: Predictions, names: Sequence[str], index: int) -> Table:
    """Return the probabilities of one example, the likeliest class first."""
    label = int(found.labels[index])
    predicted = int(found.predicted[index])
    verdict = "recognised" if predicted == label else f"mistaken for {names[predicted]}"

    def name(row: tuple[int, float]) -> Cell:
        is_true = row[0] == label
        return Cell(names[row[0]], "true class", "strong") if is_true else Cell(names[row[0]])

    return table_of(
        sorted(enumerate(found.probabilities[index].tolist()), key=lambda row: -row[1]),
        (
            Field("class", name),
            Field("probability", lambda row: units.percent(row[1]), "right"),
            Field("", lambda row: "█" * round(24 * row[1]) if math.isfinite(row[1]) else ""),
        ),
        title=f"test example {index:,}: {names[label]}, {verdict}",
    )
