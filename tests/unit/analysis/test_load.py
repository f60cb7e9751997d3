"""The utilisation, in as many windows as can be drawn."""

from __future__ import annotations

import pytest

from tests.records import a_record
from trainmark.analysis.load import load_of
from trainmark.record.record import Record, Samples


def watched(rows: int, *, seconds: float = 2.0, round: int = 0) -> Record:
    samples = Samples(
        interval_seconds=0.5,
        t=[0.5 * (row + 1) for row in range(rows)],
        cpu_percent=[[float(row), 100.0] for row in range(rows)],
        tree_cpu_percent=[None if row % 2 else 50.0 for row in range(rows)],
        gpu_percent=[[10.0], *([[]] * (rows - 1))],
    )
    return a_record(samples=samples, seconds=(4.0, seconds, seconds), round=round)


def test_few_samples_are_drawn_as_they_are() -> None:
    load = load_of([watched(4)])
    assert load is not None
    assert load.rows == len(load.windows)
    assert [(each.start, each.end) for each in load.windows] == [
        (0.0, 0.5),
        (0.5, 1.0),
        (1.0, 1.5),
        (1.5, 2.0),
    ]
    assert load.windows[3].cores == (3.0, 100.0)
    assert [each.tree_cpu for each in load.windows] == [50.0, None, 50.0, None]
    assert load.windows[0].gpus == (10.0,)
    assert load.windows[1].gpus == ()


def test_many_are_drawn_as_means_of_neighbours() -> None:
    load = load_of([watched(1000)])
    assert load is not None
    assert load.rows > len(load.windows)
    assert len(load.windows) == 112
    assert load.windows[0].cores == (4.0, 100.0), "of 0 to 8"
    assert load.windows[-1].end == 500.0
    assert all(a.end == b.start for a, b in zip(load.windows, load.windows[1:], strict=False))
    means = [(each.end - each.start) * (each.cores[0] or 0) for each in load.windows]
    assert sum(means) == pytest.approx(0.5 * sum(range(1000)))


def test_the_run_in_the_middle_stands_for_all() -> None:
    runs = [watched(4, seconds=each, round=number) for number, each in enumerate((3.0, 1.0, 2.0))]
    load = load_of([*runs, a_record(seconds=(1.0, 2.0), round=4)])
    assert load is not None
    assert load.record.round == 2


def test_nothing_was_seen() -> None:
    assert load_of([]) is None
    assert load_of([a_record()]) is None
    assert load_of([watched(1)]) is None


def test_many_cores_are_drawn_in_fewer_windows() -> None:
    samples = Samples(
        0.5, [0.5 * row for row in range(1000)], cpu_percent=[[50.0] * 128 for _ in range(1000)]
    )
    load = load_of([a_record(samples=samples)])
    assert load is not None
    assert len(load.windows) * 128 <= 4_100
