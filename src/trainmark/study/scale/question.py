"""Which layouts are run, whether they can run here, and in which order."""

from __future__ import annotations

import dataclasses
import itertools
import secrets
from collections.abc import Iterator
from dataclasses import dataclass

from trainmark.backends.layout import Layout, Rendezvous
from trainmark.data.locate import Located
from trainmark.errors import UsageError
from trainmark.execute.parent.plan import Run, ScheduledWorkload, Settings, Side, Spreading
from trainmark.execute.parent.task import Task
from trainmark.study.layouts import layout_of, require_divisible, require_shareable
from trainmark.study.rounds import slices_alone
from trainmark.units import many
from trainmark.workload.reduce import with_batch
from trainmark.workload.spec import Workload


@dataclass(frozen=True)
class Question:
    """The layouts to compare, and how.

    Args:
        data, pipeline: numbers of copies and of stages per copy; every pair is a layout.
        weak: the batch grows with the number of copies, instead of being shared by them.
        batch: examples per step on one device; None uses the workload's batch size.
        microbatches: microbatches per batch of a pipeline; None chooses.
        oversubscribe: allow more ranks than cores.
        rendezvous: where the machines connect.
        repeats: number of timed rounds.
        steps: number of steps whose losses are compared.
    """

    data: tuple[int, ...] = (1, 2)
    pipeline: tuple[int, ...] = (1,)
    weak: bool = False
    batch: int | None = None
    microbatches: int | None = None
    oversubscribe: bool = False
    rendezvous: Rendezvous = dataclasses.field(default_factory=Rendezvous)
    repeats: int = 5
    steps: int = 120

    @property
    def layouts(self) -> tuple[tuple[int, int], ...]:
        """Copies and stages of each layout, fewest devices first; one device is always included."""
        pairs = {(1, 1), *itertools.product(self.data, self.pipeline)}
        return tuple(sorted(pairs, key=lambda pair: (pair[0] * pair[1], pair)))

    @property
    def most_ranks(self) -> int:
        """Ranks per machine of the largest layout."""
        return max(max(1, data * stages // self.rendezvous.nodes) for data, stages in self.layouts)


def require_possible(
    question: Question, side: Side, workload: Workload, devices: int, cores: int, threads: int
) -> None:
    """Raise :class:`~trainmark.errors.UsageError` if the layouts can't be run here.

    Args:
        workload: the workload, with the batch of one device.
        devices: number of devices of the side's kind that its backend sees on this machine.
        cores: number of usable cores.
        threads: threads of each rank.
    """
    nodes = question.rendezvous.nodes
    for data, stages in question.layouts:
        ranks = data * stages
        if ranks > 1 and ranks % nodes:
            raise UsageError(
                f"{many(ranks, 'rank')} can't be shared by {nodes} machines",
                expected=f"a multiple of {nodes} in --data-parallel times --pipeline",
            )
        require_divisible(workload, data, stages, question.microbatches, weak=question.weak)
    needed = question.most_ranks
    if side.device != "cpu":
        if needed > devices:
            raise UsageError(
                f"{many(needed, 'rank')} need {many(needed, 'device')}",
                expected=f"at most {devices} on this machine",
                found=f"{many(devices, 'device')} like {side.device}",
                fix="NCCL allows one rank per device. Use --device cpu --oversubscribe for more "
                "ranks.",
            )
        if needed > 1 and not side.device.endswith(":0"):
            raise UsageError(
                f"the ranks can't start at {side.device}",
                expected="cuda:0, since rank k of a machine uses cuda:k",
                fix="Choose GPUs with CUDA_VISIBLE_DEVICES, which numbers them from 0.",
            )
    elif needed * threads > cores and not question.oversubscribe:
        ranks_and_threads = f"{many(needed, 'rank')} of {many(threads, 'thread')}"
        raise UsageError(
            f"{ranks_and_threads} need {many(needed * threads, 'core')}",
            expected=f"at most {cores}, the usable cores of this machine",
            found=str(needed * threads),
            fix="--oversubscribe runs them anyway, but its timings don't show the effect of more "
            "cores.",
        )


def scheduled_workloads(
    question: Question, workload: Workload, dataset: Located
) -> dict[int, ScheduledWorkload]:
    """Return the training by number of copies; with strong scaling it is the same for all.

    Raises:
        UsageError: the dataset is smaller than the batch, or can't be shared.
    """
    found: dict[int, ScheduledWorkload] = {}
    for data, _ in question.layouts:
        scheduled = _scheduled(workload, data, question, dataset)
        found[data] = ScheduledWorkload(scheduled, dataset, question.repeats)
    return found


def tasks(
    question: Question,
    workload: Workload,
    dataset: Located,
    side: Side,
    settings: Settings,
    *,
    processes: bool,
    judged: bool,
) -> list[Task[Run]]:
    """Plan round 0, then timed rounds of slices of every layout, with and without its all-reduce.

    Round 0 is a run of every layout in float64, for its losses.

    Args:
        judged: whether losses are compared; there is no round 0 otherwise.
    """
    group_id = secrets.token_hex(6)
    by_data = scheduled_workloads(question, workload, dataset)
    exact = dataclasses.replace(side, precision="fp64")
    layouts = list(_layouts(question, workload))
    planned = [(0, data, layout) for data, layout in layouts if judged and layout.reduces]
    for round_ in range(1, 1 + question.repeats):
        planned += [(round_, data, layout) for data, layout in layouts]
    found: list[Task[Run]] = []
    for number, (round_, data, layout) in enumerate(planned):
        place = dataclasses.replace(question.rendezvous, name=f"trainmark-{number}")
        spread = Spreading(layout, question.weak, place, processes)
        of = side if round_ else exact
        run = Run(by_data[data], of, settings, round_, round_, group_id, group_id, spread)
        task = Task((run,))
        found.append(slices_alone(task) if round_ else task)
    return found


def _layouts(question: Question, workload: Workload) -> Iterator[tuple[int, Layout]]:
    crowd = question.most_ranks if question.oversubscribe else 1
    for data, stages in question.layouts:
        layout = layout_of(
            workload, data, stages, question.microbatches, weak=question.weak, crowd=crowd
        )
        yield data, layout
        if data > 1:
            yield data, dataclasses.replace(layout, reduces=False)


def _scheduled(workload: Workload, data: int, question: Question, dataset: Located) -> Workload:
    """Return the workload with one epoch, evaluated at its end, and the batch of all copies."""
    size = workload.batches.size
    if size != "full":
        workload = with_batch(workload, size * data if question.weak else size)
    require_shareable(workload, data, dataset)
    one_pass = len(workload.batches.sizes(dataset.train_examples))
    if not one_pass:
        raise UsageError(
            f"{dataset.name} has too few examples for this batch size",
            expected=f"at most {dataset.train_examples:,}",
            found=str(workload.batches.size),
        )
    return workload.with_schedule(
        steps=question.steps,
        steps_per_epoch=question.steps,
        dataset_repeats=-(-question.steps // one_pass),
        evaluate="end",
        protocol="fresh",
        until=None,
    )
