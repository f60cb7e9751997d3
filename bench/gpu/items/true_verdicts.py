"""Item 4: are verdicts true on a GPU? Comparisons of sides whose true ratio is known."""

from __future__ import annotations

import os
import statistics
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from gpu.items.comparison import compared
from gpu.measurement import Outcome, Row
from gpu.page.markdown import UNKNOWN, Column, number, table
from gpu.session import Session
from gpu.store import Result

WORKLOAD = "mnist-mlp128"
TRY_SECONDS = 44.0
"""Time limit of one try; nine of them fit into the item's limit."""
TRY_GRACE_SECONDS = 4.0
"""Part of this limit that is kept for an interrupted try to write its records."""
BUDGET_SECONDS = 36.0
"""trainmark's budget, which covers start-up and trainings."""
STEPS = 600
"""Steps of a training: one epoch, since only speed is judged."""


@dataclass(frozen=True)
class Kind:
    """A comparison with a known answer.

    Args:
        name: name for file names.
        about: what is compared, for the page.
        truth: the true speed-up of the second side.
        tries: number of tries.
        backends: the two sides.
    """

    name: str
    about: str
    truth: float
    tries: int
    backends: tuple[str, str]


EQUAL = Kind("equal", "the same side twice", 1.0, 6, ("torch@A", "torch@B"))
MORE = Kind("more", "one step in 20 taken twice", 20 / 21, 3, ("stretched", "repeating"))
"""The true ratio is that of `gpu.planted`, which imports PyTorch."""


@dataclass(frozen=True)
class Try:
    """One comparison."""

    kind: Kind
    number: int
    seconds: float = TRY_SECONDS

    @property
    def name(self) -> str:
        """The kind, and its number."""
        return f"{self.kind.name}-{self.number}"

    def measure(self, session: Session, seconds: float) -> Outcome:
        """Compare the sides, and keep trainmark's verdict."""
        installed = session.processes.scratch / "planted"
        _install(installed)
        path = os.pathsep.join([str(installed), session.processes.environment["PYTHONPATH"]])
        out = session.folder / TrueVerdicts.name / self.name
        labels = [word for label in "AB" for word in ("--python", f"{label}={sys.executable}")]
        ran = session.trainmark(
            *("run", WORKLOAD, "--backend", ",".join(self._backends(session)), "--style", "fast"),
            *("--device", session.device, *(labels if self.kind is EQUAL else ())),
            *("--steps", "40" if session.quick else str(STEPS), "--repeats", "1"),
            *("--budget", "1" if session.quick else f"{BUDGET_SECONDS:.0f}"),
            *(() if "mnist" in session.datasets else ("--dataset", "synthetic-digits")),
            *("--seed", str(self.number), "--quiet", "--out", str(out)),
            seconds=seconds,
            more={"PYTHONPATH": path},
            grace=TRY_GRACE_SECONDS,
        )
        reference = "python=A" if self.kind is EQUAL else f"backend={self._backends(session)[0]}"
        sides = compared(session, out, ("--baseline", reference))
        others = [side for side in sides if f"python={side['python']}" != reference]
        others = [side for side in others if f"backend={side['backend']}" != reference]
        if len(sides) != 2 or len(others) != 1:
            return Outcome(
                [], ran.problems or [f"expected records of two sides, found {len(sides)}"]
            )
        second = others[0]
        if second["speedup"]["ratio"] is None:
            return Outcome([], ran.problems or ["there is no ratio"])
        row = {
            "kind": self.kind.name,
            **second["speedup"],
            "rounds": second["runs"],
            "caveats": second["caveats"],
        }
        # The limit ends a try. A last training that was cut short does not affect the verdict.
        problems = [] if ran.stopped and second["speedup"]["low"] is not None else ran.problems
        return Outcome([row], problems)

    def _backends(self, session: Session) -> list[str]:
        sides = (each.partition("@") for each in self.kind.backends)
        return [f"{session.backend(name)}{at}{label}" for name, at, label in sides]


def _install(folder: Path) -> None:
    """Make the backends of ``gpu.planted`` known to interpreters that have ``folder`` on the
    path."""
    information = folder / "planted-1.0.dist-info"
    information.mkdir(parents=True, exist_ok=True)
    (information / "METADATA").write_text("Metadata-Version: 2.1\nName: planted\nVersion: 1.0\n")
    entries = (
        "[trainmark.backends]\nstretched = gpu.planted:Stretched\nrepeating = "
        "gpu.planted:Repeating\n"
    )
    (information / "entry_points.txt").write_text(entries)


COLUMNS = (
    Column("sides", number=False),
    Column("true ratio"),
    Column("tries"),
    Column("faster"),
    Column("slower"),
    Column("same"),
    Column("unclear"),
    Column("intervals that hold the truth"),
    Column("median half-width"),
    Column("ratios", number=False),
)


class TrueVerdicts:
    """Equal sides, and sides that differ by 5 %."""

    name = "verdicts"
    number = "4"
    question = "Are verdicts true on a GPU?"
    limit = 400.0
    how = (
        f"runs `trainmark run {WORKLOAD}` with PyTorch `fast`, {TRY_SECONDS:.0f} s per try. It "
        "compares equal sides, "
        "where *faster* and *slower* are false, and sides of which the second takes one step in "
        "20 twice."
    )

    def measurements(self) -> list[Try]:
        """List the tries, alternating between both kinds."""
        equal = [Try(EQUAL, number + 1) for number in range(EQUAL.tries)]
        more = [Try(MORE, number + 1) for number in range(MORE.tries)]
        # Both kinds get results even if the time is short.
        return [equal[0], more[0], *equal[1:3], more[1], *equal[3:5], more[2], equal[5]]

    def tables(self, results: Mapping[str, Result]) -> str:
        """Write one line for each kind."""
        rows = [row for result in results.values() for row in result.rows]
        kinds = [
            (kind, [row for row in rows if row["kind"] == kind.name]) for kind in (EQUAL, MORE)
        ]
        return table(COLUMNS, (_cells(kind, of_kind) for kind, of_kind in kinds if of_kind))


def _cells(kind: Kind, rows: Sequence[Row]) -> list[str]:
    known = [row for row in rows if row["low"] is not None]
    holding = [row for row in known if row["low"] <= kind.truth <= row["high"]]
    widths = [(row["high"] / row["low"]) ** 0.5 - 1 for row in known]
    verdicts = [
        str(sum(row["verdict"] == name for row in rows))
        for name in ("faster", "slower", "same", "unclear")
    ]
    return [
        kind.about,
        f"{kind.truth:.3f}",
        str(len(rows)),
        *verdicts,
        f"{len(holding)} of {len(known)}",
        f"{100 * statistics.median(widths):.1f} %" if widths else UNKNOWN,
        ", ".join(number(row["ratio"], 4) for row in rows),
    ]
