from __future__ import annotations

from collections.abc import Iterable, Iterator

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from tests.unit.workload.samples import a_workload
from trainmark.backends.base import EpochPlan
from trainmark.errors import DataError
from trainmark.execute.worker.order import epoch_plans
from trainmark.workload.pixels import Distortions, Input
from trainmark.workload.schedule import Batches, Schedule


def orders(plans: Iterable[EpochPlan]) -> list[list[int]]:
    found = []
    for plan in plans:
        assert plan.order is not None
        found.append(plan.order.tolist())
    return found


def plans_of(
    schedule: Schedule, batches: Batches, examples: int, seed: int, *, inject: bool
) -> Iterator[EpochPlan]:
    return epoch_plans(
        a_workload(schedule=schedule, batches=batches), examples, seed, inject=inject
    )


@pytest.mark.parametrize("inject", [False, True])
def test_never_keeps_the_stored_order(inject: bool) -> None:
    plans = list(plans_of(Schedule(2, shuffle="never"), Batches(3), 7, seed=1, inject=inject))
    assert [plan.sizes for plan in plans] == [(3, 3, 1), (3, 3, 1)]
    assert orders(plans) == [list(range(7)), list(range(7))]


@pytest.mark.parametrize("inject", [False, True])
def test_once_draws_one_order_and_keeps_it(inject: bool) -> None:
    first, second, third = orders(
        plans_of(Schedule(3, shuffle="once"), Batches(10), 50, seed=1, inject=inject)
    )
    assert first == second == third
    assert first != list(range(50))
    assert sorted(first) == list(range(50))


def test_every_epoch_has_another_order_when_it_is_injected() -> None:
    first, second = orders(plans_of(Schedule(2), Batches(10), 50, seed=1, inject=True))
    assert first != second
    assert sorted(first) == sorted(second) == list(range(50))


def test_without_injection_the_framework_shuffles_each_epoch() -> None:
    plans = list(plans_of(Schedule(2), Batches(10), 25, seed=1, inject=False))
    assert [plan.order for plan in plans] == [None, None]
    assert [plan.sizes for plan in plans] == [(10, 10, 5)] * 2


def test_the_order_depends_on_the_seed_alone() -> None:
    first, again, other = (
        orders(plans_of(Schedule(2), Batches(10), 50, seed=seed, inject=True)) for seed in (1, 1, 2)
    )
    assert first == again != other


def test_a_longer_run_begins_like_a_shorter_one() -> None:
    short, long = (
        orders(plans_of(Schedule(count), Batches(10), 50, seed=1, inject=True)) for count in (2, 4)
    )
    assert long[:2] == short


@given(
    examples=st.integers(1, 60),
    size=st.integers(1, 70),
    repeats=st.integers(1, 3),
    seed=st.integers(0, 2**31),
    shuffle=st.sampled_from(["never", "once", "every-epoch"]),
)
def test_every_pass_takes_every_example_once(
    examples: int, size: int, repeats: int, seed: int, shuffle: str
) -> None:
    schedule = Schedule(2, shuffle=shuffle, dataset_repeats=repeats)  # type: ignore[arg-type]
    for order in orders(plans_of(schedule, Batches(size), examples, seed, inject=True)):
        assert len(order) == examples * repeats
        for start in range(0, len(order), examples):
            assert sorted(order[start : start + examples]) == list(range(examples))


@given(
    examples=st.integers(1, 60),
    size=st.integers(1, 20),
    repeats=st.integers(1, 3),
    steps=st.integers(1, 30),
)
def test_there_is_an_index_for_every_example_of_every_step(
    examples: int, size: int, repeats: int, steps: int
) -> None:
    schedule = Schedule(1, steps=steps, dataset_repeats=repeats)
    assume(size <= examples)
    for plan in plans_of(schedule, Batches(size, "drop"), examples, 0, inject=True):
        assert plan.order is not None
        assert len(plan.order) == sum(plan.sizes)
        assert plan.order.min() >= 0
        assert plan.order.max() < examples


def test_what_a_pass_drops_is_drawn_anew_in_the_next() -> None:
    schedule = Schedule(1, dataset_repeats=2)
    (order,) = orders(plans_of(schedule, Batches(20, "drop"), 50, seed=3, inject=True))
    assert len(order) == 80
    first = order[:40]
    second = order[40:]
    assert len(set(first)) == len(set(second)) == 40  # no example twice in one pass
    assert set(first) != set(second)


def test_an_epoch_that_ends_early_has_the_start_of_its_pass() -> None:
    whole = orders(plans_of(Schedule(1), Batches(10), 50, seed=1, inject=True))
    part = orders(plans_of(Schedule(1, steps_per_epoch=2), Batches(10), 50, seed=1, inject=True))
    assert part == [whole[0][:20]]


@pytest.mark.parametrize(
    ("batches", "shuffle", "whole"),
    [
        (Batches("full"), "never", True),
        (Batches("full"), "once", False),
        (Batches(50), "never", False),
        (Batches(10), "never", False),
    ],
)
def test_only_a_full_batch_in_stored_order_is_whole(
    batches: Batches, shuffle: str, whole: bool
) -> None:
    schedule = Schedule(1, shuffle=shuffle)  # type: ignore[arg-type]
    (plan,) = plans_of(schedule, batches, 50, seed=1, inject=True)
    assert plan.whole is whole


def test_a_full_batch_with_new_distortions_each_step_is_gathered() -> None:
    distorted = Input(
        (4, 4, 1), distortions=Distortions(flip=True, brightness=1.0, contrast=(0.5, 1.5))
    )
    workload = a_workload(
        input=distorted, batches=Batches("full"), schedule=Schedule(1, shuffle="never")
    )
    (plan,) = epoch_plans(workload, 5, seed=1, inject=False)
    assert not plan.whole
    assert orders([plan]) == [list(range(5))]


def test_a_full_batch_may_be_repeated_within_an_epoch() -> None:
    schedule = Schedule(1, shuffle="never", dataset_repeats=2)
    (plan,) = plans_of(schedule, Batches("full"), 5, seed=1, inject=False)
    assert plan.sizes == (5, 5)
    assert plan.whole and plan.order is None


@pytest.mark.parametrize("inject", [False, True])
def test_fewer_examples_than_one_whole_batch_are_an_error(inject: bool) -> None:
    with pytest.raises(
        DataError, match="no step to train: expected at least one whole batch, found 100 training"
    ):
        list(plans_of(Schedule(2), Batches(128, "drop"), 100, seed=1, inject=inject))


def test_the_order_is_not_the_stream_of_the_weights() -> None:
    order = orders(plans_of(Schedule(1), Batches(10), 50, seed=1, inject=True))[0]
    for layer in range(20):
        weights = np.random.Generator(np.random.PCG64([1, layer])).random(50)
        assert order != np.argsort(weights).tolist()
