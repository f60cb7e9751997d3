"""Every run, a line each: also those that failed, and why."""

from __future__ import annotations

from collections.abc import Sequence

from trainmark import units
from trainmark.analysis.machines import MachineOf, tell_apart
from trainmark.analysis.summary import summarize
from trainmark.record.facts import FACTS
from trainmark.record.record import Record
from trainmark.report.table import Cell, Column, Row, Table, Tone

_TONES: dict[str, Tone] = {"ok": "plain", "diverged": "bad", "failed": "bad"}


def runs_table(records: Sequence[Record], machine_of: MachineOf | None = None) -> Table:
    """In the order measured."""
    machine_of = machine_of or tell_apart(records)
    return Table(
        title="Every run",
        conditions=(),
        columns=(
            Column("record"),
            Column("workload"),
            Column("backend"),
            Column("style"),
            Column("device"),
            Column("part"),
            Column("round", "right"),
            Column("seed", "right"),
            Column("outcome"),
            Column("process", "right"),
            Column("epochs", "right"),
            Column("epoch", "right"),
            Column("training", "right"),
            Column("test\nacc.", "right"),
            Column("caveats"),
        ),
        rows=tuple(_row(record, machine_of(record).title) for record in records),
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


def _row(record: Record, machine: str) -> Row:
    run, outcome = summarize(record), record.outcome
    caveats = " ".join(caveat.value for caveat in record.caveats)
    cells = (
        Cell(record.id),
        Cell(record.workload.name),
        Cell(f"{record.backend.name} {record.backend.version or ''}".strip()),
        Cell(FACTS["style"].told(record)),
        Cell(FACTS["device"].told(record)),
        Cell(_part(record)),
        Cell(str(record.round), value=record.round),
        Cell(units.MISSING if record.seed is None else str(record.seed), value=record.seed),
        Cell(outcome.status, outcome.reason or "", _TONES.get(outcome.status, "doubtful")),
        Cell(units.seconds(run.process_seconds), value=run.process_seconds),
        Cell(str(len(record.epochs)), value=len(record.epochs)),
        Cell(units.seconds(run.epoch_seconds), value=run.epoch_seconds),
        Cell(units.seconds(run.training_seconds), value=run.training_seconds),
        Cell(units.percent(run.test_accuracy), value=run.test_accuracy),
        Cell(caveats),
    )
    return Row(
        cells,
        data={
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
            "outcome": outcome.status,
            "reason": outcome.reason,
            "epochs": len(record.epochs),
            "process_seconds": run.process_seconds,
            "epoch_seconds": run.epoch_seconds,
            "training_seconds": run.training_seconds,
            "train_loss": run.train_loss,
            "train_accuracy": run.train_accuracy,
            "test_loss": run.test_loss,
            "test_accuracy": run.test_accuracy,
            "caveats": caveats,
        },
    )
