"""The machine on which experiments on a user's script run."""

from __future__ import annotations

import time
from collections.abc import Sequence

from trainmark.execute.parent.command import CommandRun
from trainmark.execute.parent.scheduler import RunObserver, execute
from trainmark.execute.parent.task import Task
from trainmark.execute.parent.time_limit import TimeLimit
from trainmark.measure.host import read_host
from trainmark.measure.vendor import Gpu
from trainmark.measure.vendors import read_driver
from trainmark.record.record import Record
from trainmark.record.store import Store


class ExperimentHost:
    """This machine: its clock, its memory and its processes.

    Tests override the methods to run experiments without processes.
    """

    def now(self) -> float:
        """Return the time in seconds, as ``time.perf_counter`` does."""
        return time.perf_counter()

    def run(
        self,
        tasks: Sequence[Task[CommandRun]],
        store: Store,
        observer: RunObserver,
        limit: TimeLimit,
    ) -> list[Record]:
        """Run ``tasks``, interleaved, and return their records.

        The observer is notified of all events, and may end a run. What still runs at ``limit``, or
        keeps the others waiting for longer than its patience, is ended.

        Raises:
            KeyboardInterrupt: interrupted; the records of the current runs were observed.
        """
        return execute(tasks, {}, store, observer, limit=limit)

    def available_memory(self) -> int | None:
        """Return the free memory in bytes; None if unknown."""
        return read_host().memory_available_bytes

    def gpus(self) -> Sequence[Gpu]:
        """Return the GPUs that the driver lists."""
        return read_driver().gpus
