"""``trainmark predict`` on real runs."""

from __future__ import annotations

import csv
import io
import json
import shutil
from pathlib import Path
from typing import Any

import pytest

from tests.end_to_end.command import CommandLine
from tests.slow import slow
from trainmark.backends import registry
from trainmark.data.locate import Located
from trainmark.record import weights
from trainmark.workload import catalog
from trainmark.workload.model import initial_weights, lay_out

TRAINED = (
    "--dataset",
    "synthetic-digits",
    "--device",
    "cpu",
    "--repeats",
    "1",
    "--steps",
    "40",
    "--save-weights",
)


def trained(command: CommandLine, *arguments: str) -> Path:
    """The record of one short run with its weights."""
    code, _, err = command.run("run", *arguments, *TRAINED, "--out", str(command.out))
    assert code == 0, err
    (record,) = command.out.glob("*.json")
    return record


def predicted(command: CommandLine, record: Path, *arguments: str) -> dict[str, Any]:
    code, out, err = command.run("predict", str(record), "--json", *arguments)
    assert code == 0, err
    found: dict[str, Any] = json.loads(out)
    return found


@pytest.mark.parametrize(
    ("backend", "style"),
    [
        slow("numpy", "idiomatic"),  # by day with what the other tests predict
        slow("torch", "idiomatic"),
        slow("torch", "fast"),
        slow("jax", "fast"),
        slow("keras", "idiomatic"),
    ],
)
def test_the_recorded_accuracy_is_found_again_to_the_last_example(
    command: CommandLine, backend: str, style: str
) -> None:
    entry = registry.find(backend)
    if not entry.installed:
        pytest.skip(f"{entry.needs} is not installed")
    found = predicted(
        command, trained(command, "mnist-mlp512", "--backend", backend, "--style", style)
    )
    assert found["recorded_accuracy"] > 0.3
    assert_found_again(found)


def assert_found_again(found: dict[str, Any]) -> None:
    assert found["accuracy"] == found["recorded_accuracy"]
    assert found["reproduced"] is True
    right = sum(line[label] for label, line in enumerate(found["confusion"]))
    assert right / found["examples"] == found["accuracy"], (
        "what evaluation counts, the probabilities say, too"
    )
    assert found["notes"] == []


@pytest.fixture(scope="module")
def built_in(tmp_path_factory: pytest.TempPathFactory, drawn: Located, cache_home: Path) -> Path:
    """A record of the built-in backend, with its weights."""
    return trained(
        CommandLine(drawn, cache_home, tmp_path_factory.mktemp("built-in")),
        "mnist-mlp128",
        "--backend",
        "numpy",
    )


@pytest.fixture
def record(built_in: Path, command: CommandLine) -> Path:
    """A copy of it, to be damaged."""
    shutil.copytree(built_in.parent, command.out)
    return command.out / built_in.name


def test_every_probability_can_be_had_as_a_file(
    command: CommandLine, record: Path, tmp_path: Path
) -> None:
    file = tmp_path / "all.csv"
    found = predicted(command, record, "-o", str(file))
    assert_found_again(found)
    rows = list(csv.DictReader(io.StringIO(file.read_text())))
    assert len(rows) == found["examples"] == 10_000
    assert sum(row["right"] == "True" for row in rows) / len(rows) == found["accuracy"]
    assert all(
        abs(sum(float(row[f"p{each}"]) for each in range(10)) - 1) < 1e-6 for row in rows[:100]
    )


def test_parquet_holds_the_same(command: CommandLine, record: Path, tmp_path: Path) -> None:
    polars = pytest.importorskip("polars", reason="polars is not installed")
    file = tmp_path / "all.parquet"
    found = predicted(command, record, "-o", str(file))
    frame = polars.read_parquet(file)
    assert frame.height == 10_000
    assert frame["right"].mean() == pytest.approx(found["accuracy"])


@pytest.mark.parametrize("ending", ["svg", "png"])
def test_recognised_and_mistaken_ones_are_drawn(
    command: CommandLine, record: Path, tmp_path: Path, ending: str
) -> None:
    if ending == "png":
        pytest.importorskip("vl_convert", reason="trainmark[report] is not installed")
    file = tmp_path / f"grid.{ending}"
    predicted(command, record, "--grid", str(file))
    if ending == "svg":
        assert file.read_text().count("<image") == 16
    else:
        assert file.read_bytes()[:8] == b"\x89PNG\r\n\x1a\n"
        assert file.stat().st_size > 10_000


def test_one_example_is_drawn_in_the_terminal(command: CommandLine, record: Path) -> None:
    code, out, err = command.run("predict", str(record), "--index", "8")
    assert code == 0, err
    assert "█" in out
    assert "true class" in out
    assert "test example 8" in out


def test_without_weights_it_says_how_to_get_them(command: CommandLine, record: Path) -> None:
    record.with_suffix(".safetensors").unlink()
    code, _, err = command.run("predict", str(record))
    assert code == 2
    assert "--save-weights" in err


def test_weights_of_another_network_are_refused(command: CommandLine, record: Path) -> None:
    foreign = initial_weights(lay_out(catalog.find("mnist-mlp512")), seed=1)
    weights.save(foreign, record.with_suffix(".safetensors"))
    code, _, err = command.run("predict", str(record))
    assert code == 1
    assert "don't fit the network" in err


@pytest.mark.parametrize(
    "spoil", [lambda text: text[: len(text) // 2], lambda _: b"", lambda _: b"\x80\x04pickle" * 9]
)
def test_damaged_weights_are_refused(command: CommandLine, record: Path, spoil: Any) -> None:
    file = record.with_suffix(".safetensors")
    file.write_bytes(spoil(file.read_bytes()))
    code, _, err = command.run("predict", str(record))
    assert code == 1
    assert "has no valid weights" in err


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("nowhere.json",), "no record at nowhere.json"),
        (("RECORD", "--grid", "grid.gif"), ".png or .svg"),
        (("RECORD", "-o", "all.txt"), ".csv or .parquet"),
        (("RECORD", "--index", "10000"), "no test example 10,000"),
    ],
)
def test_impossible_requests_are_errors(
    command: CommandLine, record: Path, arguments: tuple[str, ...], said: str
) -> None:
    code, _, err = command.run(
        "predict", *(str(record) if each == "RECORD" else each for each in arguments)
    )
    assert code == 2
    assert said in err
