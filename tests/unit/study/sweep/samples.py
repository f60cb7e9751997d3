"""A plan of trials without any options: the side and the data are given."""

from __future__ import annotations

import dataclasses

from trainmark_fake import FakeBackend

from trainmark.backends.base import Capabilities, Device
from trainmark.data.locate import Located
from trainmark.execute.parent.plan import Run, ScheduledWorkload, Settings, Side, Trial
from trainmark.execute.parent.probe import THIS, Seen
from trainmark.execute.parent.task import Task
from trainmark.study.sweep.plan import SweepPlan
from trainmark.workload import catalog
from trainmark.workload.grid import points, read_grid

SIDE = Side("fake", "fast", "cpu", THIS, version="1.0")
CAN = FakeBackend().capabilities()
SEEN = {("fake", "default"): Seen("fake", THIS, CAN, "3.11")}
GPU_ALONE: Capabilities = dataclasses.replace(
    CAN, devices=(Device("cuda:0", "GPU", "accelerator", None, ("fp32",)),)
)


def a_plan(
    data: Located, *words: str, group: str = "one", threads: int = 1, epochs: int = 1
) -> SweepPlan:
    """Trials of mnist-mlp128, with three steps per epoch."""
    workload = catalog.find("mnist-mlp128").with_schedule(
        epochs=epochs, steps_per_epoch=3, protocol="fresh"
    )
    tasks = []
    for number, point in enumerate(points(workload, read_grid(words)), 1):
        settings = Settings(kind="sweep", seed=point.seed or 1, threads=threads)
        scheduled = ScheduledWorkload(point.workload, data, 1)
        trial = Trial(number, point.values)
        tasks.append(
            Task((Run(scheduled, SIDE, settings, 0, number - 1, group, group, trial=trial),))
        )
    return SweepPlan(tuple(tasks), len(tasks), SIDE, SEEN, group)
