"""How small a difference a machine can show, in words and as a table."""

from __future__ import annotations

from collections.abc import Iterator

from trainmark import units
from trainmark.analysis.noise import Noise
from trainmark.record.caveats import EXTERNAL_SHARE
from trainmark.report.table import Cell, Field, Table, interval, table_of


def noise_table(found: Noise) -> Table:
    """The smallest differences by the time that is spent, and what they come from."""
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
            f"{units.many(found.blocks, 'block')}, {found.disturbed} of them left out",
        ),
        notes=tuple(_notes(found)),
        answer=Cell(_answer(found)),
    )


def _answer(found: Noise) -> str:
    least = found.smallest[0].difference
    if least is None:
        return "There were too few undisturbed rounds to tell how small a difference this machine can show."
    if found.withheld:
        return "Others disturb this machine too much for a verdict; try fewer --threads, or another time."
    return f"A comparison of one minute finds differences of {_percent(least)} or more here, in 4 of 5 tries."


def _notes(found: Noise) -> Iterator[str]:
    ratio = f"{units.ratio(found.ratio.value)}{interval(found.ratio.low, found.ratio.high)}"
    yield f"The ratio of the two equal sides is {ratio}: {found.verdict}."
    if found.between_processes is not None and found.between_blocks is not None:
        yield (
            f"Standard deviation between pairs of processes: {_percent(found.between_processes)}; between blocks of "
            f"the same processes: {_percent(found.between_blocks)}."
        )
    yield (
        f"Others took {_percent(found.others)} of the cores' time, the host of this virtual machine "
        f"{_percent(found.stolen)}. Left out: blocks in which both together took more than {_percent(EXTERNAL_SHARE)}."
    )


def _percent(share: float | None) -> str:
    return units.MISSING if share is None else f"{100 * share:.2g} %"
