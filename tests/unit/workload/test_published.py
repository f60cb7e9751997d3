from __future__ import annotations

import dataclasses
from collections.abc import Callable

import pytest

from trainmark.analysis.agreement import band
from trainmark.data.catalog import CATALOG
from trainmark.workload import catalog
from trainmark.workload.decode import Misfit
from trainmark.workload.published import PublishedRun, PublishedValue, Seeds
from trainmark.workload.schedule import epoch_sizes


@pytest.mark.parametrize(
    ("value", "where"),
    [
        (PublishedValue("test_accuracy"), "end"),
        (PublishedValue("test_accuracy", epochs=(1, 1)), "epoch 1"),
        (PublishedValue("test_accuracy", epochs=(16, 20)), "mean of epochs 16 to 20"),
        (PublishedValue("step_loss", steps=(0, 0, 1)), "step 0"),
        (PublishedValue("step_loss", steps=(230, 280, 10)), "mean of steps 230 to 280, every 10"),
    ],
)
def test_where_a_value_stands(value: PublishedValue, where: str) -> None:
    assert value.where == where


@pytest.mark.parametrize("epochs", [(0, 3), (3, 2), (-1, -1)])
def test_a_value_of_epochs_that_are_no_range(epochs: tuple[int, int]) -> None:
    with pytest.raises(
        Misfit, match=r"epochs: expected \[first, last\] from 1, or \[0, 0\], found"
    ):
        PublishedValue("test_loss", epochs=epochs)


@pytest.mark.parametrize("steps", [(-1, 3, 1), (3, 2, 1), (0, 3, 0)])
def test_a_value_of_steps_that_are_no_range(steps: tuple[int, int, int]) -> None:
    with pytest.raises(Misfit, match=r"steps: expected \[first, last, every\], from 0, found"):
        PublishedValue("step_loss", steps=steps)


@pytest.mark.parametrize(
    ("make", "said"),
    [
        (
            lambda: PublishedValue("train_loss", steps=(0, 0, 1)),
            "steps: expected none for train_loss, found",
        ),
        (
            lambda: PublishedValue("step_loss", epochs=(1, 1)),
            "epochs: expected none for step_loss, found",
        ),
        (
            lambda: PublishedValue("train_loss", repeat=0),
            "repeat: expected a whole number above 0, found 0",
        ),
        (lambda: Seeds(1, 0.5, 0.1), "count: expected a whole number above 1, found 1"),
    ],
)
def test_a_value_that_could_not_be_judged(make: Callable[[], object], said: str) -> None:
    with pytest.raises(Misfit, match=said):
        make()


def test_a_run_with_a_seed_of_pytorch_has_no_repeats() -> None:
    with pytest.raises(
        Misfit, match="repeats: expected 1, since 'pytorch_seed' makes all repeats alike, found 2"
    ):
        PublishedRun("a run", epochs=1, pytorch_seed=1, repeats=2)


@pytest.mark.parametrize("lengths", [{}, {"epochs": 3, "steps": 3}])
def test_a_run_counts_in_epochs_or_in_steps(lengths: dict[str, int]) -> None:
    with pytest.raises(Misfit, match="either 'epochs' or 'steps'"):
        PublishedRun("a run", **lengths)


@pytest.mark.parametrize("name", catalog.names())
def test_published_figures_lie_within_their_bounds_and_their_run(name: str) -> None:
    workload = catalog.find(name)
    examples = CATALOG[workload.dataset].examples("train")
    for run in workload.published.runs if workload.published else ():
        epochs = epoch_sizes(workload.scheduled_as(run).schedule, workload.batches, examples)
        steps = sum(len(epoch) for epoch in epochs)
        for value in run.values:
            # not widened to it
            low, high = band(dataclasses.replace(value, value=None), len(run.values))
            if isinstance(value.value, float) and low is not None and high is not None:
                assert low <= value.value <= high, (run.name, value)
            if value.epochs is not None:
                first = 0 if workload.metrics.before else 1
                assert first <= value.epochs[0] <= value.epochs[1] <= len(epochs)
            assert value.steps is None or 0 <= value.steps[0] <= value.steps[1] < steps
            assert value.repeat is None or 1 <= value.repeat <= run.repeats
