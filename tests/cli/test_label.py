"""``--label``: kept in the record, shown, and refused where it can't be read."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from trainmark.cli.main import run

MEASURE = ["measure", "--repeats", "1", "--name", "nothing"]


def test_labels_are_in_the_record(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    labels = ["--label", "instance=g5.xlarge", "--label", "site=a=b"]
    assert run([*MEASURE, "--out", str(tmp_path), *labels, "--json", "--", "true"]) == 0
    assert json.loads(capsys.readouterr().out)[0]["machine"]["labels"] == {
        "instance": "g5.xlarge",
        "site": "a=b",
    }
    (path,) = tmp_path.glob("*.json")
    assert run(["show", str(path)]) == 0
    assert "labels: instance=g5.xlarge, site=a=b" in capsys.readouterr().out


@pytest.mark.parametrize("text", ["g5.xlarge", "=g5", "instance=", "a=\x1b[31m", "a=" + "x" * 200])
@pytest.mark.parametrize(
    "words", [["run"], MEASURE, ["scale", "mnist-mlp128"]], ids=["run", "measure", "scale"]
)
def test_a_label_that_can_not_be_read(
    words: list[str], text: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    command = ["--", "true"] if words is MEASURE else []
    assert run([*words, "--label", text, "--out", str(tmp_path), *command]) == 2
    err = capsys.readouterr().err
    assert "expected KEY=VALUE" in err
    assert "\x1b" not in err
