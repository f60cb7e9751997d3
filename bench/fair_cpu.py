"""Does the search find the best number of CPU threads, and is the ratio to an accelerator right
with that number?

    OMP_NUM_THREADS=16 python bench/fair_cpu.py [WORKLOAD] [--tries 3]

There is no accelerator here, so PyTorch's `idiomatic` takes its role and keeps its number of
threads. PyTorch's `fast` takes the role of the CPU. Each try compares the two in two ways: first
trainmark searches for the number of threads of `fast`, as it does next to an accelerator; then
`fast` runs with each number, fixed from the start. Prints how long the search took, what it chose,
and the ratio next to the ratio with the best fixed number. Needs TRAINMARK_DATA.
"""

from __future__ import annotations

import argparse
import dataclasses
import os
import tempfile
import time
from collections.abc import Collection, Sequence
from pathlib import Path
from typing import Any

from trainmark.analysis.comparison import compare
from trainmark.execute.parent.conversation import candidates
from trainmark.execute.parent.plan import Run, Settings
from trainmark.execute.parent.request import RunRequest, prepare
from trainmark.execute.parent.scheduler import RunObserver, execute
from trainmark.execute.parent.task import Task
from trainmark.execute.protocol import answers
from trainmark.measure.host import usable_core_numbers
from trainmark.record.record import Record
from trainmark.record.store import Store

CPU = "fast"
ACCELERATOR = "idiomatic"
BLOCKS = 8


class Listener:
    """Measures more blocks of both rounds than an opening has, and trains nothing to the end."""

    def opened(self, records: Sequence[tuple[Task[Any], Record]]) -> Collection[str]:
        """Decide nothing."""
        del records
        return ()

    def continues(self, *, is_first: bool) -> bool:
        """Go on with both rounds."""
        del is_first
        return True

    def most_blocks(self, planned: int | None) -> int | None:
        """Keep the plan."""
        return planned


class SearchTimer(RunObserver):
    """Times the search: from the end of the preparation of its process to the answer."""

    def __init__(self) -> None:
        self._compiled: dict[int, float] = {}
        self.seconds: float | None = None

    def answered(self, task: Task[Any], answer: answers.Answer) -> None:
        """Note when a search begins and ends."""
        if isinstance(answer, answers.Compiled):
            self._compiled[id(task)] = time.perf_counter()
        elif isinstance(answer, answers.ThreadsTried):
            self.seconds = time.perf_counter() - self._compiled[id(task)]


def planned(tasks: Sequence[Task[Run]], threads: int | None) -> list[Task[Run]]:
    """Return two rounds of slices; if ``threads`` is None, the best number for the CPU is searched
    for."""
    found = []
    for task in tasks:
        run = dataclasses.replace(task.first, blocks=BLOCKS)
        if run.side.style == CPU and threads is None:
            run = dataclasses.replace(run, next_to_accelerator=True)
        elif run.side.style == CPU:
            run = dataclasses.replace(run, settings=Settings(threads=threads))
        found.append(Task((run,)))
    return found


def ratio(records: Sequence[Record]) -> float:
    """Return how many times as fast the accelerator is as the CPU."""
    comparison = compare(records, baseline=("style", CPU))
    (group,) = (group for group in comparison.groups if group.key.style == ACCELERATOR)
    assert group.speedup.ratio is not None
    return group.speedup.ratio


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("workload", nargs="?", default="mnist-mlp32")
    parser.add_argument("--tries", type=int, default=3)
    options = parser.parse_args()
    request = RunRequest(
        workloads=(options.workload,),
        backends=("torch",),
        styles=(CPU, ACCELERATOR),
        devices=("cpu",),
        repeats=2,
        environment=Path(os.environ["TRAINMARK_DATA"]),
    )
    prepared = prepare(request)
    print(f"{options.workload}, OMP_NUM_THREADS={os.environ.get('OMP_NUM_THREADS', 'unset')}")
    for _ in range(options.tries):
        with tempfile.TemporaryDirectory() as folder:
            timer = SearchTimer()
            out = Store(Path(folder) / "searched")
            records = execute(
                planned(prepared.tasks, None), prepared.seen, out, timer, opening=Listener()
            )
            search = next(
                record.threads_search for record in records if record.backend.style == CPU
            )
            assert search is not None
            assert timer.seconds is not None
            fixed = {}
            for threads in candidates(len(usable_core_numbers())):
                out = Store(Path(folder) / str(threads))
                tasks = planned(prepared.tasks, threads)
                fixed[threads] = ratio(
                    execute(tasks, prepared.seen, out, RunObserver(), opening=Listener())
                )
        best = min(fixed.values())
        tried = ", ".join(
            f"{number}: {1e3 * seconds:.3f} ms" for number, seconds in search.step_seconds.items()
        )
        each = ", ".join(f"{threads}: {value:.3f}" for threads, value in fixed.items())
        searched = ratio(records)
        print(
            f"search {timer.seconds:.1f} s, chose {search.chosen} of [{tried}], default "
            f"{search.default}; "
            f"ratio {searched:.3f}, with fixed threads [{each}]; to the best {searched / best:.3f}",
            flush=True,
        )


if __name__ == "__main__":
    main()
