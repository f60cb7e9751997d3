"""The promises of docs/reliability.md have tests, each with a defence that can be removed."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from bench.defences import DEFENCES, Defence

ROOT = Path(__file__).parents[3]
TABLE = (ROOT / "docs" / "reliability.md").read_text().partition("## A storm")[0]
ROWS = [line for line in TABLE.splitlines() if line.startswith("| ")][2:]
NAMED = {name for row in ROWS for name in re.findall(r"`(tests/\S+?::\w+)`", row)}


def test_every_row_names_a_test_that_exists() -> None:
    assert len(ROWS) > 20
    for row in ROWS:
        assert "`tests/" in row, row
    for name in NAMED:
        file, _, function = name.partition("::")
        assert f"def {function}(" in (ROOT / file).read_text(), name


def test_every_named_test_has_its_defence() -> None:
    assert {defence.test.partition("[")[0] for defence in DEFENCES} == NAMED


@pytest.mark.parametrize("defence", DEFENCES, ids=lambda defence: defence.fault)
def test_what_is_taken_away_is_there(defence: Defence) -> None:
    text = (ROOT / "src" / "trainmark" / defence.file).read_text()
    for old, _ in defence.cuts:
        assert text.count(old) >= 1, old
