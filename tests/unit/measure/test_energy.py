from __future__ import annotations

import functools
from typing import Any

import pytest

from trainmark.measure import energy as energies
from trainmark.measure.energy import training_windows
from trainmark.measure.nvidia import Nvidia
from trainmark.record.record import Energy, Epoch, Samples, Window

energy = functools.partial(energies.energy, vendor=Nvidia())


def epoch(start: float, seconds: float) -> Epoch:
    return Epoch(index=0, start_seconds=start, seconds=seconds, steps=1, examples=1)


def seen(seconds: int = 40, **columns: Any) -> Samples:
    """A row every half second."""
    return Samples(
        interval_seconds=0.5, t=[0.5 * index for index in range(2 * seconds + 1)], **columns
    )


def growing(watts: float, seconds: int = 40) -> list[float | None]:
    return [1e6 + watts * 0.5 * index for index in range(2 * seconds + 1)]


def test_the_counter_of_the_cpu_between_the_edges_of_training() -> None:
    found = energy([epoch(10.25, 10.0)], seen(cpu_joules=growing(50)), None)
    assert found == Energy(pytest.approx(500), "RAPL, CPU packages")


def test_the_pause_of_an_evaluation_is_left_out() -> None:
    counter = growing(100)
    found = energy([epoch(5.0, 10.0), epoch(20.0, 10.0)], seen(cpu_joules=counter), None)
    assert found is not None
    assert found.joules == pytest.approx(2000)


def test_epochs_that_follow_at_once_are_one_window() -> None:
    assert training_windows([epoch(1, 1), epoch(2.005, 1), epoch(8, 1)]) == [(1, 3.005), (8, 9)]


def test_short_evaluations_are_no_training() -> None:
    epochs = [epoch(1 + 0.2 * index, 0.15) for index in range(100)]
    assert energy(epochs, seen(cpu_joules=growing(100)), None) == Energy(None, "RAPL, CPU packages")


def test_a_window_too_short_for_the_counter_has_no_joules() -> None:
    found = energy([epoch(10.2, 1.0)], seen(cpu_joules=growing(50)), None)
    assert found == Energy(None, "RAPL, CPU packages")


def test_of_the_gpu_that_trained() -> None:
    table = [[0.0, joules] for joules in growing(300)]
    found = energy([epoch(10, 10)], seen(gpu_joules=table, cpu_joules=growing(50)), 1)
    assert found == Energy(pytest.approx(3000), "NVML energy counter")


def test_watts_where_the_gpu_has_no_counter() -> None:
    watts = [[200.0 if 10 <= 0.5 * index <= 20 else 100.0] for index in range(81)]
    found = energy([epoch(10, 10)], seen(gpu_watts=watts), 0)
    assert found == Energy(pytest.approx(2000), "NVML power, integrated")


def test_a_gpu_that_was_lost_on_the_way() -> None:
    watts: list[list[float | None]] = [[200.0] for _ in range(81)]
    watts[30] = [None]
    assert energy([epoch(10, 10)], seen(gpu_watts=watts), 0) == Energy(
        None, "NVML power, integrated"
    )


def test_a_counter_that_began_anew() -> None:
    counter = growing(50)
    counter[50:] = [0.0] * len(counter[50:])
    found = energy([epoch(10, 20)], seen(cpu_joules=counter), None)
    assert found is not None
    assert found.joules is None


def test_training_that_goes_on_after_the_last_row() -> None:
    found = energy([epoch(30, 20)], seen(cpu_joules=growing(50)), None)
    assert found is not None
    assert found.joules is None


@pytest.mark.parametrize("samples", [None, seen()])
def test_without_a_counter_there_is_no_energy(samples: Samples | None) -> None:
    assert energy([epoch(10, 10)], samples, None) is None
    assert energy([epoch(10, 10)], samples, 0) is None


def in_turns(read_at_edges: bool) -> tuple[Epoch, Samples]:
    """Twenty turns of 0.1 s at 100 W; the other side's, in between, draw 300 W."""
    windows = [Window(1 + 0.2 * turn, 0.1) for turn in range(20)]
    epoch = Epoch(index=0, start_seconds=1.0, seconds=2.0, steps=1, examples=1, windows=windows)
    times = [0.0]
    joules = [0.0]
    now = 0.0
    used = 0.0
    for each in windows:
        for at, watts in ((each.start_seconds - 0.001, 300.0), (each.start_seconds + 0.101, 100.0)):
            used += watts * (at - now)
            now = at
            if read_at_edges or len(times) % 4 == 0:
                times.append(at)
                joules.append(used)
    times.append(now + 5.0)
    joules.append(used + 1500.0)
    return epoch, Samples(interval_seconds=0.2, t=times, cpu_joules=list(joules))


def test_turns_are_measured_between_the_readings_at_their_edges() -> None:
    epoch, samples = in_turns(read_at_edges=True)
    found = energy([epoch], samples, None)
    assert found is not None
    assert found.joules == pytest.approx(200, rel=0.05), "without what the other side's turns draw"


def test_turns_without_readings_at_their_edges_have_no_joules() -> None:
    epoch, samples = in_turns(read_at_edges=False)
    assert energy([epoch], samples, None) == Energy(None, "RAPL, CPU packages")


def test_a_long_epoch_does_not_hide_the_turns_of_others() -> None:
    windows = [Window(0.0, 30.0), Window(30.2, 30.0)]
    paused = Epoch(index=0, start_seconds=0.0, seconds=60.0, steps=1, examples=1, windows=windows)
    assert len(training_windows([paused])) == 2
