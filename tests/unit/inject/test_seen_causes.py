"""Causes of slow steps are seen in scripts, with the line that is to change."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from tests.observed import observed
from trainmark.analysis.causes import Evidence, Found, find
from trainmark.record.observed import Observed

SCRIPTS = Path(__file__).parent / "scripts" / "slow"


def report_of(tmp_path: Path, name: str, change: str) -> dict[str, Any]:
    """Run a script with a change; returns what was observed last."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("TRAINMARK_CHANGES", change)
        run = observed(SCRIPTS / f"{name}.py", folder=tmp_path)
    assert run.code == 0, run.err
    printed = [float(line) for line in run.out.splitlines()]
    return {**run.reports[-1], "printed": printed}


def causes(report: dict[str, Any]) -> dict[str, Found]:
    """Return the causes in a script that trains on a machine with one core."""
    known = {key: value for key, value in report.items() if key in Observed.__dataclass_fields__}
    seen = Observed(**{**known, "injected": ()})
    facts = json.loads(report["changed"]["facts"])
    return {each.name: each for each in find(Evidence(seen, facts, 1, 1))}


def line_of(name: str, text: str) -> str:
    """Return the place of the line of a script that contains something."""
    file = SCRIPTS / f"{name}.py"
    lines = file.read_text("utf-8").splitlines()
    (number,) = (number for number, line in enumerate(lines, 1) if text in line)
    return f"{file}:{number}"


@pytest.mark.parametrize(
    ("name", "cause", "text"),
    [
        ("epochs", "restarted-workers", "in loader"),
        ("sequences", "loop-over-time", "state = cell("),
        ("recomputed", "activation-checkpointing", "checkpoint("),
    ],
)
def test_a_cause_is_seen(tmp_path: Path, name: str, cause: str, text: str) -> None:
    pytest.importorskip("torch")
    found = causes(report_of(tmp_path, name, "facts"))
    assert list(found) == [cause]
    assert found[cause].place == line_of(name, text)
    assert 0.05 < (found[cause].share or 0.0) < 1


def test_the_line_that_loads_is_named(tmp_path: Path) -> None:
    pytest.importorskip("torch")
    pytest.importorskip("pandas")
    found = causes(report_of(tmp_path, "rows", "facts"))
    assert found["pandas"].place == line_of("rows", "row.drop")
    # On a busy machine, a few samples may also show how batches are put together.
    assert set(found) <= {"loading-in-process", "pandas", "collation"}
    assert "collation" not in found or found["collation"].share < found["pandas"].share


def test_predictions_of_an_agent_are_a_part_of_its_steps(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    pytest.importorskip("keras")
    pytest.importorskip("torch")
    monkeypatch.setenv("KERAS_BACKEND", "torch")
    seen = report_of(tmp_path, "agent", "facts")
    found = causes(seen)
    assert "predict-in-loop" in found
    assert "is called 2 times in each step" in found["predict-in-loop"].seen
    assert (seen["steps"], seen["evaluations"], seen["no_grad_passes"]) == (26, 0, 56)
    assert 0 < seen["no_grad_seconds"] < seen["seconds"]
    (tmp_path / "again").mkdir()
    called = report_of(tmp_path / "again", "agent", "direct-call")
    assert called["changed"] == {"direct-call": "the model is called instead of predict()"}
    assert called["losses"] == pytest.approx(seen["printed"], rel=1e-5)
