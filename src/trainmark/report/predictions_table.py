"""What a network said of the test set: how often it was right, and what it took for what."""

from __future__ import annotations

import math
from collections.abc import Sequence

from trainmark import units
from trainmark.analysis.predictions import Predictions, confusion
from trainmark.report.table import Cell, Column, Row, Scalar, Table, Tone


def confusion_table(title: str, conditions: tuple[str, ...], found: Predictions, names: Sequence[str]) -> Table:
    """True classes in rows, what they were taken for in columns."""
    counts = confusion(found)
    rows = []
    for label, line in enumerate(counts):
        total = int(line.sum())
        share = line[label] / total if total else None
        cells = [
            Cell(units.count(count) if count else "·", tone=_tone(label == taken, count), value=float(count))
            for taken, count in enumerate(line)
        ]
        data: dict[str, Scalar] = {
            "true": names[label],
            **{f"taken_for_{names[taken]}": int(count) for taken, count in enumerate(line)},
        }
        rows.append(
            Row((Cell(names[label], tone="strong"), *cells, Cell(units.percent(share), value=share)), data=data)
        )
    return Table(
        title=title,
        conditions=conditions,
        columns=(Column("true"), *(Column(name, "right") for name in names), Column("recognised", "right")),
        rows=tuple(rows),
        notes=("Rows: what it is; columns: what it was taken for.",),
    )


def probabilities_table(title: str, probabilities: Sequence[float], names: Sequence[str], label: int) -> Table:
    """Of one example, the likeliest class first."""
    order = sorted(range(len(names)), key=lambda each: -probabilities[each])
    return Table(
        title=title,
        conditions=(),
        columns=(Column("class"), Column("probability", "right"), Column("")),
        rows=tuple(
            Row(
                (
                    Cell(names[each], "the true one" if each == label else "", "strong" if each == label else "plain"),
                    Cell(units.percent(probabilities[each])),
                    Cell("█" * round(24 * probabilities[each]) if math.isfinite(probabilities[each]) else ""),
                ),
                data={"class": names[each], "probability": probabilities[each], "true": each == label},
            )
            for each in order
        ),
    )


def _tone(right: bool, count: int) -> Tone:
    return "good" if right else "bad" if count else "dim"
