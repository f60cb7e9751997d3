"""The remaining trials of a sweep, given the existing records."""

from __future__ import annotations

import dataclasses

import pytest
from msgspec import structs

from tests.unit.study.sweep.samples import SEEN, a_plan
from trainmark.data.locate import Located
from trainmark.errors import UsageError
from trainmark.execute.parent.request import RunRequest
from trainmark.execute.parent.task import Task
from trainmark.record.record import Epoch, Outcome, Record
from trainmark.study.sweep.plan import SweepPlan, read, require_own_gpu, without_done
from trainmark.study.sweep.trial import failed
from trainmark.workload.layers import Dense
from trainmark.workload.size import Size


def recorded(
    planned: SweepPlan, *numbers: int, status: str = "ok", machine: str | None = None
) -> list[Record]:
    """Return records as the trials of those numbers leave them."""
    made = [
        failed(task, SEEN, "")[0] for task in planned.tasks if task.first.trial.number in numbers
    ]  # type: ignore[union-attr]
    changed = [structs.replace(record, outcome=Outcome(status)) for record in made]  # type: ignore[arg-type]
    if machine is None:
        return changed
    return [
        structs.replace(
            record,
            machine=structs.replace(record.machine, name=machine),
            python=structs.replace(record.python, executable="/elsewhere/python"),
        )
        for record in changed
    ]


def left(planned: SweepPlan, records: list[Record]) -> dict[int, object]:
    tasks = without_done(planned, records).tasks
    return {task.first.trial.number: task.first.trial.values for task in tasks}  # type: ignore[union-attr]


def test_finished_trials_are_not_done_again_and_failed_ones_are(drawn: Located) -> None:
    planned = a_plan(drawn, "learning_rate=0.1,0.01", "seed=1,2")
    records = [*recorded(planned, 1, 3), *recorded(planned, 2, status="failed")]
    assert list(left(planned, records)) == [2, 4]
    assert left(planned, recorded(planned, 1, 2, 3, 4)) == {}
    assert list(left(planned, [])) == [1, 2, 3, 4]


def test_where_a_trial_ran_does_not_matter(drawn: Located) -> None:
    planned = a_plan(drawn, "learning_rate=0.1,0.01")
    assert list(left(planned, recorded(planned, 1, machine="another-node"))) == [2]


def test_the_rest_belongs_to_the_sweep_that_it_completes(drawn: Located) -> None:
    first = a_plan(drawn, "seed=1,2", group="one")
    again = a_plan(drawn, "seed=1,2", group="two")
    rest = without_done(again, recorded(first, 1))
    assert rest.group_id == "one" and rest.trials == 2
    assert [task.first.group_id for task in rest.tasks] == ["one"]


def test_of_two_sweeps_the_later_one_is_completed(drawn: Located) -> None:
    first = a_plan(drawn, "seed=1,2", group="one")
    second = a_plan(drawn, "seed=1,2", group="two")
    rest = without_done(
        a_plan(drawn, "seed=1,2", group="three"), [*recorded(first, 1, 2), *recorded(second, 1)]
    )
    assert (rest.group_id, len(rest.tasks)) == ("two", 1)


def test_a_larger_grid_keeps_the_numbers_that_are_taken(drawn: Located) -> None:
    before = a_plan(drawn, "seed=1,3")
    rest = left(a_plan(drawn, "seed=1,2,3"), recorded(before, 1, 2))
    assert rest == {3: {"seed": 2}}, "2 is the number of seed 3"


def test_finished_trials_tell_the_scheduler_what_they_reported(drawn: Located) -> None:
    planned = a_plan(drawn, "seed=1,2")
    (record,) = recorded(planned, 2)
    record = structs.replace(
        record, epochs=[Epoch(0, 0.0, 1.0, 3, 300, test_accuracy=0.5, test_loss=2.5)]
    )
    assert without_done(planned, [record]).finished == {
        2: ({"epoch": 1, "test_accuracy": 0.5, "test_loss": 2.5},)
    }


def test_another_side_is_another_sweep(drawn: Located) -> None:
    planned = a_plan(drawn, "seed=1,2")
    assert len(left(a_plan(drawn, "seed=1,2", threads=2), recorded(planned, 1, 2))) == 2


def test_a_trial_sees_the_gpus_that_it_was_given() -> None:
    for device, gpus in (
        ("cuda:0", 1.0),
        ("cuda:0", 0.25),
        ("cuda:1", 2.0),
        ("cuda:3", 0.0),
        ("cpu", 1.0),
    ):
        require_own_gpu(device, gpus)
    for device, gpus in (("cuda:1", 1.0), ("cuda:1", 0.5), ("cuda:2", 2.0)):
        with pytest.raises(UsageError, match=f"does not see {device}"):
            require_own_gpu(device, gpus)


def test_epochs_are_counted_also_where_steps_were_given(drawn: Located) -> None:
    planned = a_plan(drawn, "seed=1", epochs=3)
    assert planned.epochs == 3
    run = planned.tasks[0].first
    # 3 an epoch
    longer = dataclasses.replace(
        run.scheduled, workload=run.scheduled.workload.with_schedule(steps=20)
    )
    task = Task((dataclasses.replace(run, scheduled=longer),))
    assert dataclasses.replace(planned, tasks=(task,)).epochs == 7


def test_asha_needs_two_epochs_however_they_are_asked_for() -> None:
    def asked(steps: int) -> RunRequest:
        return RunRequest(workloads=("mnist-mlp128",), steps=steps)

    assert read(asked(1_300), ["seed=1"], [], None, asha=True)
    with pytest.raises(UsageError, match="2 epochs or more"):
        read(asked(600), ["seed=1"], [], None, asha=True)


def test_trials_have_the_size_that_is_asked_for() -> None:
    request = RunRequest(workloads=("mnist-mlp128",), size=Size(width=64))
    (point,) = read(request, ["seed=1"], [], None, asha=False)
    assert point.workload.name == "mnist-mlp128 (width 64)"
    assert [layer.units for layer in point.workload.model if isinstance(layer, Dense)] == [
        64,
        32,
        10,
    ]
