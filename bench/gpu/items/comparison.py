"""A measurement that is one `trainmark run` between the CPU and the GPU, and its table."""

from __future__ import annotations

import json
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from gpu.measurement import Outcome, Row
from gpu.page.markdown import UNKNOWN, Column, interval, number, percent, table
from gpu.session import Session
from gpu.store import Result

BUDGET_SHARE = 0.7
"""Share of a measurement's seconds that is trainmark's budget. The budget covers start-up, peaks
and trainings; the rest is a reserve, since a training may end later."""
QUICK = ("--steps", "20", "--repeats", "1", "--budget", "1")
"""Options of a rehearsal."""
COLUMNS = (
    Column("workload", number=False),
    Column("framework", number=False),
    Column("style", number=False),
    Column("device", number=False),
    Column("rounds"),
    Column("trainings"),
    Column("speed-up over the CPU [interval]"),
    Column("verdict", number=False),
    Column("learns", number=False),
    Column("samples/s"),
    Column("of peak"),
    Column("energy, J"),
    Column("training, s"),
    Column("test accuracy"),
    Column("caveats", number=False),
)


@dataclass(frozen=True)
class DeviceComparison:
    """One workload, the CPU against the GPU.

    Args:
        item: the item that it belongs to.
        workload: what is trained.
        backend: the framework.
        styles: how it is trained.
        seconds: the most it may take.
    """

    item: str
    workload: str
    backend: str
    styles: tuple[str, ...]
    seconds: float

    @property
    def name(self) -> str:
        """The workload and the framework."""
        return f"{self.workload}-{self.backend}"

    def measure(self, session: Session, seconds: float) -> Outcome:
        """Run both devices, which take turns, and compare the records even if the time ran out."""
        if self.workload.startswith("cifar10") and "cifar10" not in session.datasets:
            return Outcome([], ["CIFAR-10 is not in TRAINMARK_DATA"])
        out = session.folder / self.item / self.name
        options = QUICK if session.quick else ("--budget", f"{BUDGET_SHARE * seconds:.0f}")
        synthetic = self.workload.startswith("mnist") and "mnist" not in session.datasets
        ran = session.trainmark(
            "run",
            self.workload,
            *("--backend", session.backend(self.backend)),
            *("--style", ",".join(self.styles)),
            *("--device", session.devices),
            *options,
            *(("--dataset", "synthetic-digits") if synthetic else ()),
            "--quiet",  # not --resume, which has no budget
            *("--out", str(out)),
            seconds=seconds - COMPARE_SECONDS if seconds > 2 * COMPARE_SECONDS else seconds,
        )
        rows = compared(session, out, ("--by", "device", "--baseline", "device=cpu"))
        return Outcome(rows, [*ran.problems, *([] if rows else ["there are no records"])])


COMPARE_SECONDS = 5.0
"""Seconds kept free for `trainmark compare` after a run."""


def compared(session: Session, out: Path, options: tuple[str, ...] = ()) -> list[Row]:
    """Compare the records of a folder: one row for each side; none without records."""
    if not any(out.glob("*.json")):
        return []
    ran = session.trainmark("compare", str(out), *options, "--json", seconds=60)
    if not ran.printed:
        # Without a record of the baseline, the sides are shown without ratios.
        ran = session.trainmark("compare", str(out), "--json", seconds=60)
    groups = json.loads(ran.printed)["groups"] if ran.printed else []
    return [_row(group) for group in groups]


def _row(group: dict[str, Any]) -> Row:
    key = group["key"]
    efficiency = group["efficiency"] or {}
    return {
        "workload": key["workload"],
        "backend": key["backend"],
        "style": key["style"],
        "device": key["device"],
        "device_name": key["device_name"],
        "python": key["python"],
        "precision": key["precision"],
        "version": key["version"],
        "dataset": key["dataset"],
        "runs": group["runs"],
        "trainings": group["trainings"],
        "failed": group["failed"],
        "speedup": group["speedup"],
        "learning": group["learning"],
        "samples_per_second": group["samples_per_second"],
        "tokens_per_second": group["tokens_per_second"],
        "mfu": efficiency.get("mfu"),
        "joules": (group["cost"] or {}).get("joules"),
        "training_seconds": group["training_seconds"],
        "test_accuracy": group["test_accuracy"],
        "caveats": group["caveats"],
    }


def device_table(results: Iterable[Result]) -> str:
    """Write the sides of all comparisons."""
    return table(COLUMNS, (_cells(row) for result in results for row in result.rows))


def _cells(row: Row) -> list[str]:
    speedup = row["speedup"] or {}
    baseline = row["device"] == "cpu"
    learning = row["learning"] or {}
    workload = row["workload"]
    if row["dataset"] == "synthetic-digits":
        workload += " (synthetic digits)"
    return [
        workload,
        row["backend"],
        row["style"] or UNKNOWN,
        row["device"],
        str(row["runs"]),
        str(row["trainings"]),
        "reference" if baseline else interval(speedup),
        "" if baseline else speedup.get("verdict") or UNKNOWN,
        "" if baseline else learning.get("verdict") or UNKNOWN,
        number(row["samples_per_second"]),
        percent(row["mfu"]),
        number(row["joules"]),
        number(row["training_seconds"]),
        percent(row["test_accuracy"], 2),
        ", ".join(row["caveats"]),
    ]
