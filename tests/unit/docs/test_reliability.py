"""docs/reliability.md promises only what a test shows, and only where a defence can be removed."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

from bench.defences import DEFENCES, Defence

ROOT = Path(__file__).parents[3]
HEADER = "| fault | what happens | test |"


def rows() -> list[str]:
    """Return the rows of the table of faults."""
    _, header, below = (ROOT / "docs" / "reliability.md").read_text().partition(HEADER)
    assert header, f"docs/reliability.md has no table with the columns {HEADER}"
    table, _, _ = below.strip().partition("\n\n")
    return table.splitlines()[1:]


def named_in(row: str) -> set[str]:
    """Return the tests that a row names."""
    return set(re.findall(r"`(tests/\S+?::\w+)`", row))


@pytest.fixture(scope="module")
def collected() -> set[str]:
    """What pytest collects of the tests that the defences and the rows name."""
    pytest.importorskip("torch")  # pytest doesn't collect the tests of ``explain`` without it
    named = {defence.test for defence in DEFENCES}.union(*map(named_in, rows()))
    options = ["--collect-only", "-q", "-n0", "-m", "", "-p", "no:cacheprovider"]
    done = subprocess.run(
        [sys.executable, "-m", "pytest", *options, *sorted(named)],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return set(done.stdout.splitlines())


def without_case(test: str) -> str:
    """Return the id of a test without the case in brackets."""
    return test.partition("[")[0]


def test_every_row_names_tests_that_exist(collected: set[str]) -> None:
    existing = set(map(without_case, collected))
    assert rows()
    for row in rows():
        assert named_in(row), row
        assert named_in(row) <= existing, row


def test_every_named_test_has_its_defence() -> None:
    assert {without_case(defence.test) for defence in DEFENCES} == set().union(
        *map(named_in, rows())
    )


@pytest.mark.parametrize("defence", DEFENCES, ids=lambda defence: defence.fault)
def test_a_defence_can_be_taken_away(defence: Defence) -> None:
    cut = defence.cut
    file = (ROOT / "src").joinpath(*cut.module.split(".")).with_suffix(".py")
    compile(cut.apply(file.read_text()), cut.module, "exec")
