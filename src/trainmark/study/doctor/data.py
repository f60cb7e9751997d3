"""Checks of the datasets and of the free disk space."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path

from trainmark import units
from trainmark.data.locate import Located
from trainmark.errors import DamagedData, DataError
from trainmark.study.doctor.check import Check, failed, passed, skipped, warned

NEEDED_BYTES = 2**30
"""Both datasets packed and unpacked, with room for records."""


def dataset(name: str, locate: Callable[[str], Located]) -> Check:
    """Whether a dataset is available, with every byte checked.

    Args:
        name: of the catalogue.
        locate: finds it without asking a mirror.

    Raises:
        UsageError: a folder that was named does not exist.
    """
    id_ = f"data.{name}"
    try:
        found = locate(name)
    except DamagedData as error:
        return failed(id_, str(error).splitlines()[0], error.fix or f"trainmark data fetch {name}")
    except DataError:
        return warned(id_, "not found; it will be downloaded when needed", f"trainmark data fetch {name}")
    size = f"{found.train_examples:,} training and {found.test_examples:,} test examples in {found.directory}"
    if not found.complete:
        return warned(id_, f"only part of it is available: {size}", f"trainmark data fetch {name}")
    return passed(id_, f"verified: {size}")


def disk(free_bytes: Sequence[tuple[Path, int | None]]) -> list[Check]:
    """Whether there is room for the datasets and for records.

    Args:
        free_bytes: places that are written to, each with what is free there, None where that can't be told.
    """
    id_ = "data.disk-space"
    short = [(place, free) for place, free in free_bytes if free is not None and free < NEEDED_BYTES]
    if short:
        listed = ", ".join(f"{units.bytes_(free)} at {place}" for place, free in short)
        return [warned(id_, f"low disk space: {listed}", f"Free some: df -h {short[0][0]}")]
    known = [(place, free) for place, free in free_bytes if free is not None]
    if not known:
        return [skipped(id_, "free space is not reported")]
    return [passed(id_, ", ".join(f"{units.bytes_(free)} free at {place}" for place, free in known))]
