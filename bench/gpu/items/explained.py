"""Item 2: what would make your own script faster on a GPU, and do the changes help if applied by
hand?"""

from __future__ import annotations

import json
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from gpu import store
from gpu.items.comparison import compared
from gpu.measurement import Measurement, Outcome, Row
from gpu.page.markdown import UNKNOWN, Column, interval, table
from gpu.session import Session
from gpu.store import Result

NAME = "explain"
SCRIPTS = Path(__file__).parents[1] / "scripts"
EXPLAIN_SECONDS = 125.0
BY_HAND_SECONDS = 75.0
EXPLAIN_SHARE = 0.7
"""Share of its time limit that `explain` gets as `--seconds`: on an H100, it once took 160 s with
130."""
BUDGET_SHARE = 0.6
"""Share of :data:`BY_HAND_SECONDS` that is trainmark's budget. The budget covers start-up; the rest
is a reserve, since a script may end later."""
SMALLEST_GAIN = 1.03
"""`explain` advises no change with a smaller speed-up."""
EXCLUSIVE = ({"bf16", "fp16"}, {"compile", "cuda-graphs"}, {"fused", "foreach"})
"""Groups of changes that exclude each other."""
QUICK_CHANGES = ("fused", "bf16")
"""Changes that a rehearsal tries."""


@dataclass(frozen=True)
class Script:
    """A script with a switch for each change.

    Args:
        file: its name without the suffix.
        about: what it does, for the page.
        tried: changes that `explain` has to try; by default, it would leave out those that compile.
        changes: changes that its switches can apply.
        quick: its arguments in a rehearsal.
    """

    file: str
    about: str
    tried: tuple[str, ...]
    changes: frozenset[str]
    quick: tuple[str, ...]

    def command(self, session: Session, *more: str) -> list[str]:
        """Return the words that run it."""
        size = self.quick if session.quick else ()
        return [
            sys.executable,
            str(SCRIPTS / f"{self.file}.py"),
            "--device",
            session.device,
            *size,
            *more,
        ]


TRANSFORMER = Script(
    "classifier",
    "a Transformer in fp32, 64 sequences of 128 tokens",
    ("tf32", "bf16", "compile", "cuda-graphs", "fp16", "batch"),
    frozenset(("tf32", "bf16", "fp16", "fused", "foreach", "compile", "cuda-graphs")),
    ("--width", "32", "--layers", "1", "--length", "16", "--batch", "8", "--examples", "4000"),
)
IMAGES = Script(
    "images",
    "a convolutional network, 128 images of 64 × 64, which the training process makes one by one",
    ("same-batch", "workers", "bf16", "channels-last", "tf32", "pin"),
    frozenset(
        (
            "workers",
            "pin",
            "tf32",
            "bf16",
            "fp16",
            "fused",
            "foreach",
            "channels-last",
            "compile",
            "cuda-graphs",
        )
    ),
    ("--width", "4", "--side", "16", "--batch", "8", "--examples", "4000"),
)


@dataclass(frozen=True)
class Explained:
    """What ``trainmark explain`` promises."""

    script: Script
    seconds: float = EXPLAIN_SECONDS

    @property
    def name(self) -> str:
        """The script."""
        return f"promised-{self.script.file}"

    def measure(self, session: Session, seconds: float) -> Outcome:
        """Explain the script as it is."""
        tried = QUICK_CHANGES if session.quick else self.script.tried
        only = [word for change in tried for word in ("--only", change)]
        budget = "1" if session.quick else f"{EXPLAIN_SHARE * seconds:.0f}"
        ran = session.trainmark(
            *("explain", "--seconds", budget, *only, "--json", "--"),
            *self.script.command(session),
            seconds=seconds,
        )
        if not ran.printed:
            return Outcome([], ran.problems or ["explain printed nothing"])
        found = json.loads(ran.printed)
        findings = [*found["findings"], *found["stack"][-1:]]
        rows = [_finding(each) for each in findings]
        about = {
            "script": self.script.file,
            "sentences": [each.replace(f"{SCRIPTS}/", "") for each in found["sentences"]],
            "step_seconds": found["step_seconds"],
            "gpu_busy": found["gpu_busy"],
            "left_out": found["left_out"],
        }
        return Outcome([about, *rows], ran.problems)


def _finding(found: Mapping[str, Any]) -> Row:
    return {
        name: found[name] for name in ("change", "kind", "speedup", "fresh", "learning", "memory")
    }


@dataclass(frozen=True)
class ByHand:
    """The winning changes, and all of them together, applied by the script's own switches."""

    script: Script
    seconds: float = BY_HAND_SECONDS

    @property
    def name(self) -> str:
        """The script."""
        return f"by-hand-{self.script.file}"

    def measure(self, session: Session, seconds: float) -> Outcome:
        """Measure each change interleaved with the unchanged script."""
        before = store.read(session.folder, NAME).get(Explained(self.script).name)
        if before is None or not before.rows:
            return Outcome([], ["explain has found nothing"])
        findings = [row for row in before.rows if "change" in row]
        changes = to_apply(findings, self.script.changes, every=session.quick)
        if session.quick:
            changes = changes[:1] + changes[len(QUICK_CHANGES) :]  # one of them, and all together
        if not changes:
            return Outcome([])  # no change wins, so there is nothing to apply
        out = session.folder / NAME / self.name
        ran = session.trainmark(
            *("measure", "--vary", f"changes={','.join(['none', *changes])}", "--repeats", "1"),
            *("--budget", "1" if session.quick else f"{BUDGET_SHARE * seconds:.0f}"),
            *(("--steps", "100") if session.quick else ()),
            *("--quiet", "--out", str(out), "--"),
            *self.script.command(session, "--changes", "{changes}"),
            seconds=seconds,
        )
        rows = [
            {
                "change": row["style"].removeprefix("changes="),
                "applied": row["speedup"],
                "runs": row["runs"],
                "caveats": row["caveats"],
            }
            for row in compared(session, out, ("--baseline", "style=changes=none"))
        ]
        return Outcome(rows, [*ran.problems, *([] if rows else ["there are no records"])])


def to_apply(findings: Sequence[Row], offered: frozenset[str], *, every: bool = False) -> list[str]:
    """Choose the changes to apply by hand: each winning change, and all of them together.

    Args:
        findings: what ``explain`` has found.
        offered: changes that the script's switches can apply.
        every: whether to include changes that don't win, for a rehearsal.
    """
    able = [
        row
        for row in findings
        if row["kind"] == "change"
        and all(_name(part) in offered for part in row["change"].split("+"))
    ]
    winning = [row for row in able if every or _wins(row)]
    single = sorted((row for row in winning if "+" not in row["change"]), key=_gain, reverse=True)
    together: list[str] = []
    for row in single:
        if not any(
            {_name(row["change"]), _name(other)} <= pair for pair in EXCLUSIVE for other in together
        ):
            together.append(row["change"])
    combined = [row["change"] for row in winning if "+" in row["change"]]
    if len(together) > 1 and not any(set(each.split("+")) == set(together) for each in combined):
        combined.append("+".join(together))
    return [*(row["change"] for row in single), *combined]


def _name(change: str) -> str:
    return change.partition("=")[0]


def _gain(row: Row) -> float:
    return float(row["speedup"]["value"])


def _wins(row: Row) -> bool:
    low = row["speedup"]["low"]
    return _gain(row) > SMALLEST_GAIN and low is not None and low > 1 and row["learning"] != "worse"


COLUMNS = (
    Column("change", number=False),
    Column("promised by `explain`"),
    Column("measured twice", number=False),
    Column("learning", number=False),
    Column("applied by hand"),
    Column("rounds"),
    Column("applied / promised"),
)


class ExplainedScripts:
    """Promises of ``explain`` and what they are worth."""

    name = NAME
    number = "2"
    question = "What would make your own script faster on a GPU?"
    limit = 2 * (EXPLAIN_SECONDS + BY_HAND_SECONDS)
    how = (
        "runs `trainmark explain` on the scripts in `bench/gpu/scripts`. Each winning change, "
        "and all of them "
        "together, are then applied with the script's own switches, and `trainmark measure` "
        "compares them with the "
        "unchanged script."
    )

    def measurements(self) -> list[Measurement]:
        """List the promises of a script, then what they are worth."""
        return [Explained(TRANSFORMER), ByHand(TRANSFORMER), Explained(IMAGES), ByHand(IMAGES)]

    def tables(self, results: Mapping[str, Result]) -> str:
        """Write one table for each script."""
        written = [_table(script, results) for script in (TRANSFORMER, IMAGES)]
        return "\n\n".join(text for text in written if text)


def _table(script: Script, results: Mapping[str, Result]) -> str:
    promised = results.get(Explained(script).name)
    if promised is None or not promised.rows:
        return ""
    by_hand = results.get(ByHand(script).name)
    applied = {row["change"]: row for row in by_hand.rows} if by_hand else {}
    about, *findings = promised.rows
    rows = [_cells(row["change"], row, applied.pop(row["change"], None)) for row in findings]
    rows += [_cells(change, None, row) for change, row in applied.items() if change != "none"]
    said = "\n".join(f"> {sentence}" for sentence in about["sentences"])
    return f"**`{script.file}.py`**: {script.about}.\n\n{said}\n\n{table(COLUMNS, rows)}"


def _cells(change: str, promised: Row | None, applied: Row | None) -> list[str]:
    ratio = applied["applied"]["ratio"] if applied else None
    both = None if promised is None or ratio is None else ratio / _gain(promised)
    return [
        change,
        interval(promised["speedup"]) if promised else UNKNOWN,
        {True: "yes", False: "no", None: UNKNOWN}[promised["fresh"] if promised else None],
        promised["learning"] if promised else UNKNOWN,
        interval(applied["applied"]) if applied else UNKNOWN,
        str(applied["runs"]) if applied else UNKNOWN,
        UNKNOWN if both is None else f"{both:.2f}",
    ]
