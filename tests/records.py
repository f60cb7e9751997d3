"""Plausible records for tests: every argument has a default, so that a test names only what it is
about."""

from __future__ import annotations

import platform
from collections.abc import Sequence
from functools import cache
from pathlib import Path
from typing import Any

from msgspec import structs

from trainmark.execute.parent.plan import Run
from trainmark.record import codec
from trainmark.record.caveats import Caveat
from trainmark.record.record import (
    BackendRef,
    DatasetRef,
    DeviceRef,
    Epoch,
    Final,
    Group,
    Machine,
    MetricsRef,
    ModelRef,
    Outcome,
    Process,
    Python,
    Record,
    Status,
    WorkloadRef,
)
from trainmark.workload import catalog
from trainmark.workload.model import lay_out
from trainmark.workload.spec import Workload

WARM_UP = 4.0
"""Seconds of a record's first epoch, far from the rest, so that a test fails if it is not left
out."""


find = cache(catalog.find)
"""A workload of the catalogue, read once: thousands of records have the same one."""


def a_record(
    *,
    workload: Workload | str = "mnist-mlp512",
    backend: str = "numpy",
    version: str | None = "2.1.0",
    style: str = "fast",
    device: str | None = "cpu",
    machine: str = "lab",
    python: str = "default",
    precision: str = "fp32",
    threads: int | None = 2,
    dataset: str | None = None,
    sha256: str = "5f" * 32,
    train_examples: int = 60_000,
    round: int = 0,
    repeat: int | None = None,
    group: str = "plan-1",
    seconds: Sequence[float] = (WARM_UP, 2.0, 2.0),
    train_loss: float | None = 0.08,
    train_accuracy: float | None = 0.975,
    test_loss: float | None = 0.07,
    test_accuracy: float | None = 0.98,
    status: Status = "ok",
    caveats: Sequence[Caveat] = (),
    **changes: Any,
) -> Record:
    """One record; ``seconds`` are its epochs' and ``changes`` any other field of
    :class:`Record`."""
    workload = find(workload) if isinstance(workload, str) else workload
    gpu = device not in ("cpu", None)
    model = lay_out(workload)
    name = "-".join(
        (
            workload.name,
            workload.schedule_fingerprint[:4],
            backend,
            style,
            str(device),
            machine,
            python,
            group,
            f"{round:03d}",
        )
    )
    fields: dict[str, Any] = {
        "id": name.replace(":", "-"),
        "created": f"2026-11-21T10:{round:02d}:00Z",
        "command": "trainmark run",
        "outcome": Outcome(status, None if status == "ok" else "killed by signal 9"),
        "workload": WorkloadRef(
            workload.name,
            workload.step_fingerprint,
            workload.schedule_fingerprint,
            workload.to_data(),
        ),
        "dataset": DatasetRef(dataset or workload.dataset, sha256, train_examples, 10_000),
        "backend": BackendRef(backend, version, style, precision, "none"),
        "device": DeviceRef(
            device, "NVIDIA H200" if gpu else "Xeon 8481C", "accelerator" if gpu else "cpu"
        ),
        "machine": Machine(
            machine, "Linux 6.1", "x86_64", "Xeon 8481C", 1, 2, 2, 8 << 30, [], None, 0.02
        ),
        "python": Python(python, "3.11.2", "/usr/bin/python3"),
        "seed": round,
        "repeat": round if repeat is None else repeat,
        "round": round,
        "protocol": workload.schedule.protocol,
        "threads": threads,
        "model": ModelRef(
            model.parameters, model.forward_flops, model.training_flops, f"seed-{round}"
        ),
        "setup_seconds": 0.4,
        "epochs": [
            Epoch(
                index,
                float(sum(seconds[:index])),
                time,
                469,
                train_examples,
                train_loss,
                train_accuracy,
            )
            for index, time in enumerate(seconds)
        ],
        "metrics": MetricsRef("running", False),
        "final": Final(train_loss, train_accuracy, test_loss, test_accuracy, float(sum(seconds))),
        "group": Group(group),
        "caveats": list(caveats),
    }
    return Record(**(fields | changes))


def a_trial(
    number: int,
    values: dict[str, str | int | float | bool] | None = None,
    *,
    group: str = "sweep-1",
    **arguments: Any,
) -> Record:
    """A record of a trial of a sweep; by default its learning rate halves with its number."""
    values = {"learning_rate": 0.2 / 2**number, "hidden": 32} if values is None else values
    record = a_record(**{"round": number - 1, "repeat": 0, **arguments})
    changes: dict[str, Any] = {"group": Group(group, group, "sweep", trial=number, values=values)}
    return structs.replace(
        record, **({"id": f"{group}-t{number}-{record.outcome.status}"} | changes)
    )


def a_command(
    *,
    side: str | None = None,
    device: str | None = "cpu",
    round: int = 0,
    process_seconds: float | None = 10.0,
    seconds: Sequence[float] = (),
    examples: int | None = None,
    loss: Sequence[float] = (),
    status: Status = "ok",
    **changes: Any,
) -> Record:
    """A record of a command; ``seconds`` are those of the epochs that it reports, after 2 of
    start-up."""
    fields: dict[str, Any] = {
        "id": f"train.py-{side or 'as is'}-{device or 'no device'}-r{round}".replace(" ", "-"),
        "workload": WorkloadRef("train.py", "abc", "abc", {"command": ["python", "train.py"]}),
        "dataset": None,
        "backend": BackendRef("python", None, side, None, None),
        "model": None,
        "metrics": None,
        "python": Python(None, None, "python"),
        "seed": None,
        "threads": None,
        "epochs": [
            Epoch(
                index,
                2.0 + sum(seconds[:index]),
                time,
                None,
                examples,
                loss[index] if loss else None,
            )
            for index, time in enumerate(seconds)
        ],
        "final": Final(loss[-1] if loss else None, training_seconds=float(sum(seconds)))
        if seconds
        else Final(),
        "process": Process(
            ["python", "train.py"],
            "/work",
            0.0,
            process_seconds,
            0 if status == "ok" else 1,
            8.0,
            1.0,
        ),
    }
    return structs.replace(
        a_record(device=device, round=round, status=status), **(fields | changes)
    )


def as_planned(record: Record, run: Run) -> Record:
    """The same record, of this run."""
    workload = run.scheduled.workload
    dataset = run.scheduled.dataset
    fingerprints = {
        name: getattr(workload, name) for name in ("step_fingerprint", "schedule_fingerprint")
    }
    assert record.dataset is not None
    python = structs.replace(
        record.python, label=run.side.interpreter.label, executable=str(run.side.interpreter.path)
    )
    backend = {"name": run.side.backend, "version": run.side.version, "style": run.side.style}
    return structs.replace(
        record,
        machine=structs.replace(record.machine, name=platform.node()),
        workload=structs.replace(record.workload, name=workload.name, **fingerprints),
        dataset=structs.replace(record.dataset, sha256=dataset.sha256),
        backend=structs.replace(record.backend, **backend),
        device=structs.replace(record.device, id=run.side.device),
        python=python,
        threads=run.settings.threads,
    )


def rounds(times: Sequence[float], **arguments: Any) -> list[Record]:
    """One record a round, whose steady epochs take the given seconds."""
    return [
        a_record(round=number, seconds=(WARM_UP, time, time), **arguments)
        for number, time in enumerate(times)
    ]


def write_all(folder: Path, records: Sequence[Record]) -> Path:
    """Write the records into ``folder`` as the store does, and return it."""
    folder.mkdir(parents=True, exist_ok=True)
    for record in records:
        (folder / f"{record.id}.json").write_bytes(codec.encode(record))
    return folder
