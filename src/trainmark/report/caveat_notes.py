"""Notes below a table: each caveat once, with the rows it concerns."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping

from trainmark.record.caveats import Caveat


def caveat_notes(
    of: Mapping[str, Collection[Caveat]], without: Caveat | None = None
) -> Iterator[str]:
    """Yield a note for each caveat of any row.

    Args:
        of: the caveats, by row name.
        without: a caveat to omit because the table already shows it.
    """
    for caveat in Caveat:
        rows = [row for row, caveats in of.items() if caveat in caveats]
        if rows and caveat != without:
            whom = "all" if len(rows) == len(of) else ", ".join(rows)
            yield f"{caveat.value} ({whom}): {caveat.meaning}."
