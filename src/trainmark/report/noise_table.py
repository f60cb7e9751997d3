"""A table of the smallest differences that a machine can detect."""

from __future__ import annotations

import math
from collections.abc import Iterator

from trainmark import units
from trainmark.analysis.noise import Noise, Smallest
from trainmark.analysis.statistics import FEWEST_FOR_INTERVAL
from trainmark.record.caveats import EXTERNAL_SHARE
from trainmark.report.table import Cell, Field, Table, interval, table_of, text_of

_TIMES = {60.0: "a minute", 600.0: "ten minutes", 3600.0: "an hour"}


def noise_table(found: Noise) -> Table:
    """Return the smallest detectable differences by measuring time, and the sources of noise."""
    return table_of(
        found.smallest,
        (
            Field("measuring for", lambda each: Cell(_TIMES[each.seconds], tone="strong")),
            Field("rounds", text_of("rounds", "{:,}".format), "right"),
            Field("smallest difference", text_of("difference", _percent), "right"),
        ),
        title=f"{found.workload} compared with itself",
        conditions=(_conditions(found),),
        notes=tuple(_notes(found)),
        answer=Cell(_answer(found)),
    )


def _conditions(found: Noise) -> str:
    """Return everything that a publication has to state, on one line."""
    cores = units.MISSING if found.cores is None else units.many(found.cores, "usable core")
    threads = "default threads" if found.threads is None else units.many(found.threads, "thread")
    measured = [found.workload, found.side]
    if found.python:
        measured.append(f"Python {found.python}")
    if found.trainmark:
        measured.append(f"trainmark {found.trainmark}")
    return " · ".join(
        (
            f"{found.machine}, {cores}, {threads}",
            ", ".join(measured),
            found.date,
            f"{units.many(found.rounds, 'round')} in {units.seconds(found.seconds)}, "
            f"{units.many(found.blocks, 'block')}, {found.disturbed} excluded",
        )
    )


def _answer(found: Noise) -> str:
    if found.withheld:
        return (
            "Other programs disturb this machine too much for a verdict; use fewer --threads, "
            "or try again later."
        )
    if found.kept < FEWEST_FOR_INTERVAL:
        return _too_few(found)
    minute = found.smallest[0]
    known = next((each for each in found.smallest if each.difference is not None), None)
    if known is minute:
        return _detects(known)
    held = _rounds(minute.rounds, found)
    answer = f"A minute holds only {held}, fewer than the {FEWEST_FOR_INTERVAL} for an interval"
    return f"{answer}." if known is None else f"{answer}. {_detects(known)}"


def _detects(smallest: Smallest) -> str:
    detected = f"differences of {_percent(smallest.difference)} or more here, in 4 of 5 tries"
    return f"A comparison of {_TIMES[smallest.seconds]} detects {detected}."


def _too_few(found: Noise) -> str:
    """Explain why there are too few rounds, and what to do."""
    needed = math.ceil(FEWEST_FOR_INTERVAL * found.round_seconds / 10) * 10
    fix = "try again later" if found.kept < found.rounds else f"use --budget {needed} or more"
    held = f"{units.seconds(found.seconds)} held only {_rounds(found.kept, found)}"
    return f"{held}, too few to tell how small a difference this machine can detect; {fix}."


def _rounds(number: int, found: Noise) -> str:
    return units.many(number, "undisturbed round" if found.kept < found.rounds else "round")


def _notes(found: Noise) -> Iterator[str]:
    ratio = f"{units.ratio(found.ratio.value)}{interval(found.ratio.low, found.ratio.high)}"
    yield f"The ratio of the two equal sides is {ratio}: {found.verdict}."
    if found.between_processes is not None and found.between_blocks is not None:
        yield (
            "Standard deviation between pairs of processes: "
            f"{_percent(found.between_processes)}; between blocks of the same processes: "
            f"{_percent(found.between_blocks)}."
        )
    yield (
        f"Other programs took {_percent(found.others)} of the cores' time, the virtual machine's "
        f"host {_percent(found.stolen)}. Excluded: blocks in which both together took more than "
        f"{_percent(EXTERNAL_SHARE)}."
    )


def _percent(share: float | None) -> str:
    return units.MISSING if share is None else f"{100 * share:.2g} %"
