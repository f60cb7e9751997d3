"""``trainmark`` as a library: its objects display themselves."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

import trainmark
from tests.browser.samples import full_records
from tests.records import a_record, write_all
from trainmark.api import Compared, Records
from trainmark.cli import main as command_line
from trainmark.data.locate import Located
from trainmark.errors import TrainmarkError, UnknownName, UsageError


@pytest.fixture
def compared(tmp_path: Path) -> Compared:
    """Two devices in five rounds, from a folder."""
    return trainmark.load_records(write_all(tmp_path, full_records())).compare()


def test_importing_trainmark_imports_none_of_its_modules() -> None:
    script = (
        "import sys, trainmark; print([name for name in sys.modules if "
        "name.startswith('trainmark.')])"
    )
    done = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, check=True
    )
    assert done.stdout.strip() == "[]"


def test_an_unknown_attribute_of_the_package_is_an_error() -> None:
    with pytest.raises(AttributeError, match="no attribute 'runs'"):
        trainmark.runs  # noqa: B018


def test_dir_lists_the_public_names() -> None:
    assert {"run", "load_records", "compare", "__version__"} <= set(dir(trainmark))


def test_one_record_is_one_record(tmp_path: Path) -> None:
    assert repr(trainmark.load_records(write_all(tmp_path, [a_record()]))) == "<1 trainmark record>"


def test_records_are_a_sequence(tmp_path: Path) -> None:
    records = trainmark.load_records(write_all(tmp_path, full_records(2)))
    assert len(records) == 4
    assert records[0].device.id == "cpu"
    assert isinstance(records[1:], Records)
    assert [record.round for record in records] == [0, 0, 1, 1]
    assert repr(records) == "<4 trainmark records>"
    assert "<table>" in records._repr_html_()


def test_a_comparison_shows_itself(compared: Compared) -> None:
    assert "8.00× faster" in compared._repr_html_()
    assert "8.00× faster" in repr(compared)
    assert trainmark.compare(list(compared.records), baseline="device=cuda:0").comparison.groups[
        0
    ].speedup.ratio == (pytest.approx(1 / 8))


def test_html_of_a_record_is_only_ever_text() -> None:
    html = trainmark.compare([a_record(machine="<script>x</script>")])._repr_html_()
    assert "<script>" not in html
    assert "&lt;script&gt;" in html


@pytest.mark.parametrize("library", ["polars", "pandas"])
def test_frames(compared: Compared, library: str) -> None:
    pytest.importorskip(library, reason=f"{library} is not installed")
    groups = compared.to_frame(library)
    runs = compared.records.to_frame(library)
    epochs = compared.records.epochs(library)
    assert type(groups).__module__.startswith(library)
    assert list(groups["device"]) == ["cpu", "cuda:0"]
    assert len(runs) == 10
    assert len(epochs) == 60
    assert list(epochs["test_accuracy"])[5] == pytest.approx(0.97)


def test_a_frame_of_another_library(compared: Compared) -> None:
    with pytest.raises(UnknownName, match="pandas"):
        compared.to_frame("panda")


def test_charts_and_pages_can_be_kept(compared: Compared, tmp_path: Path) -> None:
    pytest.importorskip("vl_convert", reason="trainmark[report] is not installed")
    compared.save_chart(tmp_path / "epochs.svg", "epochs")
    assert (tmp_path / "epochs.svg").read_text().startswith("<svg")
    assert compared.chart("pace").to_dict()["vconcat"]
    assert compared.report(tmp_path / "page.html").read_text().startswith("<!doctype html>")
    with pytest.raises(UnknownName, match="epochs"):
        compared.chart("epoch")
    with pytest.raises(UsageError, match=r"\.svg or \.png"):
        compared.save_chart(tmp_path / "epochs.gif")


@pytest.mark.parametrize("baseline", ["cpu", "device=", "=cpu"])
def test_a_baseline_that_can_not_be_read(compared: Compared, baseline: str) -> None:
    with pytest.raises(UsageError, match="KEY=VALUE"):
        compared.records.compare(baseline=baseline)


def test_what_is_trained_comes_back(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capfd: pytest.CaptureFixture[str],
    cache_home: Path,
    drawn: Located,
) -> None:
    """This is a real run with the built-in backend, in a separate process, without messages."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(cache_home))
    monkeypatch.delenv("TRAINMARK_DATA", raising=False)
    records = trainmark.run(
        "mnist-mlp128",
        backend="numpy",
        device="cpu",
        repeats=1,
        steps=5,
        dataset="synthetic-digits",
        labels={"site": "a=b"},
        out=tmp_path / "out",
        quiet=True,
    )
    assert [record.outcome.status for record in records] == ["ok"]
    assert records[0].machine.labels == {"site": "a=b"}
    assert len(trainmark.load_records(tmp_path / "out")) == 1
    assert capfd.readouterr() == ("", "")


def test_what_can_not_be_trained_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(TrainmarkError, match="mnist-mlp128"):
        trainmark.run("mnist-mlp12", out=tmp_path, quiet=True)


@pytest.mark.parametrize(
    "wrong",
    [
        {"seed": 10**30},
        {"threads": -1},
        {"repeats": 0},
        {"steps": 10**9},
        {"epochs": -1},
        {"dataset_repeats": 0},
        {"timeout": 0},
        {"memory_fraction": 1.5},
        {"log_every": 0},
        {"budget": -1},
    ],
    ids=lambda wrong: next(iter(wrong)),
)
def test_values_out_of_bounds(wrong: dict[str, Any], tmp_path: Path) -> None:
    (name,) = wrong
    words = name.replace("_", "[ _-]")
    with pytest.raises(UsageError, match=f"{words}.*expected .* found"):
        trainmark.run(
            "mnist-mlp32", backend="fake", dataset="synthetic-digits", out=tmp_path, **wrong
        )


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"device": "gpuu"}, ["--device", "gpuu"]),
        ({"backend": "nunpy"}, ["--backend", "nunpy"]),
        ({"style": "fats"}, ["--style", "fats"]),
        ({"precision": "fp23"}, ["--precision", "fp23"]),
        ({"dataset": "mnits"}, ["--dataset", "mnits"]),
        ({"until": "test_acuracy>=0.9"}, ["--until", "test_acuracy>=0.9"]),
        ({"prices": ["cpu=free"]}, ["--price", "cpu=free"]),
        ({"prices": "cpu=free"}, ["--price", "cpu=free"]),
        ({"pythons": ["old"]}, ["--python", "old"]),
        ({"labels": {"instance": ""}}, ["--label", "instance="]),
        ({"epochs": 1, "steps": 1}, ["--epochs", "1", "--steps", "1"]),
    ],
    ids=lambda each: " ".join(each) if isinstance(each, list) else None,
)
def test_python_and_the_command_line_give_the_same_error(
    options: dict[str, Any], words: list[str], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    default = {} if "backend" in options else {"backend": "numpy"}
    with pytest.raises(UsageError) as caught:
        trainmark.run("mnist-mlp32", out=tmp_path, quiet=True, **{**default, **options})
    flags = [word for name, value in default.items() for word in (f"--{name}", value)]
    assert command_line.run(["run", "mnist-mlp32", "--out", str(tmp_path), *flags, *words]) == 2
    assert capsys.readouterr().err.splitlines()[-1] == f"trainmark: {caught.value}"


def test_an_option_that_run_does_not_have(tmp_path: Path) -> None:
    with pytest.raises(UnknownName, match="Did you mean device"):
        trainmark.run("mnist-mlp32", out=tmp_path, devise="cpu")  # type: ignore[call-arg]


def test_an_unknown_protocol_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(UnknownName, match="Did you mean fresh"):
        trainmark.run("mnist-mlp32", out=tmp_path, backend="fake", protocol="frsh")  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("wrong", "words"),
    [
        ({"by": "workload"}, "can't be compared for speed"),
        ({"by": "devise"}, "device"),
        ({"margin": -1.0}, "expected a number from 0"),
    ],
)
def test_a_comparison_that_can_not_be_made(
    wrong: dict[str, Any], words: str, compared: Compared
) -> None:
    with pytest.raises(UsageError, match=words):
        compared.records.compare(**wrong)
