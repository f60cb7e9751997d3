from __future__ import annotations

from dataclasses import dataclass, field
from types import SimpleNamespace
from typing import Any

import pytest

from trainmark.measure.cpu import Core, Usage
from trainmark.measure.sampler import Readers, Row, Sampler, load_between, samples
from trainmark.measure.vendor import GpuReading


@dataclass
class Machine:
    """Two cores, the first busy all the time, and a process that takes one and a half."""

    now: float = 100.0
    gone: bool = False
    gpus: tuple[GpuReading, ...] = ()
    looks: int = field(default=0)

    def clock(self) -> float:
        return self.now

    def sampler(self, **changes: Any) -> Sampler:
        def cores() -> tuple[Core, ...]:
            self.looks += 1
            return Core(self.now, 0.0, self.now), Core(0.25 * self.now, 0.1 * self.now, self.now)

        readers = Readers(
            cores=cores,
            tree=lambda pid: self,  # type: ignore[arg-type, return-value]
            cpu_joules=lambda: None,
            cpu_hertz=lambda: None,
            gpus=lambda: self.gpus,
        )
        return Sampler(readers, clock=self.clock, **changes)

    def usage(self) -> Usage | None:
        return None if self.gone else Usage(1.5 * self.now, 2**20)

    def proportional_bytes(self) -> int:
        return 2**19


def run(machine: Machine, sampler: Sampler, seconds: float, step: float = 0.1) -> None:
    for _ in range(round(seconds / step)):
        machine.now += step
        sampler.sample()


def test_samples_come_at_the_interval_on_the_clock_of_the_epochs() -> None:
    machine = Machine()
    sampler = machine.sampler()
    sampler.watch(1)
    run(machine, sampler, 2.0)
    taken = sampler.take(origin=99.0)
    assert taken is not None
    assert taken.interval_seconds == 0.2
    assert taken.t == pytest.approx([1 + 0.2 * index for index in range(11)])


def test_shares_are_of_the_time_between_rows() -> None:
    machine = Machine()
    sampler = machine.sampler()
    sampler.watch(1)
    run(machine, sampler, 0.4)
    taken = sampler.take(origin=100.0)
    assert taken is not None
    assert taken.cpu_percent == [
        [],
        [pytest.approx(100), pytest.approx(25)],
        [pytest.approx(100), pytest.approx(25)],
    ]
    assert taken.stolen_percent == [None, pytest.approx(5), pytest.approx(5)]
    assert taken.tree_cpu_percent == [None, pytest.approx(150), pytest.approx(150)]
    assert taken.tree_resident_bytes == [2**20] * 3


def test_what_was_not_read_is_no_column() -> None:
    machine = Machine()
    sampler = machine.sampler()
    sampler.watch(1)
    run(machine, sampler, 1)
    taken = sampler.take(origin=100.0)
    assert taken is not None
    assert (taken.cpu_hertz, taken.cpu_joules, taken.gpu_percent, taken.gpu_joules) == (None,) * 4


def test_a_long_run_keeps_its_bound_and_its_whole_length() -> None:
    machine = Machine()
    sampler = machine.sampler(most_rows=10)
    sampler.watch(1)
    run(machine, sampler, 30.0)
    taken = sampler.take(origin=100.0)
    assert taken is not None
    assert len(taken.t) <= 10
    assert taken.interval_seconds == pytest.approx(6.4)
    assert (taken.t[0], taken.t[-1]) == (0.0, pytest.approx(30.0))
    gaps = [later - earlier for earlier, later in zip(taken.t, taken.t[1:], strict=False)]
    assert max(gaps) <= 2 * taken.interval_seconds
    assert taken.tree_cpu_percent is not None
    assert taken.tree_cpu_percent[1:] == pytest.approx([150.0] * (len(gaps))), (
        "work between thrown rows counts"
    )


def test_repeats_in_one_process_follow_from_one_another() -> None:
    machine = Machine()
    sampler = machine.sampler()
    sampler.watch(1)
    run(machine, sampler, 1.0)
    first = sampler.take(origin=100.0)
    run(machine, sampler, 1.0)
    second = sampler.take(origin=100.0)
    assert first is not None
    assert second is not None
    assert second.t[0] == first.t[-1]
    assert second.t[-1] == pytest.approx(2.0)


def test_another_process_begins_anew() -> None:
    machine = Machine()
    sampler = machine.sampler()
    sampler.watch(1)
    run(machine, sampler, 1.0)
    machine.now = 200.0
    sampler.watch(2)
    run(machine, sampler, 1.0)
    taken = sampler.take(origin=200.0)
    assert taken is not None
    assert taken.t[0] == 0


def test_a_process_that_ends_before_the_second_sample() -> None:
    machine = Machine()
    sampler = machine.sampler()
    sampler.watch(1)
    assert sampler.take(origin=100.0) is None


def test_a_process_that_is_gone_has_no_share() -> None:
    machine = Machine()
    sampler = machine.sampler()
    sampler.watch(1)
    run(machine, sampler, 0.2)
    machine.gone = True
    machine.now += 0.2
    taken = sampler.take(origin=100.0)
    assert taken is not None
    assert taken.tree_cpu_percent == [None, pytest.approx(150), None]
    assert taken.tree_resident_bytes == [2**20, 2**20, None]


def test_a_clock_that_jumps_ahead_makes_no_burst() -> None:
    machine = Machine()
    sampler = machine.sampler()
    sampler.watch(1)
    machine.now += 3600
    run(machine, sampler, 1.0)
    assert machine.looks <= 9


def test_a_clock_that_goes_back_begins_anew() -> None:
    machine = Machine()
    sampler = machine.sampler()
    sampler.watch(1)
    run(machine, sampler, 1.0)
    machine.now -= 50
    run(machine, sampler, 1.0)
    taken = sampler.take(origin=0.0)
    assert taken is not None
    assert taken.t == sorted(taken.t)
    assert taken.t[0] < 60


def test_a_gpu_that_disappears_and_one_that_tells_little() -> None:
    machine = Machine(gpus=(GpuReading(percent=90.0, watts=300.0), GpuReading(percent=10.0)))
    sampler = machine.sampler()
    sampler.watch(1)
    machine.gpus = (GpuReading(), GpuReading(percent=20.0))
    run(machine, sampler, 0.2)
    machine.gpus = ()
    run(machine, sampler, 0.2)
    taken = sampler.take(origin=100.0)
    assert taken is not None
    assert taken.gpu_percent == [[90.0, 10.0], [None, 20.0], [None, None]]
    assert taken.gpu_watts == [[300.0, None], [None, None], [None, None]]
    assert taken.gpu_fan_percent is None


def test_time_that_got_lost_with_an_orphan_is_no_negative_share() -> None:
    rows = [
        Row(0.0, tree=Usage(5.0, 1)),
        Row(1.0, tree=Usage(3.0, 1)),
        Row(2.0, tree=Usage(4.0, 1)),
    ]
    taken = samples(rows, 0.0, 1.0)
    assert taken is not None
    assert taken.tree_cpu_percent == [None, None, 100.0]


def test_a_core_that_is_switched_off() -> None:
    two = (Core(1, 0, 1), Core(1, 0, 1))
    one = (Core(2, 0, 2),)
    taken = samples([Row(0.0, two), Row(1.0, one), Row(2.0, (Core(2.5, 0, 3),))], 0.0, 1.0)
    assert taken is not None
    assert taken.cpu_percent == [[], [], [50.0]]
    assert taken.stolen_percent == [None, None, 0.0]


IDLE = Core(0.0, 0.0, 0.0)
BUSY = Core(1.0, 0.0, 1.0)


def load(
    cores: tuple[Core, ...], tree: float, *, own: float = 0.0, **arguments: Any
) -> SimpleNamespace:
    """Over a second that began with all cores at 0."""
    before = Row(10.0, tuple(IDLE for _ in cores), Usage(5.0, 0))
    after = Row(11.0, cores, Usage(5.0 + tree, 0), own_seconds=own)
    return SimpleNamespace(
        **load_between(before, after, **{"usable": range(len(cores)), **arguments})
    )


def test_time_of_a_side_and_of_trainmark_is_not_time_of_others() -> None:
    assert load((BUSY, BUSY), 1.9, own=0.1).others_share == pytest.approx(0.0)


def test_a_busy_neighbour_takes_its_share_of_the_cores() -> None:
    assert load((BUSY, BUSY), 1.0).others_share == pytest.approx(0.5)


def test_a_paused_side_is_no_neighbour() -> None:
    found = load((BUSY, BUSY), 1.5, idle_seconds=0.5)
    assert found.others_share == pytest.approx(0.0)
    assert found.idle_share == pytest.approx(0.25)


def test_only_the_usable_cores_count() -> None:
    """Two of four cores may be used; others keep the other two busy."""
    idle = Core(0.0, 0.0, 1.0)
    assert load((BUSY, idle, BUSY, BUSY), 1.0, usable=(0, 1)).others_share == pytest.approx(0.0)
    assert load((BUSY, BUSY, idle, idle), 1.0, usable=(0, 1)).others_share == pytest.approx(0.5)


def test_stolen_time_is_separate() -> None:
    stolen = Core(0.5, 0.5, 1.0)
    found = load((stolen, stolen), 1.0)
    assert (found.others_share, found.stolen_share) == (pytest.approx(0.0), pytest.approx(0.5))


def test_cores_that_no_side_uses_are_spare() -> None:
    assert load((BUSY, BUSY), 1.0, threads=1).spare_share == pytest.approx(0.5)
    assert load((BUSY, BUSY), 2.0, threads=8).spare_share == 0.0
    assert load((BUSY, BUSY), 2.0).spare_share == 0.0


def test_of_a_process_that_cannot_be_read_nothing_is_claimed() -> None:
    before = Row(10.0, (IDLE,), None)
    after = Row(11.0, (BUSY,), None)
    assert load_between(before, after, (0,))["others_share"] is None
