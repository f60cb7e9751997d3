"""Slow scripts that an earlier version misjudged: the cause, its line, and what was measured.

They are in ``cases``, next to the data; each docstring states what is true.
"""

from __future__ import annotations

import importlib.util
import json
import os
import shutil
from pathlib import Path
from typing import Any

import pytest

from tests.end_to_end.command import CommandLine

pytest.importorskip("torch")

# each uses its whole time, so only .ci/nightly runs them
pytestmark = [pytest.mark.slow, pytest.mark.timeout(900)]

SECONDS = 90
DATA = os.environ.get("TRAINMARK_DATA")
CASES = Path(DATA or "data").parent / "cases"


class Explained:
    """What ``explain`` said of a case."""

    def __init__(self, command: CommandLine, tmp_path: Path, name: str, *needs: str) -> None:
        if not (CASES / name).is_dir():
            pytest.skip(
                f"{CASES / name} is absent; set TRAINMARK_DATA to the data folder next to it"
            )
        for each in needs:
            if importlib.util.find_spec(each) is None:
                pytest.skip(f"{each} is not installed")
        shutil.copy(CASES / name / "train.py", tmp_path)
        words = ("explain", "--seconds", str(SECONDS), "--json", "--", "python", "train.py")
        code, out, err = command.run(*words)
        assert code == 0, err
        self.answer: dict[str, Any] = json.loads(out)
        self.text = (tmp_path / "train.py").read_text("utf-8")
        assert self.answer["seconds"] <= SECONDS

    @property
    def first(self) -> str:
        return str(self.answer["sentences"][0])

    def change(self, name: str) -> dict[str, Any]:
        (found,) = (each for each in self.answer["findings"] if each["change"] == name)
        return dict(found)

    def line(self, text: str) -> str:
        (number,) = (
            number for number, line in enumerate(self.text.splitlines(), 1) if text in line
        )
        return f"train.py:{number}"


@pytest.fixture
def explained(command: CommandLine, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Any:
    """Return what ``explain`` says of a case."""
    monkeypatch.chdir(tmp_path)

    def run(name: str, *needs: str) -> Explained:
        return Explained(command, tmp_path, name, *needs)

    return run


def test_anomaly(explained: Any) -> None:
    case = explained("anomaly")
    assert case.line("set_detect_anomaly") in case.first
    assert "anomaly detection" in case.first
    assert case.change("no-anomaly")["speedup"]["low"] > 1.5


def test_workers_each_epoch(explained: Any) -> None:
    case = explained("workers_each_epoch")
    none = case.change("no-workers")["speedup"]
    kept = case.change("persistent-workers")["speedup"]
    assert kept["low"] > 1
    assert none["value"] > kept["value"]
    assert "num_workers=0" in case.first


def test_gc_each_step(explained: Any) -> None:
    case = explained("gc_each_step")
    assert case.line("gc.collect()") in case.first
    gain = case.change("no-gc")["speedup"]
    assert gain["low"] > 3
    assert gain["high"] < 3 * gain["low"]


def test_keras_predict(explained: Any) -> None:
    case = explained("keras_predict", "keras", "tensorflow")
    assert "predict()" in case.first
    assert "is called 3 times in each step" in case.first
    assert case.change("direct-call")["speedup"]["low"] > 5
    assert "steps_per_execution" not in " ".join(case.answer["sentences"])


def test_cell_loop(explained: Any) -> None:
    case = explained("cell_loop")
    assert case.line("self.cell(x") in case.first
    assert "nn.LSTM" in case.first


def test_checkpointed(explained: Any) -> None:
    case = explained("checkpointed")
    assert case.line("= checkpoint(") in case.first
    found = case.change("no-checkpointing")
    assert found["speedup"]["low"] > 1
    assert found["memory"] is not None


def test_pandas_rows(explained: Any) -> None:
    case = explained("pandas_rows", "pandas")
    assert case.line("row.drop") in case.first or case.line(".iloc[i]") in case.first
    assert "arrays or tensors once" in case.first


def test_one_thread(explained: Any) -> None:
    if len(os.sched_getaffinity(0)) < 2:
        pytest.skip("there is a single core")
    case = explained("one_thread")
    whole = case.answer["stack"][-1]
    assert "threads=2" in whole["change"].split("+")
    assert whole["fresh"]
    assert whole["speedup"]["low"] > 1.3
