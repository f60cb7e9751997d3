"""Group records that repeat the same measurement."""

from __future__ import annotations

import dataclasses
import itertools
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass
from operator import attrgetter

from trainmark.analysis.grouping import grouped
from trainmark.analysis.machines import MachineLabel, tell_apart
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
        slices_only: number of ``records`` that hold the slices of a run that failed after them.
    """

    key: Key
    records: tuple[Record, ...]
    failed: int
    broken: int = 0
    slices_only: int = 0

    @property
    def runs(self) -> int:
        """Number of runs that succeeded."""
        return len(self.records) - self.slices_only


def key_of(record: Record, machine: MachineLabel | None = None) -> Key:
    """Return the key of ``record``; ``machine`` is its name among others, default its host name."""
    label = machine or MachineLabel(record.machine.name, record.machine.labelled)
    return Key.of(record, label.title, label.labels)


def group_records(records: Iterable[Record]) -> list[Repeats]:
    """Group the records by key, in the order of their first measurement; copies count once.

    A run that failed early has unknown fields (no framework version, no device name): it is counted
    with the group that has the same known fields. A run that failed after its slices has two
    records, and counts as one failed run. If the user interrupted it, it counts as a run that has
    slices alone.
    """
    unique = {content(record): record for record in records if _counts(record)}  # a copy is equal
    ordered = sorted(unique.values(), key=attrgetter("created", "round", "id"))
    machine_of = tell_apart(ordered)
    whole = (record for record in ordered if record.outcome.status in MEASURED)
    measured = grouped(whole, lambda record: key_of(record, machine_of(record)))
    met: dict[Key, None] = {}  # each once, in the order of their first runs
    failed: Counter[Key] = Counter()
    broken: Counter[Key] = Counter()
    slices_of_failed = {
        record.slices_in for record in ordered if record.outcome.status != "interrupted"
    }
    complete = itertools.chain.from_iterable(measured.values())
    succeeded = [record for record in complete if record.id not in slices_of_failed]
    kept = {record.id for record in succeeded}
    redone = {_run_of(record) for record in succeeded if _is_whole(record)}
    for record in ordered:
        key = key_of(record, machine_of(record))
        if record.outcome.status not in MEASURED:
            if _run_of(record) in redone:
                continue  # a later command with --resume repeated it
            if record.slices_in in kept:
                continue  # it was interrupted, but its slices count
            key = next((known for known in [*measured, *failed] if _fits(key, known)), key)
            failed[key] += 1
            broken[key] += record.outcome.status != "interrupted"
        met[key] = None
    groups: list[Repeats] = []
    for key in met:
        records = tuple(measured.get(key, ()))
        slices_only = sum(record.id in slices_of_failed for record in records)
        groups.append(Repeats(key, records, failed[key], broken[key], slices_only))
    return groups


def _counts(record: Record) -> bool:
    """Whether the record counts as a run.

    A rank's data is also in the record of the whole, and round 0 of a scale study in float64 exists
    only for its losses.
    """
    group = record.group
    in_float64 = record.backend.precision == "fp64"
    for_losses = group.kind == "scale" and record.round == 0 and in_float64
    return group.rank is None and not for_losses


_PLANNED = (
    "repeat",
    "threads",
    "layout",
    "step_fingerprint",
    "schedule_fingerprint",
    "backend",
    "style",
    "precision",
    "device",
    "python",
)


def _run_of(record: Record) -> tuple[object, ...]:
    """Return what was planned, whether or not it succeeded.

    The backend of a command is known only once it trains, so it is not included.
    """
    planned = (name for name in _PLANNED if record.process is None or name != "backend")
    return (record.group.id, record.group.trial, *(FACTS[name].of(record) for name in planned))


def _is_whole(record: Record) -> bool:
    """Return whether a run did all that was planned; slices alone don't replace a training."""
    return record.process is not None or not FACTS["slices_alone"].of(record)


def _fits(partial: Key, whole: Key) -> bool:
    """Return whether all known fields of ``partial`` equal those of ``whole``."""
    # This is a command that ended before its framework was known.
    if partial.precision is None and partial.version is None:
        partial = dataclasses.replace(partial, backend=whole.backend)
    pairs = zip(dataclasses.astuple(partial), dataclasses.astuple(whole), strict=True)
    return all(value is None or value == known for value, known in pairs)
