"""Records as they are after reading: JSON can't distinguish tuples from lists, so these are
lists."""

from __future__ import annotations

import json
from typing import Any

import msgspec

from tests import records
from trainmark.record.record import Record


def a_record(**changes: Any) -> Record:
    """:func:`tests.records.a_record`, its specification made of lists."""
    record = records.a_record(**changes)
    spec = json.loads(json.dumps(record.workload.spec))
    return msgspec.structs.replace(
        record, workload=msgspec.structs.replace(record.workload, spec=spec)
    )
