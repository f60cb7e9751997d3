"""Item 3: does the code work on the GPU?"""

from __future__ import annotations

import json
import os
import sys
import xml.etree.ElementTree
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from gpu.measurement import Measurement, Outcome, Row
from gpu.page.markdown import UNKNOWN, Column, number, table
from gpu.session import Session
from gpu.store import Result
from gpu.wheels import ROOT

TESTS = ("test_cuda", "test_jax", "test_keras")
"""Files of `tests/gpu` that compare losses, the most important one first."""
COMMANDS = "test_commands"
"""The file of whole commands. Other items run such commands too, so it comes last."""
BACKENDS = ("torch", "jax", "keras")
PRECISIONS = ("fp32", "tf32", "bf16")
TEST_SECONDS = 90.0
COMMANDS_SECONDS = 200.0
"""Time limit of :data:`COMMANDS`. On an H200, one of its three tests took longer than 68 s: a
comparison starts processes twice."""
PARITY_SECONDS = 40.0
NO_SUCH_PRECISION = "does not have the precision"
"""Part of trainmark's message that a device lacks a precision; then there is nothing to check."""
WORKLOAD = "mnist-cnn"
"""It has convolutions, pooling, dense layers, and two kinds of dropout."""


@dataclass(frozen=True)
class PytestFile:
    """One file of ``tests/gpu``."""

    file: str
    seconds: float = TEST_SECONDS

    @property
    def name(self) -> str:
        """The file."""
        return self.file.replace("_", "-")

    def measure(self, session: Session, seconds: float) -> Outcome:
        """Run pytest on the file, and count the outcomes."""
        report = session.processes.scratch / f"{self.file}.xml"
        # The project's options are not used: they need plug-ins that a GPU machine may lack.
        plain = f"-c {os.devnull} -p no:cacheprovider -p no:benchmark -q -ra --disable-warnings"
        ran = session.processes.run(
            *(sys.executable, "-m", "pytest", *plain.split(), "--rootdir", str(ROOT)),
            *(f"--junitxml={report}", f"tests/gpu/{self.file}.py"),
            seconds=seconds,
        )
        rows = _counted(self.file, report)
        # A test that fails is a result, not something that is missing.
        return Outcome(rows, [] if rows and not ran.stopped else ran.problems)


def _counted(file: str, report: Path) -> list[Row]:
    """Count what the report of pytest says; no rows without a report."""
    if not report.exists():
        return []
    cases = list(xml.etree.ElementTree.parse(report).getroot().iter("testcase"))
    skipped = [case for case in cases if case.find("skipped") is not None]
    failed = [
        case for case in cases if case.find("failure") is not None or case.find("error") is not None
    ]
    reasons = {
        skip.get("message") or "" for case in skipped if (skip := case.find("skipped")) is not None
    }
    return [
        {
            "file": file,
            "passed": len(cases) - len(skipped) - len(failed),
            "failed": [case.get("name") for case in failed],
            "skipped": len(skipped),
            "reasons": sorted(reasons),
        }
    ]


@dataclass(frozen=True)
class Parity:
    """The GPU's arithmetic against the float64 reference."""

    backend: str
    precision: str
    seconds: float = PARITY_SECONDS

    @property
    def name(self) -> str:
        """The framework and the precision."""
        return f"parity-{self.backend}-{self.precision}"

    def measure(self, session: Session, seconds: float) -> Outcome:
        """Run ``trainmark parity``."""
        size = ("--size", "batch=8") if session.quick else ()
        sides = f"--backend {session.backend(self.backend)} --device {session.device}"
        how = f"--precision {self.precision} --json"
        words = ("parity", WORKLOAD, *sides.split(), *how.split(), *size)
        ran = session.trainmark(*words, seconds=seconds)
        about = {"backend": self.backend, "precision": self.precision}
        if NO_SUCH_PRECISION in ran.errors:
            return Outcome([{**about, "side": UNKNOWN, "passed": None}])
        found = json.loads(ran.printed)["sides"] if ran.printed else []
        rows = [
            {
                **about,
                "side": side["title"],
                "passed": side["passed"],
                "largest_share": max(side["shares"].values(), default=None),
                "mistake": side["mistake"],
            }
            for side in found
        ]
        # A side that differs is a result, not something that is missing.
        return Outcome(rows, [] if rows and not ran.stopped else ran.problems)


class Correctness:
    """Tests, and parity in three precisions."""

    name = "tests"
    number = "3"
    question = "Does the code work on a GPU?"
    limit = 250.0
    how = (
        f"runs `tests/gpu`, and `trainmark parity {WORKLOAD}` for each framework's `fast`. A "
        "share of a bound above 1 "
        "is an alarm."
    )

    def measurements(self) -> list[Measurement]:
        """List tests of losses, then parity, then tests of commands."""
        tests = [PytestFile(file) for file in TESTS]
        parity = [Parity(backend, precision) for backend in BACKENDS for precision in PRECISIONS]
        return [*tests, *parity, PytestFile(COMMANDS, COMMANDS_SECONDS)]

    def tables(self, results: Mapping[str, Result]) -> str:
        """Write a table of tests and one of parity."""
        rows = [
            row
            for each in self.measurements()
            if each.name in results
            for row in results[each.name].rows
        ]
        tests = [row for row in rows if "file" in row]
        parity = [row for row in rows if "precision" in row]
        columns = (
            Column("file", number=False),
            Column("passed"),
            Column("failed"),
            Column("skipped"),
        )
        more = (
            *(
                Column(title, number=False)
                for title in ("framework", "precision", "side", "verdict")
            ),
        )
        written = [
            table((*columns, Column("reasons", number=False)), map(_test_cells, tests)),
            table((*more, Column("largest share of a bound")), map(_parity_cells, parity)),
        ]
        return "\n\n".join(text for text in written if text)


def _test_cells(row: Row) -> list[str]:
    failed = row["failed"]
    named = f"{len(failed)} ({', '.join(failed)})" if failed else "0"
    return [row["file"], str(row["passed"]), named, str(row["skipped"]), "; ".join(row["reasons"])]


def _parity_cells(row: Row) -> list[str]:
    verdict = {True: "PASS", False: "**FAIL**", None: "the device has no such precision"}[
        row["passed"]
    ]
    return [
        row["backend"],
        row["precision"],
        row["side"],
        verdict,
        number(row.get("largest_share"), 2),
    ]
