"""Caveats below a table, each once, with whom it concerns."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping

from trainmark.record.caveats import Caveat


def caveat_notes(of: Mapping[str, Collection[Caveat]], without: Caveat | None = None) -> Iterator[str]:
    """A note for each caveat of any row.

    Args:
        of: the caveats by what the row is called.
        without: one that the table tells by itself.
    """
    for caveat in Caveat:
        rows = [row for row, caveats in of.items() if caveat in caveats]
        if rows and caveat != without:
            whom = "all" if len(rows) == len(of) else ", ".join(rows)
            yield f"{caveat.value} ({whom}): {caveat.meaning}."
