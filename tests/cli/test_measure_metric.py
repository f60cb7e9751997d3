"""``trainmark measure --metric``: what can't be read, and the sentences about a figure."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from trainmark.cli.main import run

PRINTS = "for n in range(3): print('step', n, 'train loss', 3 - n, 'val_loss', 1 / (n + 1))"


class Found(NamedTuple):
    """What a command line has done."""

    code: int
    out: str
    err: str


class Measure:
    """Measures a Python program."""

    def __init__(self, folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
        self.out = folder / "out"
        self._capsys = capsys

    def __call__(self, *options: str, script: str = PRINTS) -> Found:
        words = ["measure", "--out", str(self.out), *options]
        code = run([*words, "--", sys.executable, "-c", script])
        return Found(code, *self._capsys.readouterr())

    def metric(self) -> dict[str, Any]:
        """Return the figure in the only record."""
        (path,) = self.out.glob("*.json")
        found: dict[str, Any] = json.loads(path.read_text())["named_metric"]
        return found


@pytest.fixture
def measure(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> Measure:
    return Measure(tmp_path, capsys)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (
            ["--metric", "val_loss"],
            "expected --lower-is-better or --higher-is-better, found neither",
        ),
        (
            ["--metric", "val_loss", "--lower-is-better", "--higher-is-better"],
            "expected --lower-is-better or --higher-is-better, found both",
        ),
        (["--lower-is-better"], "--lower-is-better says nothing without --metric"),
        (["--higher-is-better"], "--higher-is-better says nothing without --metric"),
        (["--metric", " ", "--lower-is-better"], "can't be read: expected a name"),
        (["--metric", "0.5", "--lower-is-better"], "can't be read: expected a name"),
        (["--metric", "x" * 101, "--lower-is-better"], "can't be read: expected a name"),
    ],
)
def test_options_that_do_not_fit(measure: Measure, options: list[str], message: str) -> None:
    found = measure(*options)
    assert found.code == 2
    assert message in found.err
    assert not measure.out.exists()


def test_workloads_have_no_metric(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["run", "mnist-mlp32", "--metric", "val_loss"]) == 2
    assert "trainmark measure" in capsys.readouterr().err


def test_a_printed_figure_is_recorded_and_said(measure: Measure) -> None:
    found = measure("--repeats", "1", "--metric", "val_loss", "--lower-is-better")
    assert found.code == 0, found.err
    assert "val_loss 0.3333 at the end (best 0.3333 at step 2, lower is better)." in found.out
    metric = measure.metric()
    assert metric["values"] == [1, 1 / 2, 1 / 3]
    assert (metric["at"], metric["counted_in"], metric["source"]) == ([0, 1, 2], "step", "printed")


def test_a_figure_that_is_missing_ends_the_rounds(measure: Measure) -> None:
    found = measure("--repeats", "3", "--metric", "val_acc", "--higher-is-better")
    assert found.code == 1
    assert "val_acc was never printed or logged; found: step, train loss, val_loss" in found.err
    assert "so the other rounds were skipped" in found.err
    assert measure.metric()["last"] is None


def test_json_alone_is_on_stdout_without_the_figure(measure: Measure) -> None:
    found = measure("--repeats", "1", "--metric", "val_acc", "--higher-is-better", "--json")
    (record,) = json.loads(found.out)
    assert (found.code, record["named_metric"]["count"]) == (1, 0)
    assert "val_acc was never printed or logged" in found.err


def test_one_side_may_lack_the_figure(measure: Measure) -> None:
    script = "import sys; print(('loss', 'other')[{lacks}], 0.5)"
    options = ("--vary", "lacks=0,1", "--metric", "loss", "--lower-is-better", "--repeats", "1")
    found = measure(*options, script=script)
    assert found.code == 1
    assert "lacks=0: loss 0.5000 at the end" in found.out
    assert "lacks=1: loss was never printed or logged; found: other." in found.err
    assert "learning is not judged: loss is missing in 1 run" in " ".join(found.out.split())


def test_thousands_of_values_are_few_in_the_record(measure: Measure) -> None:
    script = "for n in range(30_000): print('loss', 30_000 - n)"
    options = ("--repeats", "1", "--metric", "loss", "--lower-is-better")
    found = measure(*options, script=script)
    assert "loss 1.000 at the end" in found.out, found.err
    metric = measure.metric()
    assert (metric["count"], len(metric["values"]), metric["last"]) == (30_000, 2_280, 1)
