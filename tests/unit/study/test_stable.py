from __future__ import annotations

from pathlib import Path

import pytest

from tests.records import a_record, rounds
from trainmark.data.locate import Located
from trainmark.execute.parent.plan import Run, ScheduledWorkload, Settings, Side
from trainmark.execute.parent.probe import THIS
from trainmark.execute.parent.task import Task, in_rounds
from trainmark.record.record import Record
from trainmark.study.stable import rounds_until_stable, widest
from trainmark.workload import catalog

NARROW, WIDE = [2.0, 2.02, 1.98, 2.01, 1.99], [2.0, 2.6, 1.6, 2.3, 1.8]


def planned(number: int) -> list[Task[Run]]:
    dataset = Located("mnist", Path("/nowhere"), "cache", "5f" * 32, True, 60_000, 10_000)
    course = ScheduledWorkload(catalog.find("mnist-mlp512"), dataset, number)
    return in_rounds([(course, [Side("numpy", style, "cpu", THIS) for style in ("idiomatic", "fast")])], Settings())


class Machine:
    """Carries out tasks: ``fast`` takes a second, ``idiomatic`` what the noise makes of two."""

    def __init__(self, seconds: list[float], fails_in: int | None = None) -> None:
        self._seconds, self._fails_in = seconds, fails_in
        self.rounds: list[int] = []

    def __call__(self, tasks: list[Task[Run]]) -> list[Record]:
        return [self._record(task) for task in tasks]

    def _record(self, task: Task[Run]) -> Record:
        round_, style = task.first.round, task.first.side.style
        self.rounds.append(round_)
        seconds = 1.0 if style == "fast" else self._seconds[round_ % len(self._seconds)]
        status = "failed" if round_ == self._fails_in else "ok"
        return a_record(style=style, round=round_, seconds=(4.0, seconds, seconds), status=status)


def test_rounds_go_on_until_the_interval_is_narrow() -> None:
    machine = Machine(WIDE + [2.0] * 100)
    records = rounds_until_stable(planned(3), machine, percent=5)
    last = machine.rounds[-1]
    assert 5 < last + 1 < 50
    found = widest(records)
    assert found is not None
    assert found <= 0.05
    before = widest([record for record in records if record.round < last])
    assert before is not None
    assert before > 0.05, "it stopped as soon as it could"


def test_what_is_stable_at_once_gets_no_more() -> None:
    machine = Machine(NARROW)
    assert len(rounds_until_stable(planned(5), machine, percent=5)) == 10


def test_it_ends_at_the_most_rounds() -> None:
    told: list[str] = []
    machine = Machine(WIDE)
    rounds_until_stable(planned(3), machine, percent=0.1, most_rounds=6, told=told.append)
    assert max(machine.rounds) == 5
    assert len(told) == 4
    assert "was not reached" in told[-1]


def test_a_failure_ends_it() -> None:
    machine, told = Machine(WIDE, fails_in=3), []
    rounds_until_stable(planned(3), machine, percent=0.1, told=told.append)
    assert max(machine.rounds) == 3
    assert "a run failed" in told[-1]


def test_a_failure_in_the_planned_rounds_ends_it_there() -> None:
    machine = Machine(WIDE, fails_in=1)
    rounds_until_stable(planned(3), machine, percent=0.1)
    assert max(machine.rounds) == 2


@pytest.mark.parametrize("planned_rounds", [1, 2, 3])
def test_few_rounds_that_happen_to_agree_are_not_enough(planned_rounds: int) -> None:
    machine = Machine([2.0])
    assert len(rounds_until_stable(planned(planned_rounds), machine, percent=5)) == 2 * 5


def test_where_nothing_is_compared_the_epochs_count() -> None:
    assert widest(rounds(NARROW)) == pytest.approx((2.02 / 1.98) ** 0.5 - 1)


def test_without_an_interval_nothing_is_known() -> None:
    assert widest(rounds([2.0])) is None
