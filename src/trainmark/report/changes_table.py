"""A table of what changes to a user's script give."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from trainmark import units
from trainmark.analysis.changes import Finding
from trainmark.analysis.experiments import (
    experiment,
    words,
)
from trainmark.record.observed import Observed
from trainmark.report.own_steps import parts
from trainmark.report.table import Cell, Field, Table, Tone, interval, table_of


def changes_table(
    name: str,
    place: str,
    step_seconds: float,
    parts: Mapping[str, float],
    findings: Sequence[Finding],
    left_out: Mapping[str, str],
    sentences: Sequence[str],
) -> Table:
    """Return the table of the findings.

    Args:
        name: name of the script.
        place: the framework and the device.
        step_seconds: duration of a step of the unchanged script.
        parts: shares of its time.
        findings: the changes, one row each.
        left_out: why other changes have no row.
        sentences: what the answer says; the first one is the answer.
    """
    of_time = ", ".join(
        f"{what} {units.percent(share, 0)}" for what, share in parts.items() if share > 0.01
    )
    reasons = "; ".join(f"{change} ({why})" for change, why in left_out.items())
    return table_of(
        findings,
        (
            Field("change", _change),
            Field("speed-up", _speedup, "right"),
            Field("learning", _learning),
            Field("memory", _memory, "right", optional=True),
            Field("where", lambda each: each.place or "", optional=True),
            Field("description", _description, optional=True),
        ),
        title=name,
        conditions=(
            f"{place}, {units.seconds(step_seconds)} per step"
            + (f"; time: {of_time}" if of_time else ""),
        ),
        notes=(*sentences[1:], *((f"Left out: {reasons}.",) if reasons else ())),
        answer=Cell(sentences[0]),
    )


def shares(observed: Observed) -> dict[str, float]:
    """Return the observed shares of the time, if they were not sampled; they may overlap."""
    return {part.name: part.share for part in parts(observed)}


def _change(found: Finding) -> Cell:
    return Cell(found.change, tone="strong" if found.wins else "plain")


def times(found: Finding) -> str:
    """Return the speed-up with its interval."""
    return f"{found.speedup.value:.2f}×{interval(found.speedup.low, found.speedup.high)}"


def _speedup(found: Finding) -> Cell:
    if found.cause is not None and not found.promises:
        # Its cure does the same work faster: by how much is not known from its share of the time.
        return Cell(f"{units.percent(found.cause.share, 0)} of the time")
    tone: Tone = "good" if found.wins and not found.harms else "plain"
    return Cell(times(found), tone=tone, value=found.speedup.value)


def _learning(found: Finding) -> Cell:
    if found.kind == "diagnosis":
        return Cell("diagnosis", tone="dim")
    if found.learning == "unseen":
        return Cell("not judged", tone="dim")
    return Cell(found.learning, tone="bad" if found.harms else "plain")


def _memory(found: Finding) -> Cell:
    return Cell("" if found.memory is None else f"{found.memory:.2f}×", value=found.memory)


def _description(found: Finding) -> Cell:
    if found.cause is not None and found.change == found.cause.name:
        return Cell(found.cause.seen, tone="dim")
    return Cell(words(experiment(found.change).does, found.change), tone="dim")
