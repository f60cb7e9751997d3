"""``trainmark explain RECORD`` for a run that did not learn, as a person starts it."""

from __future__ import annotations

import json
from pathlib import Path

from tests.end_to_end.command import CommandLine
from trainmark.workload import catalog


def test_a_run_that_diverged_is_trained_again_and_its_cause_is_named(
    command: CommandLine, tmp_path: Path
) -> None:
    text = (
        Path(catalog.__file__).with_name("mnist-mlp512.toml").read_text().partition("[published")[0]
    )
    file = tmp_path / "hot.toml"
    file.write_text(
        text.replace("learning_rate = 0.001", "learning_rate = 30.0").replace("mnist-mlp512", "hot")
    )
    code, _, err = command.run(
        "run",
        str(file),
        "--backend",
        "numpy",
        "--dataset",
        "synthetic-digits",
        "--steps",
        "10",
        "--repeats",
        "1",
        "--out",
        str(command.out),
    )
    (record,) = command.out.glob("*.json")
    assert "not-learning" in record.read_text(), err
    code, out, err = command.run("explain", str(record), "--json")
    assert code == 0, err
    found = json.loads(out)
    assert found["diagnosis"]["cause"] == "learning-rate"
    assert found["diagnosis"]["step"] == 0
    code, out, _ = command.run("explain", str(record))
    assert code == 0
    assert "learning-rate at step 0" in out
    assert "ten times smaller" in out
