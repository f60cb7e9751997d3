"""A survey of speeds without verdicts, which is not in the agenda's table."""

from __future__ import annotations

from collections.abc import Mapping

from gpu.items.shared_process import SharedProcess
from gpu.measurement import Row
from gpu.page.markdown import UNKNOWN, Column, number, table
from gpu.store import Result

SECONDS = {"torch": 220.0, "jax": 140.0, "keras": 120.0}
"""Time limit of each framework's process, in seconds."""
COLUMNS = (
    Column("workload", number=False),
    Column("framework", number=False),
    Column("style", number=False),
    Column("precision", number=False),
    Column("stretches"),
    Column("samples/s, median"),
    Column("lowest to highest"),
    Column("TFLOP/s"),
    Column("prepared in, s"),
    Column("GPU memory, GB"),
    Column("last loss"),
    Column("failed", number=False),
)


class Speeds:
    """Many workloads, styles and precisions, one process per framework."""

    name = "survey"
    number = "S"
    question = "How fast is everything else?"
    limit = sum(SECONDS.values())
    how = (
        "trains every workload, style and precision in one process per framework, one after the "
        "other, 1.5 s each "
        "after a warm-up. Caveat `shared-process`: a survey, not a comparison."
    )

    def measurements(self) -> list[SharedProcess]:
        """List the processes."""
        return [
            SharedProcess(self.name, framework, "gpu.survey", seconds, ("--framework", framework))
            for framework, seconds in SECONDS.items()
        ]

    def tables(self, results: Mapping[str, Result]) -> str:
        """Write one table of all configurations."""
        return table(
            COLUMNS, (_cells(row) for framework in SECONDS for row in _rows(results, framework))
        )


def _rows(results: Mapping[str, Result], framework: str) -> list[Row]:
    return results[framework].rows if framework in results else []


def _cells(row: Row) -> list[str]:
    facts = row["facts"]
    about = [
        row.get("name", facts["workload"]),
        facts["framework"],
        facts["style"],
        facts["precision"],
    ]
    if row["status"] == "failed":
        return [*about, *[UNKNOWN] * (len(COLUMNS) - len(about) - 1), row["error"]]
    peak = row["device_peak_bytes"]
    return [
        *about,
        str(row["n"]),
        number(row["samples_per_second"]),
        f"{number(row['lowest'])} to {number(row['highest'])}",
        number(row["samples_per_second"] * row["flops_per_example"] / 1e12),
        number(row["prepare_seconds"], 2),
        number(peak / 1e9 if peak else None),
        number(row["loss"], 4),
        "",
    ]
