"""Group records that repeat the same measurement."""

from __future__ import annotations

import dataclasses
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass

from trainmark.analysis.grouping import grouped
from trainmark.analysis.machines import Told, tell_apart
from trainmark.analysis.summary import MEASURED
from trainmark.record.codec import content
from trainmark.record.facts import FACTS, Key
from trainmark.record.record import Record


@dataclass(frozen=True)
class Repeats:
    """Repeats of one measurement.

    Args:
        records: the successful ones, oldest first.
        failed: number of the failed ones.
        broken: number of the failed ones that the user did not interrupt.
    """

    key: Key
    records: tuple[Record, ...]
    failed: int
    broken: int = 0


def key_of(record: Record, machine: Told | None = None) -> Key:
    """Return the key of ``record``; ``machine`` is its name among others, default its host name."""
    told = machine or Told(record.machine.name, record.machine.labelled)
    return Key.of(record, told.title, told.labels)


def group_records(records: Iterable[Record]) -> list[Repeats]:
    """Group the records by key, in the order of each group's first measurement; duplicates count once.

    A run that failed early has unknown fields (no framework version, no device name): it is counted with the group
    that has the same known fields.
    """
    unique = {content(record): record for record in records if _counts(record)}  # a copy is equal
    ordered = sorted(unique.values(), key=lambda record: (record.created, record.round, record.id))
    machine_of = tell_apart(ordered)
    whole = (record for record in ordered if record.outcome.status in MEASURED)
    measured = grouped(whole, lambda record: key_of(record, machine_of(record)))
    met: dict[Key, None] = {}  # each once, in the order of their first runs
    failed: Counter[Key] = Counter()
    broken: Counter[Key] = Counter()
    redone = {_run_of(record) for records in measured.values() for record in records if _is_whole(record)}
    for record in ordered:
        key = key_of(record, machine_of(record))
        if record.outcome.status not in MEASURED:
            if _run_of(record) in redone:
                continue  # repeated by a later command with --resume
            key = next((known for known in [*measured, *failed] if _fits(key, known)), key)
            failed[key] += 1
            broken[key] += record.outcome.status != "interrupted"
        met[key] = None
    return [Repeats(key, tuple(measured.get(key, ())), failed[key], broken[key]) for key in met]


def _counts(record: Record) -> bool:
    """Return whether the record counts as a run. A rank's data is also in the record of the whole, and some runs of a
    scale study exist only for their losses: round 0 in float64, and in older records those with nudged weights."""
    group, in_float64 = record.group, record.backend.precision == "fp64"
    for_losses = group.trial is not None or (record.round == 0 and in_float64)
    return group.rank is None and not (group.kind == "scale" and for_losses)


_PLANNED = (
    "repeat", "threads", "layout", "step_fingerprint", "schedule_fingerprint", "backend", "style", "precision",
    "device", "python",
)  # fmt: skip


def _run_of(record: Record) -> tuple[object, ...]:
    """Return what was planned, whether or not it succeeded; without a command's backend, known only once it trains."""
    planned = (name for name in _PLANNED if record.process is None or name != "backend")
    return (record.group.id, record.group.trial, *(FACTS[name].of(record) for name in planned))


def _is_whole(record: Record) -> bool:
    """Return whether a run did all that was planned; slices alone don't replace a training."""
    return record.process is not None or not FACTS["slices_alone"].of(record)


def _fits(partial: Key, whole: Key) -> bool:
    """Return whether all known fields of ``partial`` equal those of ``whole``."""
    if partial.precision is None and partial.version is None:  # a command that ended before its framework was known
        partial = dataclasses.replace(partial, backend=whole.backend)
    pairs = zip(dataclasses.astuple(partial), dataclasses.astuple(whole), strict=True)
    return all(said is None or said == known for said, known in pairs)
