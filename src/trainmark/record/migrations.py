"""Migrate records of older schema versions to the current one."""

from __future__ import annotations

from msgspec import structs

from trainmark.record.record import SCHEMA_VERSION, Record, WorkloadRef
from trainmark.workload.decode import Misfit
from trainmark.workload.spec import Workload


def migrated(record: Record) -> Record:
    """Return ``record`` in the current schema version, unchanged if it already has it."""
    if record.schema_version == SCHEMA_VERSION:
        return record
    if record.process is None:
        record = structs.replace(record, workload=_with_fingerprints(record.workload))
    else:
        record = _without_placeholders(record)
    return structs.replace(record, schema_version=SCHEMA_VERSION)


def _with_fingerprints(ref: WorkloadRef) -> WorkloadRef:
    """Recompute the fingerprints: version 1 also hashed fields at their default.

    A workload that this trainmark can't read keeps its fingerprints, and only groups with other
    such records.
    """
    try:
        workload = Workload.from_data(ref.spec)
    except Misfit:
        return ref
    step = workload.step_fingerprint
    schedule = workload.schedule_fingerprint
    return structs.replace(ref, step_fingerprint=step, schedule_fingerprint=schedule)


def _without_placeholders(record: Record) -> Record:
    """Replace the placeholder words of version 1 for what a command does not report."""
    style = None if record.backend.style == "as is" else record.backend.style
    device = None if record.device.id == "not told" else record.device.id
    return structs.replace(
        record,
        backend=structs.replace(record.backend, style=style, compile_cache=None),
        device=structs.replace(record.device, id=device),
        python=structs.replace(record.python, label=None),
    )
