"""Records with everything that a page can show."""

from __future__ import annotations

import math

from msgspec import structs

from tests.records import a_record
from trainmark.record.caveats import Caveat
from trainmark.record.record import Energy, Epoch, Final, Outcome, Peaks, Record, Samples, Slice

EPOCHS = 6
TRAININGS = 3
BLOCKS = 4


def seen(seconds: float, rows: int, gpus: int) -> Samples:
    """Two busy cores, and as many GPUs."""
    return Samples(
        interval_seconds=seconds / rows,
        t=[seconds * (row + 1) / rows for row in range(rows)],
        cpu_percent=[[50 + 50 * math.sin(row / 9), 20.0 + row % 7] for row in range(rows)],
        tree_cpu_percent=[100 + 20 * math.sin(row / 5) for row in range(rows)],
        tree_resident_bytes=[300_000_000 + 1_000_000 * row for row in range(rows)],
        gpu_percent=[[80.0 + row % 9] * gpus for row in range(rows)] if gpus else None,
        gpu_memory_bytes=[[4 << 30] * gpus for _ in range(rows)] if gpus else None,
        gpu_watts=[[300.0 + row % 30] * gpus for row in range(rows)] if gpus else None,
    )


def slices(pace: float, orders: tuple[int, int]) -> list[Slice]:
    """Two of each block; ``pace`` is the seconds of an epoch, ``orders`` this side's turns in a
    block."""
    return [
        Slice(block, 4 * block + order, 0.0, 60, 50, 6_400 * pace / 60_000, 6_400, 0.01, 0.0)
        for block in range(BLOCKS)
        for order in orders
    ]


def a_full_record(
    *, round: int = 0, device: str = "cpu", workload: str = "mnist-mlp512", **changes: object
) -> Record:
    """Six epochs that learn, with slices, samples, limits, energy and a price.

    ``cuda:0`` is eight times as fast; its limits were disturbed.
    """
    pace = (2.0 if device == "cpu" else 0.25) * (1 + 0.02 * (round % 3))
    times = [pace + (1.0 if index == 0 else 0.0) for index in range(EPOCHS)]
    epochs = [
        Epoch(
            index,
            sum(times[:index]),
            times[index],
            469,
            60_000,
            train_loss=0.4 / (index + 1),
            train_accuracy=1 - 0.1 / (index + 1),
            test_loss=0.5 / (index + 1),
            test_accuracy=0.985 - 0.09 / (index + 1),
            evaluation_seconds=0.1 * pace,
        )
        for index in range(EPOCHS)
    ]
    last = epochs[-1]
    fields: dict[str, object] = {
        "epochs": epochs,
        "slices": slices(pace, (0, 3) if device == "cpu" else (1, 2)),
        "final": Final(
            last.train_loss, last.train_accuracy, last.test_loss, last.test_accuracy, sum(times)
        ),
        "samples": seen(sum(times) + 1, 300, 0 if device == "cpu" else 1),
        "peaks": Peaks(4e11, 2e10) if device == "cpu" else Peaks(6e13, 3e12, {"disturbed": True}),
        "energy": Energy(sum(times) * (60.0 if device == "cpu" else 300.0), "nvml counter"),
        "price_per_hour": 0.4 if device == "cpu" else 3.5,
        "compile_seconds": None if device == "cpu" else 3.0,
        **changes,
    }
    return a_record(round=round, device=device, workload=workload, **fields)  # type: ignore[arg-type]


def full_records(rounds: int = 5, workload: str = "mnist-mlp512") -> list[Record]:
    """Two devices."""
    return [
        a_full_record(round=round, device=device, workload=workload)
        for round in range(rounds)
        for device in ("cpu", "cuda:0")
    ]


def slices_alone(records: list[Record]) -> list[Record]:
    """The rounds that only had their slices, from the fourth on."""
    nothing: dict[str, object] = {"epochs": [], "final": Final(), "energy": None, "peaks": None}
    return [
        record if record.round < TRAININGS else structs.replace(record, **nothing)
        for record in records
    ]


def records_of_every_chart() -> list[Record]:
    """Two devices, two more styles on the CPU, so that its roofline has enough points, and a run
    that failed."""
    more = [
        a_full_record(round=round, style=style)
        for round in range(3)
        for style in ("idiomatic", "compiled")
    ]
    failed = Outcome("failed", "exit code 1: " + "no space left on device; " * 20)
    return [*slices_alone(full_records()), *more, a_record(round=5, epochs=[], outcome=failed)]


HOSTILE = (
    "</script><script>window.broken = 1</script><img src=x onerror='window.broken = "
    "2'>\"'`{{7*7}}${8*8}\x00\x1b[31m"
)


def hostile_records() -> list[Record]:
    """Put the worst text, or 10 kB of it, into every string that can hold anything; numbers are not
    finite."""
    import msgspec

    long = HOSTILE + "x" * 10_000
    records = []
    for round, name in ((0, HOSTILE), (1, HOSTILE), (2, long)):
        plain = a_full_record(round=round, caveats=[Caveat.NOT_LEARNING])
        changed = {
            "id": f"{name}{round}",
            "command": name,
            "machine": msgspec.structs.replace(
                plain.machine, name=name, cpu=name, os=name, gpus=[name], gpu_driver=name
            ),
            "device": msgspec.structs.replace(plain.device, id=name, name=name),
            "backend": msgspec.structs.replace(plain.backend, name=name, version=name, style=name),
            "python": msgspec.structs.replace(
                plain.python, label=name, version=name, packages={name: name}
            ),
            "dataset": msgspec.structs.replace(plain.dataset, name=name),
            "workload": msgspec.structs.replace(plain.workload, name=name),
            "outcome": msgspec.structs.replace(plain.outcome, reason=name, stderr_tail=name),
            "final": Final(math.nan, math.inf, -math.inf, math.nan, math.nan),
            "energy": Energy(math.nan, name),
        }
        records.append(msgspec.structs.replace(plain, **changed))
    return records
