"""Export to TensorBoard event files, a folder per run."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

from trainmark.errors import OutputError
from trainmark.record.record import Record
from trainmark.record.store import safe_name
from trainmark.report.export.scalars import facts, points, start_of

_LONGEST = 200
"""Longest name of a folder."""


def to_tensorboard(records: Iterable[Record], folder: Path) -> list[Path]:
    """Write ``folder/<record>/`` for each record, and return those folders. Needs tensorboardX."""
    from tensorboardX import SummaryWriter

    written = []
    for record in records:
        target = folder / safe_name(record.id, _LONGEST)
        if target.exists() and any(target.iterdir()):
            raise OutputError(
                f"{target} already exists",
                expected="a folder without these runs, as TensorBoard would draw them twice",
                fix="Give another folder with -o, or remove this one.",
            )
        with SummaryWriter(str(target)) as writer:
            start = start_of(record)
            for point in points(record):
                writer.add_scalar(
                    point.name, point.value, point.step, walltime=start + point.seconds
                )
            words = "\n".join(f"{name}: {value}" for name, value in facts(record).items())
            writer.add_text("run", f"```\n{words}\n```", 0, walltime=start)
        written.append(target)
    return written
