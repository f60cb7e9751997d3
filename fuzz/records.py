"""Small valid records of all kinds, for the seeds of the target ``record``."""

from __future__ import annotations

from typing import Any

from msgspec import structs

from tests.records import a_command, a_record, a_trial
from trainmark.record.observed import Observed
from trainmark.record.record import (
    Energy,
    FirstEvaluation,
    Group,
    LogLine,
    Outcome,
    Peaks,
    Record,
    Samples,
    Slice,
    Spread,
    ThreadsSearch,
)
from trainmark.workload import catalog
from trainmark.workload.schedule import Target


def every_kind() -> dict[str, Record]:
    """Return one record of each kind: what is trained, how, where, and how it ended."""
    classic = catalog.find("mnist-mlp32")
    to_target = classic.with_schedule(until=Target("test_accuracy", 0.97), evaluate="every-epoch")
    steps = Observed("torch", ("loop",), 100, 10.0, 32.0, losses=[2.0, 1.0], device="cpu")
    samples = Samples(
        interval_seconds=0.25,
        t=[0.25, 0.5, 0.75],
        tree_cpu_percent=[90.0, None, 80.0],
        cpu_hertz=[2e9, 2e9, 2e9],
        gpu_percent=[[10.0], [20.0], [30.0]],
        gpu_joules=[[5.0], [6.0], [7.0]],
        gpu_sm_hertz=[[1e9], [1e9], [1e9]],
    )
    timed: dict[str, Any] = {
        "samples": samples,
        "slices": [Slice(number, 2 * number, 1.0, 10, 8, 0.5, 1024) for number in range(3)],
    }
    on_gpu = a_record(
        workload=classic,
        device="cuda:0",
        before=FirstEvaluation(0.1, 2.0, 0.1),
        energy=Energy(5.0, "nvml"),
        log=[LogLine(1, 1.0, 100.0, 0.1)],
        peaks=Peaks(1e12, 1e11, {"created": "2026-11-21"}),
        threads_search=ThreadsSearch(2, 4, {"2": 0.1, "4": 0.2}),
        **timed,
    )
    spread = Group("s", "s", "scale", world=2, spread=Spread(2, 1))
    return {
        "text": structs.replace(a_record(workload="shakespeare-gpt"), epochs=[]),
        "target": a_record(workload=to_target),
        "gpu": structs.replace(on_gpu, device=structs.replace(on_gpu.device, gpu=0)),
        "ranks": structs.replace(a_record(workload=classic), group=spread),
        "trial": a_trial(1, workload=classic),
        "diverged": a_record(
            workload=classic, status="diverged", outcome=Outcome("diverged", "loss is NaN", 3, 2.0)
        ),
        "command": a_command(
            seconds=(3.0, 2.0), examples=600, loss=(2.0, 1.0), observed=steps, **timed
        ),
        "varied-command": a_command(side="workers=4", status="failed"),
    }
