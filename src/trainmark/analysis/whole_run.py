"""The number of steps of a training that was ended early, from an earlier complete run."""

from __future__ import annotations

from collections.abc import Iterable

from trainmark.record.record import Record


def steps_of_whole_run(record: Record, others: Iterable[Record]) -> int | None:
    """Return the steps of the latest complete run of the same command, if there is one.

    Args:
        record: that of a run of the command.
        others: records of other runs, of any command.
    """
    complete = [other for other in others if _is_complete(other) and _is_same(record, other)]
    latest = max(complete, key=lambda each: each.created, default=None)
    return None if latest is None or latest.observed is None else latest.observed.steps


def _is_complete(record: Record) -> bool:
    seen = record.observed
    is_single = seen is not None and not seen.ended_early and len(seen.training_starts) == 1
    return is_single and record.outcome.status == "ok"


def _is_same(record: Record, other: Record) -> bool:
    """Whether command, folder, script and environment are the same."""
    one = record.process
    another = other.process
    if one is None or another is None or one.program_sha256 is None:
        return False
    return (one.argv, one.directory, one.program_sha256, one.environment) == (
        another.argv,
        another.directory,
        another.program_sha256,
        another.environment,
    )
