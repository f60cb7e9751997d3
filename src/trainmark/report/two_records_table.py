"""A table of the differences between two runs."""

from __future__ import annotations

from trainmark import units
from trainmark.analysis.two_records import TwoRecords
from trainmark.report.table import Cell, Field, Table, table_of, text_of, toned


def two_records_table(a: str, b: str, found: TwoRecords) -> Table:
    """Return the differences between ``a`` and ``b``, and which one is faster by how much."""
    return table_of(
        found.contrasts,
        (
            Field("what differs", toned("what", "strong")),
            Field("a", text_of("a")),
            Field("b", text_of("b")),
        ),
        title=f"a: {a}\nb: {b}",
        notes=(_conclusion(found),),
        answer=Cell(_pace(found)),
    )


def _pace(found: TwoRecords) -> str:
    if found.ratio is None:
        return "One of the runs has no finished epoch, so their speeds can't be compared."
    faster, ratio = ("b", found.ratio) if found.ratio >= 1 else ("a", 1 / found.ratio)
    return (
        f"{faster} trains {units.ratio(ratio)} as fast as the other (medians of all epochs "
        "but the first, if any)."
    )


def _conclusion(found: TwoRecords) -> str:
    if found.noise:
        return (
            "No known difference, and epochs within one run differ as much; measure several "
            "runs of each."
        )
    if found.contrasts:
        return (
            "Any of these may be the cause; change one at a time. With one run each, the "
            "noise is unknown."
        )
    return (
        "No known difference; measure several runs of each to see whether this is more than noise."
    )
