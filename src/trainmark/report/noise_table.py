"""A table of the smallest differences that a machine can detect."""

from __future__ import annotations

from collections.abc import Iterator

from trainmark import units
from trainmark.analysis.noise import Noise
from trainmark.record.caveats import EXTERNAL_SHARE
from trainmark.report.table import Cell, Field, Table, interval, table_of


def noise_table(found: Noise) -> Table:
    """Return the smallest detectable differences by measuring time, and the sources of noise."""
    threads = "default threads" if found.threads is None else units.many(found.threads, "thread")
    return table_of(
        found.smallest,
        (
            Field("measuring for", lambda each: Cell(units.seconds(each.seconds), tone="strong")),
            Field("smallest difference", lambda each: _percent(each.difference), "right"),
        ),
        title=f"{found.workload}: {found.side}, compared with itself",
        conditions=(
            f"{found.machine} · {threads}",
            f"{units.many(found.rounds, 'round')} of {units.seconds(found.round_seconds)}, "
            f"{units.many(found.blocks, 'block')}, {found.disturbed} of them excluded",
        ),
        notes=tuple(_notes(found)),
        answer=Cell(_answer(found)),
    )


def _answer(found: Noise) -> str:
    least = found.smallest[0].difference
    if least is None:
        return "Too few undisturbed rounds to tell how small a difference this machine can detect."
    if found.withheld:
        return "Other programs disturb this machine too much for a verdict; use fewer --threads, or try again later."
    return f"A one-minute comparison detects differences of {_percent(least)} or more here, in 4 of 5 tries."


def _notes(found: Noise) -> Iterator[str]:
    ratio = f"{units.ratio(found.ratio.value)}{interval(found.ratio.low, found.ratio.high)}"
    yield f"The ratio of the two equal sides is {ratio}: {found.verdict}."
    if found.between_processes is not None and found.between_blocks is not None:
        yield (
            f"Standard deviation between pairs of processes: {_percent(found.between_processes)}; between blocks of "
            f"the same processes: {_percent(found.between_blocks)}."
        )
    yield (
        f"Other programs took {_percent(found.others)} of the cores' time, the virtual machine's host "
        f"{_percent(found.stolen)}. Excluded: blocks in which both together took more than {_percent(EXTERNAL_SHARE)}."
    )


def _percent(share: float | None) -> str:
    return units.MISSING if share is None else f"{100 * share:.2g} %"
