"""Checks of the datasets and of the free disk space."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path

from trainmark import units
from trainmark.data.locate import Located
from trainmark.errors import DamagedData, DataError, UsageError
from trainmark.study.doctor.check import Finding, failed, passed, skipped, warned

NEEDED_BYTES = 2**30
"""Bytes for both datasets, packed and unpacked, and for records."""


def dataset(name: str, locate: Callable[[str], Located]) -> Finding:
    """Whether a dataset is available, with every byte checked.

    Args:
        name: of the catalogue.
        locate: finds it without downloading.
    """
    fetch = f"trainmark data fetch {name}"
    try:
        found = locate(name)
    except (DamagedData, UsageError) as error:
        return failed(str(error).splitlines()[0], error.fix or fetch)
    except DataError:
        return warned("not found; it will be downloaded when needed", fetch)
    size = (
        f"{found.train_examples:,} training and {found.test_examples:,} test examples in "
        f"{found.directory}"
    )
    if not found.complete:
        return warned(f"only part of it is available: {size}", fetch)
    return passed(f"verified: {size}")


def disk(free_bytes: Sequence[tuple[Path, int]]) -> Finding:
    """Whether there is room for the datasets and for records.

    Args:
        free_bytes: folders that trainmark writes to, with their free bytes; one whose
            free bytes are unknown is left out.
    """
    if not free_bytes:
        return skipped("free space is not reported")
    short = [(place, free) for place, free in free_bytes if free < NEEDED_BYTES]
    if short:
        listed = ", ".join(f"{units.bytes_(free)} at {place}" for place, free in short)
        return warned(f"low disk space: {listed}", f"Free some space: df -h {short[0][0]}")
    return passed(", ".join(f"{units.bytes_(free)} free at {place}" for place, free in free_bytes))
