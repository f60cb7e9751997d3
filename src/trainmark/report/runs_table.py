"""Every run, a line each: also those that failed, and why."""

from __future__ import annotations

from collections.abc import Sequence

from trainmark import units
from trainmark.analysis.machines import MachineOf, tell_apart
from trainmark.analysis.summary import RunSummary, summarize
from trainmark.record.facts import FACTS
from trainmark.record.record import Record
from trainmark.report.table import Cell, Field, Scalar, Table, Tone, table_of

_TONES: dict[str, Tone] = {"ok": "plain", "diverged": "bad", "failed": "bad"}


def runs_table(records: Sequence[Record], machine_of: MachineOf | None = None) -> Table:
    """In the order measured."""
    machine_of = machine_of or tell_apart(records)
    return table_of(
        ((record, summarize(record)) for record in records),
        _FIELDS,
        title="Every run",
        data=lambda run: _data(*run, machine_of(run[0]).title),
    )


def _part(record: Record) -> str:
    """Of what the run is a part: its layout and rank, its trial; nothing of an ordinary one."""
    group, words = record.group, []
    if group.spread is not None:
        words.append(f"{group.spread.data}×{group.spread.pipeline}")
    if group.rank is not None:
        words.append(f"rank {group.rank}")
    if group.trial is not None:
        words.append(f"{'trial' if group.kind == 'sweep' else 'nudge'} {group.trial}")
    return ", ".join(words)


def _data(record: Record, run: RunSummary, machine: str) -> dict[str, Scalar]:
    return {
        "record": record.id,
        "created": record.created,
        "workload": record.workload.name,
        "backend": record.backend.name,
        "version": record.backend.version,
        "style": record.backend.style,
        "device": record.device.id,
        "machine": machine,
        "round": record.round,
        "seed": record.seed,
        "outcome": record.outcome.status,
        "reason": record.outcome.reason,
        "epochs": len(record.epochs),
        "process_seconds": run.process_seconds,
        "epoch_seconds": run.epoch_seconds,
        "training_seconds": run.training_seconds,
        "train_loss": run.train_loss,
        "train_accuracy": run.train_accuracy,
        "test_loss": run.test_loss,
        "test_accuracy": run.test_accuracy,
        "caveats": _caveats(record),
    }


def _outcome(record: Record) -> Cell:
    status = record.outcome.status
    return Cell(status, record.outcome.reason or "", _TONES.get(status, "doubtful"))


def _caveats(record: Record) -> str:
    return " ".join(caveat.value for caveat in record.caveats)


def _seconds(seconds: float | None) -> Cell:
    return Cell(units.seconds(seconds), value=seconds)


def _number(number: int | None) -> Cell:
    return Cell(units.MISSING if number is None else str(number), value=number)


_FIELDS: tuple[Field[tuple[Record, RunSummary]], ...] = (
    Field("record", lambda of: of[0].id),
    Field("workload", lambda of: of[0].workload.name),
    Field("backend", lambda of: f"{of[0].backend.name} {of[0].backend.version or ''}".strip()),
    Field("style", lambda of: FACTS["style"].told(of[0])),
    Field("device", lambda of: FACTS["device"].told(of[0])),
    Field("part", lambda of: _part(of[0])),
    Field("round", lambda of: _number(of[0].round), "right"),
    Field("seed", lambda of: _number(of[0].seed), "right"),
    Field("outcome", lambda of: _outcome(of[0])),
    Field("process", lambda of: _seconds(of[1].process_seconds), "right"),
    Field("epochs", lambda of: _number(len(of[0].epochs)), "right"),
    Field("epoch", lambda of: _seconds(of[1].epoch_seconds), "right"),
    Field("training", lambda of: _seconds(of[1].training_seconds), "right"),
    Field("test\nacc.", lambda of: Cell(units.percent(of[1].test_accuracy), value=of[1].test_accuracy), "right"),
    Field("caveats", lambda of: _caveats(of[0])),
)
