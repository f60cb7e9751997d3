"""Records of an earlier command, from which ``--resume`` continues."""

from __future__ import annotations

from trainmark.measure.machine import made_here
from trainmark.record.record import Record
from trainmark.record.store import Store
from trainmark.study.observer import StudyObserver
from trainmark.units import many


def earlier_records(store: Store, progress: StudyObserver) -> list[Record]:
    """Return the records of this machine; reports how many others are left out."""
    kept: list[Record] = []
    others: list[Record] = []
    for record in store.read_all():
        (kept if made_here(record.machine) else others).append(record)
    if others:
        names = ", ".join(sorted({record.machine.name for record in others}))
        left_out = f"ignoring {many(len(others), 'record')} of {names}"
        progress.message(f"note: --resume only continues runs of this machine; {left_out}")
    return kept
