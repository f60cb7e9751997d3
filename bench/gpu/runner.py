"""Measures an item within its limit, writes each result immediately, and says what is missing."""

from __future__ import annotations

import sys
import time
from dataclasses import dataclass

from gpu import store
from gpu.measurement import Item, Measurement, Outcome
from gpu.page import writer
from gpu.session import Session
from gpu.store import Result
from gpu.wheels import ROOT

LEAST_SECONDS = 12.0
"""With less time, no measurement starts: one process needs about this long to start on a GPU."""
PAGE_SECONDS = 3.0
"""Seconds kept free at the end of an item, to write its page."""


@dataclass(frozen=True)
class Missing:
    """What an item still lacks.

    Args:
        item: its name.
        measurement: its name.
        why: what went wrong.
    """

    item: str
    measurement: str
    why: str

    def __str__(self) -> str:
        return f"{self.item}, {self.measurement}: {self.why}"


def measure_item(item: Item, session: Session, deadline: float) -> list[Missing]:
    """Measure what has no complete result yet.

    Args:
        item: the question.
        session: what all measurements share.
        deadline: when it must end, on the monotonic clock.

    Returns:
        What is missing, in the item's order.
    """
    missing = []
    for measurement in item.measurements():
        before = store.read(session.folder, item.name).get(measurement.name)
        if before is not None and before.complete:
            continue
        why = _reason_not_to_start(session, deadline)
        if not why:
            result = _measured(item, measurement, session, deadline)
            store.write(session.folder, item.name, result)
            writer.write(session.folder)
            why = "; ".join(result.problems)
        if why:
            missing.append(Missing(item.name, measurement.name, why))
    writer.write(session.folder)
    return missing


def _reason_not_to_start(session: Session, deadline: float) -> str:
    if session.processes.interrupted:
        return "interrupted before it began"
    left = deadline - time.monotonic()
    least = 1.0 if session.quick else LEAST_SECONDS
    return (
        ""
        if left >= least + PAGE_SECONDS
        else f"did not fit into the limit: {max(left, 0):.0f} s were left"
    )


def _measured(item: Item, measurement: Measurement, session: Session, deadline: float) -> Result:
    start = time.monotonic()
    seconds = min(measurement.seconds, deadline - start - PAGE_SECONDS)
    print(f"{item.name}, {measurement.name}: up to {seconds:.0f} s", file=sys.stderr, flush=True)
    try:
        outcome = measurement.measure(session, seconds)
    except KeyboardInterrupt:
        session.processes.interrupted = True
        outcome = Outcome([], ["interrupted"])
    # The other measurements continue, and the page names the error
    except Exception as error:  # noqa: BLE001
        outcome = Outcome([], [f"{type(error).__name__}: {error}"])
    return Result(
        measurement=measurement.name,
        complete=not outcome.problems,
        problems=[_without_paths(problem, session) for problem in outcome.problems],
        seconds=round(time.monotonic() - start, 1),
        context=session.context,
        rows=outcome.rows,
    )


def _without_paths(text: str, session: Session) -> str:
    for path, name in ((session.folder, "FOLDER"), (sys.executable, "python"), (f"{ROOT}/", "")):
        text = text.replace(str(path), name)
    return text
