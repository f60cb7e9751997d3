"""A table of every run, including failed ones and why they failed."""

from __future__ import annotations

from collections.abc import Sequence

from trainmark import units
from trainmark.analysis.machines import MachineOf, tell_apart
from trainmark.analysis.summary import RunSummary, summarize
from trainmark.record.facts import FACTS, facts_of, tokens_of
from trainmark.record.record import Record, Status
from trainmark.report.table import Cell, Field, Scalar, Table, Tone, number, table_of

_TONES: dict[Status, Tone] = {"ok": "plain", "diverged": "bad", "failed": "bad"}


def runs_table(records: Sequence[Record], machine_of: MachineOf | None = None) -> Table:
    """Return the table of runs, in the order measured."""
    machine_of = machine_of or tell_apart(records)
    return table_of(
        ((record, summarize(record)) for record in records),
        _FIELDS,
        title="Every run",
        data=lambda run: _data(*run, machine_of(run[0]).title),
    )


def _part(record: Record) -> str:
    """Return the layout and rank, or the trial, that the run is part of; empty for an ordinary
    run.
    """
    group = record.group
    words = []
    if group.spread is not None:
        words.append(f"{group.spread.data}×{group.spread.pipeline}")
    if group.rank is not None:
        words.append(f"rank {group.rank}")
    if group.trial is not None:
        words.append(f"{'trial' if group.kind == 'sweep' else 'nudge'} {group.trial}")
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
        "epochs": len(record.epochs),
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


_FIELDS: tuple[Field[tuple[Record, RunSummary]], ...] = (
    Field("record", lambda of: of[0].id),
    Field("workload", lambda of: of[0].workload.name),
    Field("backend", lambda of: f"{of[0].backend.name} {of[0].backend.version or ''}".strip()),
    Field("style", lambda of: FACTS["style"].told(of[0])),
    Field("device", lambda of: FACTS["device"].told(of[0])),
    Field("part", lambda of: _part(of[0])),
    Field("round", lambda of: _count(of[0].round), "right"),
    Field("seed", lambda of: _count(of[0].seed), "right"),
    Field("outcome", lambda of: outcome_cell(of[0].outcome.status, of[0].outcome.reason)),
    Field("process", lambda of: number(of[1].process_seconds, units.seconds), "right"),
    Field("epochs", lambda of: _count(len(of[0].epochs)), "right"),
    Field("epoch", lambda of: number(of[1].epoch_seconds, units.seconds), "right"),
    Field("training", lambda of: number(of[1].training_seconds, units.seconds), "right"),
    Field(
        "test\nacc.",
        lambda of: number(None if tokens_of(of[0]) else of[1].test_accuracy, units.percent),
        "right",
    ),
    Field(
        "test\nloss",
        lambda of: number(of[1].test_loss if tokens_of(of[0]) else None, units.loss),
        "right",
    ),
    Field("caveats", lambda of: _caveats(of[0])),
)
