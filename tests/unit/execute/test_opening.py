"""Two rounds that start together, with real processes."""

from __future__ import annotations

import dataclasses
from collections.abc import Collection, Sequence
from pathlib import Path
from typing import Any

import pytest

from tests.slow import slow
from trainmark.data.locate import Located
from trainmark.execute.parent.conversation import candidates
from trainmark.execute.parent.plan import Run, ScheduledWorkload, Settings, Side
from trainmark.execute.parent.probe import THIS, probe
from trainmark.execute.parent.record_builder import ThreadsByTitle
from trainmark.execute.parent.scheduler import RunObserver, execute
from trainmark.execute.parent.task import Task, in_rounds
from trainmark.measure.host import usable_core_numbers
from trainmark.record.record import Record, ThreadsSearch
from trainmark.record.store import Store, load
from trainmark.workload import catalog

STEPS = 60


def rounds_of(
    backend: str, dataset: Located, styles: Sequence[str], workload: str = "mnist-mlp512"
) -> list[Task[Run]]:
    """Return two rounds of a network with dropout, so that random numbers matter."""
    spec = catalog.find(workload).with_schedule(steps=STEPS)
    scheduled = ScheduledWorkload(dataclasses.replace(spec, dataset=dataset.name), dataset, 2)
    sides = [Side(backend, style, "cpu", THIS) for style in styles]  # type: ignore[arg-type]
    return in_rounds([(scheduled, sides)], Settings(threads=1))


class Listener:
    """Decides as given, and keeps the records that it was shown."""

    def __init__(
        self, *, continues: bool = True, decides: bool = False, interrupts: bool = False
    ) -> None:
        self._continues = continues
        self._decides = decides
        self._interrupts = interrupts
        self.shown: list[Record] = []

    def opened(self, records: Sequence[tuple[Task[Any], Record]]) -> Collection[str]:
        self.shown = [record for _, record in records]
        return {record.id for record in self.shown} if self._decides else ()

    def continues(self, *, is_first: bool) -> bool:
        if self._interrupts and not is_first:
            raise KeyboardInterrupt
        return self._continues

    def most_blocks(self, planned: int | None) -> int | None:
        return planned


def run(tasks: list[Task[Run]], out: Path, listener: Listener | None) -> list[Record]:
    """Return the records of ``tasks``, without an opening if there is no listener."""
    seen = {(tasks[0].first.side.backend, THIS.label): probe(THIS, tasks[0].first.side.backend)}
    if listener is not None:
        return execute(tasks, seen, Store(out), RunObserver(), opening=listener)
    return execute(tasks, seen, Store(out), RunObserver())


@pytest.mark.parametrize(
    ("backend", "style"),
    [("numpy", "idiomatic"), slow("torch", "fast"), slow("torch", "idiomatic")],
)
def test_a_training_after_an_opening_is_that_of_a_fresh_process(
    backend: str, style: str, drawn: Located, tmp_path: Path
) -> None:
    """The record of the opening becomes that of the training."""
    pytest.importorskip(backend)
    tasks = rounds_of(backend, drawn, [style, style])
    listener = Listener()
    opened = run(tasks, tmp_path / "opened", listener)
    fresh = run(tasks[::2], tmp_path / "fresh", None)
    losses = {record.round: record.step_losses for record in fresh}
    assert [record.outcome.status for record in opened] == ["ok"] * 4, opened[0].outcome
    for record in opened:
        assert record.slices
        assert record.epochs
        assert record.step_losses == losses[record.round]
    assert all(record.slices and not record.epochs for record in listener.shown)
    assert {record.id for record in listener.shown} == {record.id for record in opened}
    stored = load(sorted((tmp_path / "opened").glob("*.json")))
    assert sorted(each.id for each in stored) == sorted(each.id for each in opened)


def test_an_interrupted_training_keeps_the_record_of_its_opening(
    drawn: Located, tmp_path: Path
) -> None:
    listener = Listener(interrupts=True)
    with pytest.raises(KeyboardInterrupt):
        run(rounds_of("numpy", drawn, ["idiomatic", "idiomatic"]), tmp_path, listener)
    kept = {record.id: record for record in load(sorted(tmp_path.glob("*.json")))}
    for shown in listener.shown:
        assert kept[shown.id].outcome.status == "ok"
        assert kept[shown.id].slices[: len(shown.slices)] == shown.slices
    interrupted = [record for record in kept.values() if record.outcome.status == "interrupted"]
    assert [record.round for record in interrupted] == [1, 1]
    assert not any(record.slices for record in interrupted)


def test_a_round_that_stops_after_its_opening_is_no_training(
    drawn: Located, tmp_path: Path
) -> None:
    records = run(
        rounds_of("numpy", drawn, ["idiomatic", "idiomatic"]), tmp_path, Listener(continues=False)
    )
    assert [record.outcome.status for record in records] == ["ok"] * 4
    assert not any(
        record.epochs or record.caveats for record in records if not record.machine.load_before
    )


def test_decided_sides_have_only_the_slices_of_the_opening(drawn: Located, tmp_path: Path) -> None:
    listener = Listener(decides=True)
    records = run(rounds_of("numpy", drawn, ["idiomatic", "idiomatic"]), tmp_path, listener)
    slices = {record.id: len(record.slices) for record in listener.shown}
    assert {record.id: len(record.slices) for record in records} == slices


def beside_an_accelerator(planned: list[Task[Run]]) -> list[Task[Run]]:
    """Return the plan with the style ``fast`` as the CPU's side; the other side acts as the
    accelerator."""
    tasks = []
    for task in planned:
        is_cpu = task.first.side.style == "fast"
        changed = dataclasses.replace(task.first, settings=Settings(), next_to_accelerator=is_cpu)
        tasks.append(Task((changed,)))
    return tasks


def test_next_to_an_accelerator_the_best_thread_count_is_found(
    drawn: Located, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The second side acts as the accelerator, so it keeps its number of threads."""
    pytest.importorskip("torch")
    monkeypatch.setenv("OMP_NUM_THREADS", "1")
    tasks = beside_an_accelerator(rounds_of("torch", drawn, ["fast", "idiomatic"]))
    records = run(tasks, tmp_path, Listener(continues=False))
    assert [record.outcome.status for record in records] == ["ok"] * 4, [
        record.outcome for record in records
    ]
    searched = [record.threads_search for record in records if record.backend.style == "fast"]
    assert searched[0] is not None
    assert searched[0] == searched[1], "one process searches, and the other one gets the result"
    assert searched[0].default == 1
    assert [int(number) for number in searched[0].step_seconds] == [
        1,
        *candidates(len(usable_core_numbers()))[1:],
    ]
    fastest = min(searched[0].step_seconds, key=searched[0].step_seconds.__getitem__)
    assert searched[0].chosen == int(fastest)
    assert all(record.threads is None for record in records)
    assert all(
        record.threads_search is None for record in records if record.backend.style == "idiomatic"
    )


@pytest.mark.slow
def test_each_workload_has_its_own_best_number_of_threads(drawn: Located, tmp_path: Path) -> None:
    pytest.importorskip("torch")
    tasks = beside_an_accelerator(rounds_of("torch", drawn, ["fast", "idiomatic"]))
    of_another = ThreadsSearch(chosen=1, default=77, step_seconds={"1": 1.0, "77": 2.0})
    threads: ThreadsByTitle = {"mnist-cnn torch fast cpu": of_another}
    seen = {("torch", THIS.label): probe(THIS, "torch")}
    records = execute(
        tasks,
        seen,
        Store(tmp_path),
        RunObserver(),
        opening=Listener(continues=False),
        threads=threads,
    )
    for record in records:
        assert record.threads_search != of_another
    assert threads.keys() == {"mnist-cnn torch fast cpu", "mnist-mlp512 torch fast cpu"}
