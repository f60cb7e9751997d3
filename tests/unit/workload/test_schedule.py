from __future__ import annotations

import pytest

from trainmark.workload import catalog
from trainmark.workload.decode import Misfit
from trainmark.workload.schedule import Batches, Schedule, epoch_sizes


def test_mnist_mlp512_makes_469_steps_an_epoch_the_last_of_96() -> None:
    workload = catalog.find("mnist-mlp512").with_schedule(
        epochs=20, steps=None, steps_per_epoch=None
    )
    epochs = epoch_sizes(workload.schedule, workload.batches, 60_000)
    assert len(epochs) == 20
    assert {len(epoch) for epoch in epochs} == {469}
    assert set(epochs[0][:-1]) == {128}
    assert epochs[0][-1] == 96
    assert sum(len(epoch) for epoch in epochs) == 9_380


@pytest.mark.parametrize(
    ("schedule", "batches", "examples", "sizes"),
    [
        (Schedule(1), Batches(4), 10, ((4, 4, 2),)),
        (Schedule(1), Batches(4), 8, ((4, 4),)),
        (Schedule(1), Batches(4, "drop"), 10, ((4, 4),)),
        (Schedule(1), Batches(40), 10, ((10,),)),
        (Schedule(2), Batches("full"), 10, ((10,), (10,))),
        (Schedule(2, dataset_repeats=3), Batches("full"), 10, ((10, 10, 10), (10, 10, 10))),
        (Schedule(1, dataset_repeats=2), Batches(4), 10, ((4, 4, 2, 4, 4, 2),)),
        (Schedule(1, dataset_repeats=2), Batches(4, "drop"), 10, ((4, 4, 4, 4),)),
        (Schedule(1, steps=4), Batches(4), 10, ((4, 4, 2), (4,))),
        (Schedule(9, steps=4), Batches(4), 10, ((4, 4, 2), (4,))),
        (Schedule(9, steps=3), Batches(4), 10, ((4, 4, 2),)),
        (Schedule(9, steps=2), Batches(4), 10, ((4, 4),)),
        (Schedule(2, steps_per_epoch=2), Batches(4), 10, ((4, 4), (4, 4))),
        (Schedule(1, steps_per_epoch=9), Batches(4), 10, ((4, 4, 2),)),
        (Schedule(9, steps=3, steps_per_epoch=2), Batches(4), 10, ((4, 4), (4,))),
    ],
)
def test_the_steps_of_a_run(
    schedule: Schedule, batches: Batches, examples: int, sizes: tuple[tuple[int, ...], ...]
) -> None:
    assert epoch_sizes(schedule, batches, examples) == sizes


@pytest.mark.parametrize("schedule", [Schedule(2), Schedule(2, steps=5)])
def test_fewer_examples_than_one_whole_batch_are_no_epoch_at_all(schedule: Schedule) -> None:
    assert epoch_sizes(schedule, Batches(128, "drop"), 100) == ()


@pytest.mark.parametrize("field", ["epochs", "steps", "steps_per_epoch", "dataset_repeats"])
def test_counts_are_above_zero(field: str) -> None:
    with pytest.raises(Misfit) as caught:
        Schedule(**({"epochs": 1} | {field: 0}))
    assert caught.value.path == (field,)


def test_a_batch_size_is_above_zero() -> None:
    with pytest.raises(Misfit, match="or 'full', found 0"):
        Batches(0)
