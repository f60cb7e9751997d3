"""Item 5: how near is `fast` to the best known loop?"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from gpu.items.shared_process import STYLES, SharedProcess
from gpu.measurement import Row
from gpu.page.markdown import UNKNOWN, Column, number, percent, table
from gpu.store import Result

SECONDS = {
    "shakespeare-gpt-10m": 125.0,
    "gpt2-124m": 165.0,
    "resnet50": 95.0,
    "cifar10-resnet9": 65.0,
}
"""Time limit of each workload's process, in seconds; the most important workload comes first."""
OURS = "trainmark fast"
PRECISION = "bf16"
COLUMNS = (
    Column("workload", number=False),
    Column("way to run a step", number=False),
    Column("stretches"),
    Column("ms per step"),
    Column("tokens/s or images/s, median"),
    Column("lowest to highest"),
    Column("of the best"),
    Column("TFLOP/s"),
    Column("of the datasheet's peak"),
    Column("prepared in, s"),
    Column("last loss"),
    Column("failed", number=False),
)


class BestLoop:
    """Candidates for `fast`."""

    name = "best-loop"
    number = "5"
    question = "How near is `fast` to the best known loop?"
    limit = sum(SECONDS.values())
    how = (
        "runs `bench/gpu/styles`. One process per workload trains in bf16 with trainmark's "
        "`fast` and with every other "
        "way to run the same step, one after the other, 2.5 s each. All do the same work: "
        "gather, compute, clip, "
        "update and record; only nanoGPT's own model does not count hits. "
        "Caveat `shared-process`."
    )

    def measurements(self) -> list[SharedProcess]:
        """List the processes."""
        return [
            SharedProcess(self.name, workload, STYLES, seconds, ("--workload", workload))
            for workload, seconds in SECONDS.items()
        ]

    def tables(self, results: Mapping[str, Result]) -> str:
        """Write how near `fast` is, and one table with each workload's best way first."""
        cells: list[list[str]] = []
        nearness = []
        for workload in SECONDS:
            result = results.get(workload)
            if result is None or not result.rows:
                continue
            rows = sorted(result.rows, key=_speed, reverse=True)
            cells += [_cells(row, rows, result.context["device_name"]) for row in rows]
            nearness += [_nearness(workload, rows)]
        return "\n\n".join(filter(None, ["\n".join(filter(None, nearness)), table(COLUMNS, cells)]))


def _speed(row: Row) -> float:
    return row["samples_per_second"] if row["status"] == "ok" else 0.0


def _nearness(workload: str, rows: Sequence[Row]) -> str:
    """Describe how near `fast` is to the best other way; empty if either is missing."""
    mine = [row for row in rows if row["facts"]["candidate"] == OURS and _speed(row)]
    others = [row for row in rows if row["facts"]["candidate"] != OURS and _speed(row)]
    if not mine or not others:
        return ""
    best = others[0]
    share = _speed(mine[0]) / _speed(best)
    return (
        f"- {workload}: `fast` has {share:.2f}× the speed of the best other way, "
        f"{best['facts']['candidate']}."
    )


def _cells(row: Row, rows: Sequence[Row], device_name: str | None) -> list[str]:
    from trainmark.analysis import datasheet

    about = [row.get("name", row["facts"]["workload"]), row["facts"]["candidate"]]
    if row["status"] == "failed":
        return [*about, *[UNKNOWN] * (len(COLUMNS) - len(about) - 1), row["error"]]
    units = row["units_per_example"]
    flops = row["samples_per_second"] * row["flops_per_example"]
    peak = datasheet.find(device_name).get(PRECISION)
    return [
        *about,
        str(row["n"]),
        number(1e3 * row["step_seconds"]),
        number(units * row["samples_per_second"]),
        f"{number(units * row['lowest'])} to {number(units * row['highest'])}",
        f"{_speed(row) / max(_speed(each) for each in rows):.2f}",
        number(flops / 1e12),
        percent(flops / peak if peak else None),
        number(row["prepare_seconds"], 2),
        number(row["loss"], 4),
        "",
    ]
