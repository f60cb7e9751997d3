"""A table of every run, including failed ones and why they failed."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple

from trainmark import units
from trainmark.analysis.machines import MachineOf, tell_apart
from trainmark.analysis.summary import RunSummary, summarize
from trainmark.record.facts import FACTS, facts_of, tokens_of
from trainmark.record.record import Record, Status
from trainmark.report.table import (
    Cell,
    Field,
    Scalar,
    Table,
    Tone,
    number,
    number_of,
    table_of,
    text_of,
)


class _Run(NamedTuple):
    record: Record
    summary: RunSummary


_TONES: dict[Status, Tone] = {"ok": "plain", "diverged": "bad", "failed": "bad"}


def runs_table(records: Sequence[Record], machine_of: MachineOf | None = None) -> Table:
    """Return the table of runs, in the order measured."""
    machine_of = machine_of or tell_apart(records)
    return table_of(
        (_Run(record, summarize(record)) for record in records),
        _FIELDS,
        title="Every run",
        data=lambda run: _data(*run, machine_of(run.record).title),
    )


def _part(record: Record) -> str:
    """Return the layout and rank, or the trial, of a run; empty for an ordinary run."""
    group = record.group
    words = []
    if group.spread is not None:
        words.append(f"{group.spread.data}×{group.spread.pipeline}")
    if group.rank is not None:
        words.append(f"rank {group.rank}")
    if group.trial is not None:
        words.append(f"trial {group.trial}")
    return ", ".join(words)


_FIGURES = (
    "process_seconds",
    "epoch_seconds",
    "training_seconds",
    "train_loss",
    "train_accuracy",
    "test_loss",
    "test_accuracy",
)


def _data(record: Record, run: RunSummary, machine: str) -> dict[str, Scalar]:
    return {
        "record": record.id,
        "created": record.created,
        **facts_of(record, ("workload", "backend", "version", "style", "device")),
        "machine": machine,
        **facts_of(record, ("round", "seed", "outcome")),
        "reason": record.outcome.reason,
        "epochs": record.epoch_count,
        **{name: getattr(run, name) for name in _FIGURES},
        "caveats": _caveats(record),
    }


def outcome_cell(status: Status, reason: str | None) -> Cell:
    """Return how a run ended, and why."""
    return Cell(status, reason or "", _TONES.get(status, "doubtful"))


def _caveats(record: Record) -> str:
    return " ".join(caveat.value for caveat in record.caveats)


def _count(count: int | None) -> Cell:
    return Cell(units.MISSING if count is None else str(count), value=count)


def _fact(name: str) -> Callable[[_Run], str]:
    """Return a function that gives a fact of a run as text."""
    return lambda run: FACTS[name].text(run.record)


def _outcome(run: _Run) -> Cell:
    return outcome_cell(run.record.outcome.status, run.record.outcome.reason)


def _accuracy(run: _Run) -> Cell:
    return number(None if tokens_of(run.record) else run.summary.test_accuracy, units.percent)


def _loss(run: _Run) -> Cell:
    return number(run.summary.test_loss if tokens_of(run.record) else None, units.loss)


_FIELDS: tuple[Field[_Run], ...] = (
    Field("record", text_of("record.id")),
    Field("workload", _fact("workload")),
    Field("backend", _fact("framework")),
    Field("style", _fact("style")),
    Field("device", _fact("device")),
    Field("part", text_of("record", _part)),
    Field("round", lambda run: _count(run.record.round), "right"),
    Field("seed", lambda run: _count(run.record.seed), "right"),
    Field("outcome", _outcome),
    Field("process", number_of("summary.process_seconds", units.seconds), "right"),
    Field("epochs", lambda run: _count(run.record.epoch_count), "right"),
    Field("epoch", number_of("summary.epoch_seconds", units.seconds), "right"),
    Field("training", number_of("summary.training_seconds", units.seconds), "right"),
    Field("test\nacc.", _accuracy, "right"),
    Field("test\nloss", _loss, "right"),
    Field("caveats", text_of("record", _caveats)),
)
