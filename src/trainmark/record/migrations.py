"""Records of older schema versions, as today's trainmark would have written them."""

from __future__ import annotations

from msgspec import structs

from trainmark.record.record import SCHEMA_VERSION, Record, WorkloadRef
from trainmark.workload.decode import Misfit
from trainmark.workload.spec import Workload


def migrated(record: Record) -> Record:
    """``record`` in today's schema version; itself where that is its own."""
    if record.schema_version == SCHEMA_VERSION:
        return record
    if record.process is None:
        record = structs.replace(record, workload=_with_fingerprints(record.workload))
    else:
        record = _without_placeholders(record)
    return structs.replace(record, schema_version=SCHEMA_VERSION)


def _with_fingerprints(ref: WorkloadRef) -> WorkloadRef:
    """Version 1 hashed fields at their default, too; the workload is in the record, so it can be hashed again.

    A workload that this trainmark can't read keeps its fingerprints, and groups with its like only.
    """
    try:
        workload = Workload.from_data(ref.spec)
    except Misfit:
        return ref
    return structs.replace(
        ref, step_fingerprint=workload.step_fingerprint, schedule_fingerprint=workload.schedule_fingerprint
    )


def _without_placeholders(record: Record) -> Record:
    """Version 1 had words where a command tells nothing."""
    style, device = record.backend.style, record.device.id
    return structs.replace(
        record,
        backend=structs.replace(record.backend, style=None if style == "as is" else style, compile_cache=None),
        device=structs.replace(record.device, id=None if device == "not told" else device),
        python=structs.replace(record.python, label=None),
    )
