"""Rounds go on until the verdict is decided, or the budget is spent."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from msgspec import structs

from tests.records import a_record, as_planned
from tests.unit.analysis.test_slices import a_round
from trainmark.analysis.slices import FEWEST_BLOCKS
from trainmark.data.locate import Located
from trainmark.errors import UsageError
from trainmark.execute.parent.opening import OpeningListener
from trainmark.execute.parent.plan import Run, ScheduledWorkload, Settings, Side
from trainmark.execute.parent.probe import THIS
from trainmark.execute.parent.task import Task, in_rounds
from trainmark.measure.neighbours import HostLoad, Neighbour, Neighbours
from trainmark.record.record import Record
from trainmark.study.rounds import BLOCKS, LOOKS, Budget, _comparisons, rounds_within, slices_alone
from trainmark.workload import catalog


def planned(
    number: int, *more: Side, workload: str = "mnist-mlp512", steps: int | None = None
) -> list[Task[Run]]:
    dataset = Located("mnist", Path("/nowhere"), "cache", "5f" * 32, True, 60_000, 10_000)
    trained = catalog.find(workload)
    if steps is not None:
        trained = trained.with_schedule(steps=steps)
    scheduled = ScheduledWorkload(trained, dataset, number)
    sides = [Side("numpy", style, "cpu", THIS) for style in ("idiomatic", "fast")]
    return in_rounds([(scheduled, [*sides, *more])], Settings())


PACE = 0.0002
"""Seconds of an example."""


class Quiet(Neighbours):
    """No one; or a busy one."""

    def __init__(self) -> None:
        self.busy: list[Neighbour] = []
        self.stolen = 0.0
        self.waiting = None

    def load(self, seconds: float = 0.2) -> HostLoad:
        return HostLoad(min(sum(each.cores for each in self.busy), 1.0), self.stolen, self.waiting)

    def busiest(self, most: int = 3) -> list[Neighbour]:
        return self.busy[:most]


class Machine:
    """Carries out rounds of ten seconds each. Two rounds with an opening take twelve: one second
    for the opening of each and five for each training.

    Args:
        ratios: of the rounds, over and over.
        fails_in: a round in which a side fails.
        wobble: by how much blocks differ.
        others: the share of the cores that others take.
        training: the seconds of a training after an opening.
    """

    def __init__(
        self,
        ratios: list[float],
        fails_in: int | None = None,
        wobble: float = 0.0,
        others: float = 0.0,
        training: float = 5.0,
    ) -> None:
        self._training = training
        self._ratios = ratios
        self._fails_in = fails_in
        self._wobble = wobble
        self._others = others
        self.now = 0.0
        self.said = []
        self.neighbours = Quiet()
        self.rounds: list[int] = []
        self.blocks: list[int | None] = []
        self.events: list[str] = []
        self.decided: list[set[str]] = []
        self.sides: list[set[str]] = []
        self.workloads: list[str] = []

    def __call__(
        self, tasks: list[Task[Run]], opening: OpeningListener | None = None, /
    ) -> list[Record]:
        numbers = sorted({task.round for task in tasks})
        self.workloads += dict.fromkeys(task.first.scheduled.workload.name for task in tasks)
        if opening is not None:
            self._open(tasks, numbers, opening)
        records: list[Record] = []
        for place, number in enumerate(numbers):
            goes_on = True
            most = None
            of_round = [task for task in tasks if task.round == number]
            if opening is not None:
                most = opening.most_blocks(of_round[0].first.blocks)
                goes_on = opening.continues(is_first=place == 0)
                self.events.append(
                    f"{number}: {'continues' if goes_on else 'stops'}, {most} blocks"
                )
                seconds = self._training if most is None else 5.0
                self.now += seconds if goes_on else 0.0
            else:
                self.now += 10.0
            self.rounds.append(number)
            self.blocks += [task.first.blocks for task in of_round]
            self.sides.append({task.first.side.backend for task in of_round})
            self.decided.append({task.first.side.style for task in of_round if task.first.decided})
            for task in of_round:
                record = self._record(task.first)
                if (
                    opening is not None
                    and record.outcome.status == "failed"
                    and task.first.side.backend == "numpy"
                ):
                    slices = structs.replace(self._record(task.first, fails=False), epochs=[])
                    records.append(slices)
                    record = structs.replace(
                        record, id=f"{slices.id}-training", slices_in=slices.id
                    )
                has_slices_alone = most is not None or not goes_on
                is_short = has_slices_alone and record.outcome.status == "ok"
                records.append(structs.replace(record, epochs=[]) if is_short else record)
        return records

    def _open(self, tasks: list[Task[Run]], numbers: list[int], opening: OpeningListener) -> None:
        self.now += 1.0 * len(numbers)
        every = [
            (task, structs.replace(self._record(task.first, fails=False), epochs=[]))
            for task in tasks
            if task.first.side.backend != "torch"
        ]
        self.events.append(f"opened {numbers}, {len(every) // len(numbers)} sides")
        ids = opening.opened(every)
        self.events.append(
            f"decided {sorted({record.backend.style for _, record in every if record.id in ids})}"
        )

    def _record(self, run: Run, *, fails: bool | None = None) -> Record:
        """The record of a run; by default, those of PyTorch fail, and one of the others in one
        round."""
        ratio = self._ratios[run.round % len(self._ratios)]
        slow = [PACE * ratio * (1 + self._wobble * (-1) ** (place // 2)) for place in range(8)]
        if fails is None:
            fails = run.side.backend == "torch" or (run.side.style, run.round) == (
                "fast",
                self._fails_in,
            )
        if fails:
            return as_planned(
                a_record(round=run.round, status="failed", id=f"failed-{run.round}"), run
            )
        both = a_round(run.round, slow, [PACE] * 8, [self._others] * 4)
        record = next(each for each in both if each.backend.style == run.side.style)
        return as_planned(structs.replace(record, id=f"{run.side.style}-{run.round}"), run)

    def measure(
        self,
        rounds: int = 3,
        seconds: float = 1000.0,
        *more: Side,
        to_the_end: bool = False,
        keeps_repeats: bool = True,
        steps: int | None = None,
    ) -> int:
        """The number of rounds that it took; ``steps`` is the length of a training."""
        tasks = planned(rounds, *more, steps=steps)
        if not to_the_end:
            tasks = [slices_alone(task) for task in tasks]
        budget = Budget(seconds, keeps_repeats=keeps_repeats)
        rounds_within(
            budget, tasks, self, self.said.append, lambda: self.now, neighbours=self.neighbours
        )
        return len(self.rounds)


def test_what_is_clear_after_the_planned_rounds_gets_no_more() -> None:
    machine = Machine([2.0, 2.02, 1.98])
    assert machine.measure() == 3
    assert "decided" in machine.said[-1]


def test_a_small_difference_takes_more_rounds_and_ends_at_a_look() -> None:
    machine = Machine([1.03, 1.05, 1.07, 1.04, 1.06])
    assert machine.measure() in LOOKS[1:]
    assert set(machine.blocks[:6]) == {BLOCKS}
    assert set(machine.blocks[6:]) == {FEWEST_BLOCKS}, "rounds differ, and blocks don't"
    assert any(
        "the verdict is open; the budget can show differences from about" in text
        for text in machine.said
    )
    assert machine.rounds == list(range(len(machine.rounds)))


def test_an_obvious_difference_is_reported_after_the_opening() -> None:
    machine = Machine([3.0, 3.2, 3.1])
    assert machine.measure(to_the_end=True) == 3
    assert machine.events[:2] == ["opened [0, 1], 2 sides", "decided ['fast', 'idiomatic']"]
    assert machine.said[0] == (
        "after 2.00 s: idiomatic is at least 1.81× slower per step than fast (3.10× in two "
        "rounds); learning not "
        "judged yet (mnist-mlp512 with numpy on cpu)."
    )
    assert machine.said[-1].endswith("the verdict is decided")


def test_decided_sides_train_and_take_part_in_no_blocks() -> None:
    machine = Machine([3.0, 3.2, 3.1])
    machine.measure(to_the_end=True)
    assert machine.decided == [set(), set(), {"fast", "idiomatic"}]


def test_a_smaller_difference_is_open_after_the_opening() -> None:
    machine = Machine([1.5, 1.52, 1.48])
    machine.measure(to_the_end=True)
    assert machine.events[1] == "decided []"
    assert "in too few rounds for a verdict; learning not judged yet" in machine.said[0]
    assert machine.decided[2] == set()


@pytest.mark.parametrize(("seconds", "only_kept"), [(1000.0, False), (0.5, True)])
def test_peaks_come_after_the_answer_if_there_is_time(seconds: float, only_kept: bool) -> None:
    machine = Machine([3.0])
    said: list[tuple[int, bool]] = []

    def measure_peaks(*, only_kept: bool = False) -> None:
        said.append((len(machine.said), only_kept))

    rounds_within(
        Budget(seconds),
        planned(3),
        machine,
        machine.said.append,
        lambda: machine.now,
        neighbours=Quiet(),
        measure_peaks=measure_peaks,
    )
    assert said == [(1, only_kept)]


def test_one_planned_training_is_opened_with_a_round_of_slices() -> None:
    machine = Machine([3.0, 3.2])
    assert machine.measure(rounds=1, to_the_end=True) == 2
    assert machine.blocks == [None, None, BLOCKS, BLOCKS]
    assert machine.said[-1].endswith("after 2 rounds in 7.00 s the verdict is decided")


def test_trainings_that_were_not_requested_end_with_the_budget() -> None:
    machine = Machine([3.0, 3.2])
    assert machine.measure(seconds=8.0, to_the_end=True, keeps_repeats=False, steps=20) == 2
    assert machine.events[2:] == ["0: continues, None blocks", "1: stops, None blocks"]
    cut = [text for text in machine.said if "allows" in text]
    assert cut == [
        "the budget of 8.00 s allows 1 of 3 trainings per side; --budget 0 runs all of them"
    ]


def test_trainings_that_would_not_fit_have_slices_alone() -> None:
    machine = Machine([1.5])
    machine.measure(seconds=60.0, to_the_end=True, keeps_repeats=False, steps=100_000)
    assert [event.split(", ")[0] for event in machine.events[2:]] == [
        "0: continues",
        "1: continues",
    ]
    assert "None blocks" not in str(machine.events)
    assert None not in machine.blocks[4:], "no further training begins"
    assert machine.now <= 60.0
    (cut,) = [text for text in machine.said if "allows" in text]
    assert re.fullmatch(
        r"the budget of 60.0 s allows 0 of 3 trainings per side "
        r"\(one takes about \d+ min(?: \d+ s)? with mnist-mlp512 .*\), so "
        r"learning is not judged; --budget 0 runs all of them",
        cut,
    )


def test_two_workloads_share_the_time() -> None:
    """The first one could be trained as a whole if it had all of the time."""
    machine = Machine([1.5])
    tasks = [*planned(1, steps=20_000), *planned(1, workload="mnist-mlp128", steps=20)]
    rounds_within(
        Budget(120.0, keeps_repeats=False),
        tasks,
        machine,
        clock=lambda: machine.now,
        neighbours=Quiet(),
    )
    of_rounds = [event for event in machine.events if "blocks" in event]
    assert ["None blocks" in event for event in of_rounds] == [False, False, True, False]


def test_an_answer_that_had_no_time_says_what_it_needs() -> None:
    said: list[str] = []

    def one_round(tasks: list[Task[Run]], _: OpeningListener | None = None, /) -> list[Record]:
        """The second round was ended before it had a result."""
        machine.now = 30.0
        first = [task for task in tasks if task.round == tasks[0].round]
        return [machine._record(task.first, fails=False) for task in first]

    machine = Machine([1.5])
    budget = Budget(30.0, keeps_repeats=False)
    rounds_within(
        budget, planned(3), one_round, said.append, lambda: machine.now, neighbours=Quiet()
    )
    (missing,) = [text for text in said if "too short" in text]
    found = re.search(r"they take about .* s: --budget (\d+)$", missing)
    assert found is not None and int(found[1]) > 30


def test_a_side_without_a_result_is_named_without_a_number() -> None:
    said: list[str] = []

    def one_side(tasks: list[Task[Run]], _: OpeningListener | None = None, /) -> list[Record]:
        machine.now = 30.0
        return [machine._record(tasks[0].first, fails=False)]

    machine = Machine([1.5])
    budget = Budget(30.0, keeps_repeats=False)
    rounds_within(
        budget, planned(3), one_side, said.append, lambda: machine.now, neighbours=Quiet()
    )
    (missing,) = [text for text in said if "too short" in text]
    assert missing.endswith("nothing was measured of mnist-mlp512 numpy fast cpu"), missing


def test_trainings_that_were_requested_are_all_carried_out() -> None:
    assert Machine([3.0, 3.2]).measure(seconds=8.0, to_the_end=True) == 3


def test_without_a_budget_there_are_no_more_rounds_than_planned() -> None:
    machine = Machine([2.0, 2.02, 1.98])
    assert machine.measure(seconds=0.0, to_the_end=True) == 3
    assert machine.blocks == [None] * 6


def test_what_is_planned_is_trained_even_if_a_round_fails() -> None:
    machine = Machine([1.5], fails_in=0)
    assert machine.measure(to_the_end=True) == 3


def test_a_verdict_between_two_looks_does_not_end_it() -> None:
    machine = Machine([1.0, 2.0, 1.0, *[2.0] * 50])
    assert machine.measure() in LOOKS


@pytest.mark.parametrize(("seconds", "rounds"), [(0.0, 3), (39.0, 3), (40.0, 4), (75.0, 7)])
def test_no_round_begins_that_the_budget_does_not_allow(seconds: float, rounds: int) -> None:
    machine = Machine([0.5, 2.0])
    assert machine.measure(seconds=seconds) == rounds
    assert bool(machine.said) == bool(seconds)


def test_one_planned_round_is_followed_by_others() -> None:
    assert Machine([0.5, 2.0]).measure(rounds=1, seconds=50.0) == 5


def test_a_long_training_leaves_time_for_short_rounds() -> None:
    """Further rounds are slices alone: after two trainings of 60 s each, 23 s are
    enough for two.."""
    assert Machine([0.5, 2.0], training=60.0).measure(2, 145.0, to_the_end=True) == 4


def test_after_a_failure_there_are_no_more() -> None:
    assert Machine([0.5, 2.0], fails_in=4).measure() == 5


def test_a_side_that_fails_leaves_the_others_their_rounds() -> None:
    machine = Machine([0.5, 2.0])
    broken = Side("torch", "idiomatic", "cuda:0", THIS)
    assert machine.measure(2, 100.0, broken, to_the_end=True) > 2
    assert machine.sides[:2] == [{"numpy", "torch"}] * 2, "both rounds of the opening have started"
    assert machine.sides[2:] == [{"numpy"}] * len(machine.sides[2:])


def test_a_training_that_fails_after_its_opening_ends_its_side() -> None:
    """Its slices have a their own record, which is no run that succeeded."""
    machine = Machine([1.2], fails_in=0)
    machine.measure(1, 100.0, to_the_end=True)
    assert machine.rounds == [0, 1], "the other side has nothing to be compared with"
    assert "the verdict is decided" not in " ".join(machine.said)


def test_nothing_begins_after_the_limit() -> None:
    machine = Machine([1.5])
    tasks = [*planned(1), *planned(1, workload="mnist-mlp128")[:1]]
    rounds_within(
        Budget(1.0, keeps_repeats=False),
        tasks,
        machine,
        clock=lambda: machine.now,
        neighbours=Quiet(),
    )
    assert machine.workloads == ["mnist-mlp512"]


def test_a_round_gets_more_blocks_if_only_blocks_differ() -> None:
    machine = Machine([0.96, 1.04, 1.0], wobble=0.2)
    machine.measure(seconds=100.0)
    found = [blocks for blocks in machine.blocks[6:] if blocks is not None]
    assert max(found) > BLOCKS


@pytest.mark.slow
def test_the_disturbing_process_is_named_before_and_after() -> None:
    machine = Machine([1.0], others=0.5)
    machine.neighbours.busy = [Neighbour("encode", 4711, 0.98), Neighbour("backup", 12, 0.2)]
    machine.measure()
    assert machine.said[0] == (
        "note: 100 % of the CPU is in use by others (encode (pid 4711) uses 98 % of a core, "
        "backup (pid 12) uses 20 % "
        "of a core); stop other programs, or measure later"
    )
    assert machine.said[-1].endswith(
        "encode (pid 4711) used 98 % of a core, backup (pid 12) used 20 % of a core"
    )
    machine = Machine([1.0], others=0.5)
    machine.measure()
    assert not machine.said[0].startswith("note")
    assert (
        "other processes disturbed" in machine.said[-1]
        and "can't be seen from here" in machine.said[-1]
    )


def test_disturbances_are_reported_after_the_first_round() -> None:
    machine = Machine([1.0], others=0.5)
    machine.measure()
    assert re.match(r"other processes disturbed (\d+) of \1 blocks", machine.said[0])


def test_load_by_others_is_reported_before_the_first_round() -> None:
    machine = Machine([1.0])
    machine.neighbours.stolen = 0.3
    machine.neighbours.waiting = 0.45
    machine.measure()
    facts = machine.said[0].split("; ")
    assert facts[:3] == [
        "note: 30 % of the CPU is in use by others",
        "the host of this virtual machine takes 30 %",
        "processes wait for a core 45 % of the time",
    ]


def test_threads_for_the_free_cores_are_suggested(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("trainmark.study.rounds.usable_core_numbers", lambda: (0, 1, 2, 3))
    machine = Machine([1.0], others=0.5)
    machine.neighbours.busy = [Neighbour("encode", 4711, 0.6)]
    machine.measure()
    assert machine.said[0].startswith("note: 60 % of the CPU is in use by others")
    assert machine.said[0].endswith("; --threads 1 would be steadier")


def test_other_peoples_processes_are_neighbours_but_not_our_own() -> None:
    loop = f"{sys.executable} -c 'while True: pass'"
    theirs = int(
        subprocess.run(
            f"{loop} >&- 2>&- & echo $!", shell=True, capture_output=True, check=True
        ).stdout
    )
    with subprocess.Popen([sys.executable, "-c", "while True: pass"]) as mine:
        try:
            neighbours = Neighbours()
            deadline = time.monotonic() + 100
            while theirs not in (pids := [each.pid for each in neighbours.busiest(most=1000)]):
                assert time.monotonic() < deadline
                time.sleep(0.1)
            assert mine.pid not in pids
        finally:
            os.kill(theirs, signal.SIGKILL)
            mine.kill()


@pytest.mark.parametrize(
    "wrong", [{"seconds": -1.0}, {"seconds": float("inf")}, {"margin": float("nan")}]
)
def test_a_budget_that_is_none(wrong: dict[str, float]) -> None:
    with pytest.raises(UsageError, match="out of bounds"):
        Budget(**wrong)


def test_a_verdict_by_whole_runs_ends_no_rounds() -> None:
    """Their interval is one of 95 %, which can't be looked at several times."""
    rounds: list[int] = []

    def whole_runs(tasks: list[Task[Run]], _: OpeningListener | None = None, /) -> list[Record]:
        rounds.extend(sorted({task.round for task in tasks}))
        return [
            as_planned(a_record(seconds=(pace, pace, pace), round=task.round), task.first)
            for task in tasks
            for pace in [2.0 if task.first.side.style == "fast" else 1.0]
        ]

    clock = iter(float(10 * number) for number in range(1000))
    tasks = [slices_alone(task) for task in planned(3)]
    rounds_within(Budget(500.0), tasks, whole_runs, clock=lambda: next(clock), neighbours=Quiet())
    assert len(rounds) > max(LOOKS[:2])


def test_workloads_are_compared_each_with_itself() -> None:
    """The second one is five times as slow, which does not depend on its sides."""
    machine = Machine([1.0])
    first = machine([slices_alone(task) for task in planned(3)])
    other = [
        structs.replace(
            each,
            workload=structs.replace(each.workload, name="other", step_fingerprint="other"),
            slices=[structs.replace(one, seconds=5 * one.seconds) for one in each.slices],
        )
        for each in first
    ]
    both = [sliced.kept for sliced in _comparisons([*first, *other])]
    assert both == [sliced.kept for sliced in _comparisons(first)] * 2
