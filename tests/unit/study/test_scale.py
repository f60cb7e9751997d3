"""The layouts that can be run, their order and their settings: the sides and the data are given."""

from __future__ import annotations

import dataclasses
import json
from pathlib import Path
from typing import Literal

import pytest

from trainmark.backends.layout import Rendezvous
from trainmark.data.locate import Located
from trainmark.errors import Unsupported, UsageError
from trainmark.execute.parent.plan import Run, Settings, Side
from trainmark.execute.parent.probe import THIS
from trainmark.execute.parent.request import PreparationObserver, RunRequest
from trainmark.execute.parent.task import Task
from trainmark.execute.protocol.wire import encoded, to_message
from trainmark.execute.protocol.worker_commands import StartRanks, Train, read
from trainmark.study.layouts import layout_of, require_able, require_divisible
from trainmark.study.scale import prepare
from trainmark.study.scale.question import Question, require_possible, scheduled_workloads, tasks
from trainmark.workload import catalog
from trainmark.workload.reduce import with_batch

CPU = Side("torch", "fast", "cpu", THIS)
CUDA = dataclasses.replace(CPU, device="cuda:0")
WORKLOAD = with_batch(catalog.find("mnist-mlp512").deterministic(), 128)
FULL = catalog.find("mnist-mlp32")
DATA = Located("mnist", Path("/data"), "a test", "5f" * 32, True, 60_000, 10_000)


def planned(question: Question, *, judged: bool = True) -> list[Task[Run]]:
    return tasks(
        question, WORKLOAD, DATA, CPU, Settings(kind="scale"), processes=True, judged=judged
    )


def test_one_device_is_always_among_the_layouts_and_first() -> None:
    question = Question(data=(4, 2), pipeline=(2, 1))
    assert question.layouts == ((1, 1), (2, 1), (2, 2), (4, 1), (4, 2))


@pytest.mark.parametrize(
    ("question", "side", "text"),
    [
        (
            Question(data=(4,)),
            CPU,
            "4 ranks of 1 thread need 4 cores: expected at most 2.*--oversubscribe",
        ),
        (
            Question(data=(2,)),
            CUDA,
            "2 ranks need 2 devices: expected at most 1 on this machine, found 1 device like",
        ),
        (Question(data=(2,), oversubscribe=True), CUDA, "2 ranks need 2 devices.*NCCL allows"),
        (Question(data=(2,)), dataclasses.replace(CUDA, device="cuda:1"), "2 ranks need 2 devices"),
        (
            Question(data=(3,)),
            CPU,
            "a batch of 128 can't be shared by 3 copies.*Use a batch of 129",
        ),
        (
            Question(data=(1,), pipeline=(2,), microbatches=3),
            CPU,
            "128 examples can't be split into 3 microbatches",
        ),
        (
            Question(data=(2,), pipeline=(2,), microbatches=128, oversubscribe=True),
            CPU,
            "a copy's 64 examples",
        ),
        (
            Question(data=(3,), rendezvous=Rendezvous(nodes=2)),
            CPU,
            "3 ranks can't be shared by 2 machines",
        ),
    ],
)
def test_what_can_not_be_run_is_refused_at_once(question: Question, side: Side, text: str) -> None:
    with pytest.raises(UsageError, match=text):
        require_possible(question, side, WORKLOAD, devices=1, cores=2, threads=1)


def test_ranks_on_gpus_begin_with_the_first() -> None:
    second = dataclasses.replace(CUDA, device="cuda:1")
    with pytest.raises(UsageError, match=r"the ranks can.t start at cuda:1.*CUDA_VISIBLE_DEVICES"):
        require_possible(Question(data=(2,)), second, WORKLOAD, devices=4, cores=2, threads=1)
    require_possible(Question(data=(1,)), second, WORKLOAD, devices=4, cores=2, threads=1)


def test_a_network_with_too_few_layers_for_its_stages() -> None:
    with pytest.raises(Unsupported, match="can't be cut into 4 stages"):
        require_possible(Question(pipeline=(4,), oversubscribe=True), CPU, WORKLOAD, 1, 2, 1)


@pytest.mark.parametrize(
    ("name", "text"),
    [("cifar10-resnet9", "batch-norm, sum"), ("shakespeare-gpt", "clipping")],
)
def test_what_can_not_be_cut_may_still_be_copied(name: str, text: str) -> None:
    workload = catalog.find(name)
    with pytest.raises(Unsupported, match=f"a network with .*{text} can't be cut into stages"):
        require_divisible(workload, 1, 2)
    require_divisible(workload, 2, 1)


def test_a_whole_dataset_can_not_grow() -> None:
    with pytest.raises(UsageError, match="uses the whole dataset, so its batch can't grow"):
        require_possible(Question(weak=True), CPU, FULL, 1, 2, 1)


@pytest.mark.parametrize(
    ("side", "stages", "spreads"),
    [
        (dataclasses.replace(CPU, backend="jax"), 2, "devices"),
        (dataclasses.replace(CPU, backend="jax", style="idiomatic"), 1, "devices"),
        (dataclasses.replace(CPU, precision="bf16"), 2, "processes"),
    ],
)
def test_a_layout_that_a_backend_cannot_spread_is_refused(
    side: Side, stages: int, spreads: Literal["processes", "devices"]
) -> None:
    with pytest.raises(Unsupported):
        require_able(side, stages, spreads)


@pytest.mark.parametrize(
    "question",
    [
        Question(data=(1, 2)),
        Question(data=(1, 2, 4), oversubscribe=True),
        Question(data=(3,), weak=True, oversubscribe=True),
        Question(data=(2, 4), rendezvous=Rendezvous(nodes=2)),
    ],
)
def test_what_can_be_run_is_not_refused(question: Question) -> None:
    require_possible(question, CPU, WORKLOAD, devices=1, cores=2, threads=1)


def test_rounds_take_every_layout_with_and_without_its_sum() -> None:
    found = [
        task.first
        for task in planned(Question(data=(1, 2), pipeline=(1, 2), repeats=2, oversubscribe=True))
    ]
    titles = [(run.round, run.spread.title) for run in found if run.spread]
    layouts = ["1×1", "1×2", "2×1", "2×1, without averaging", "2×2", "2×2, without averaging"]
    losses = [(0, layout) for layout in ("1×1", "1×2", "2×1", "2×2")]
    assert titles == losses + [(round_, layout) for round_ in (1, 2) for layout in layouts]
    assert [run.blocks is None for run in found] == [run.round == 0 for run in found]
    assert [run.side.precision for run in found] == [
        "fp32" if run.round else "fp64" for run in found
    ]


def test_nothing_is_trained_for_losses_that_are_not_compared() -> None:
    assert [task.round for task in planned(Question(repeats=2), judged=False)] == [1, 1, 1, 2, 2, 2]


def test_a_round_is_one_seed_for_all_layouts() -> None:
    runs = [task.first for task in planned(Question(data=(1, 2), repeats=3))]
    assert {(run.round, run.seed) for run in runs} == {(0, 1), (1, 2), (2, 3), (3, 4)}


def test_every_run_has_a_separate_rendezvous() -> None:
    names = [
        task.first.spread.rendezvous.name
        for task in planned(Question(repeats=2))
        if task.first.spread
    ]
    assert len(set(names)) == len(names)


def test_no_two_runs_of_a_plan_are_the_same_for_resume() -> None:
    runs = planned(Question(data=(1, 2), pipeline=(1, 2), repeats=2, oversubscribe=True))
    assert len({task.first.key for task in runs}) == len(runs)


def test_only_several_devices_have_a_launch() -> None:
    alone, several = [
        task.first.request(0.0, [None]) for task in planned(Question(data=(2,), repeats=1))
    ][:2]
    assert (
        isinstance(alone, Train)
        and alone.options.layout is not None
        and alone.options.layout.data == 1
    )
    assert isinstance(several, StartRanks) and several.ranks == 2
    sent = read(json.loads(encoded(to_message(several))))
    assert isinstance(sent, StartRanks)
    inner = sent.training
    assert inner.inject_order
    assert inner.options.layout is not None and inner.options.layout.reduces


def test_the_ranks_of_several_machines_are_shared() -> None:
    place = Rendezvous(nodes=2, endpoint="a:1")
    launch = planned(Question(data=(4,), repeats=1, rendezvous=place))[1].first.request(0.0, [None])
    assert isinstance(launch, StartRanks) and (launch.ranks, launch.rendezvous.endpoint) == (
        2,
        "a:1",
    )


def test_weak_grows_the_batch_and_strong_does_not() -> None:
    strong = scheduled_workloads(Question(data=(1, 4)), WORKLOAD, DATA)
    weak = scheduled_workloads(Question(data=(1, 4), weak=True), WORKLOAD, DATA)
    assert [scheduled.workload.batches.size for scheduled in strong.values()] == [128, 128]
    assert [scheduled.workload.batches.size for scheduled in weak.values()] == [128, 512]
    assert strong[1].workload.step_fingerprint == strong[4].workload.step_fingerprint


def test_steps_of_the_whole_dataset_are_one_epoch_all_the_same() -> None:
    schedule = scheduled_workloads(Question(data=(1,), steps=60), FULL, DATA)[1].workload.schedule
    assert (schedule.steps, schedule.steps_per_epoch, schedule.dataset_repeats) == (60, 60, 60)


def test_a_whole_dataset_is_shared_equally_or_not_at_all() -> None:
    with pytest.raises(UsageError, match="60,000 examples of mnist can't be shared by 7 copies"):
        scheduled_workloads(Question(data=(7,)), FULL, DATA)


def test_a_batch_larger_than_the_dataset_is_refused() -> None:
    with pytest.raises(UsageError, match="too few examples"):
        scheduled_workloads(Question(data=(1,)), with_batch(WORKLOAD, 100_000), DATA)


@pytest.mark.parametrize(
    ("batch", "data", "expected"), [(128, 1, 4), (126, 2, 3), (10, 2, 1), (128, 4, 4)]
)
def test_pieces_of_a_pipeline_divide_the_share(batch: int, data: int, expected: int) -> None:
    assert layout_of(with_batch(WORKLOAD, batch), data, 2).microbatches == expected


def test_an_undivided_network_takes_a_batch_in_one_piece() -> None:
    assert layout_of(WORKLOAD, 1, 1, 8).microbatches == 1


def test_losses_are_not_compared_if_batch_norm_makes_them_differ() -> None:
    pytest.importorskip("torch", reason="torch is not installed")
    request = RunRequest(workloads=("resnet50",), backends=("torch",), devices=("cpu",))
    plan = prepare(request, Question(data=(2,), oversubscribe=True), PreparationObserver())
    assert (
        "losses are not compared, since batch norm on each copy uses only its share of the "
        "batch" in plan.notices
    )
    assert {task.first.side.precision for task in plan.tasks} == {"fp32"}
