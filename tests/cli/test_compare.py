"""``trainmark compare``, from its arguments to its exit code."""

from __future__ import annotations

import csv
import io
import json
import math
from pathlib import Path

import pytest

from tests.records import a_record, a_trial, rounds, write_all
from trainmark.cli.main import run
from trainmark.record.record import SCHEMA_VERSION


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Two devices in three rounds; the second takes half as long."""
    return write_all(
        tmp_path / "out", rounds([2.0, 2.1, 1.9]) + rounds([1.0, 1.05, 0.95], device="cuda:0")
    )


def test_workloads_are_no_sides_and_the_error_says_why(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(["compare", str(folder), "--by", "workload"]) == 2
    assert "different workloads can't be compared for speed" in capsys.readouterr().err
    assert run(["compare", str(folder), "--by", "wordload"]) == 2
    assert "different workloads" not in capsys.readouterr().err
    assert run(["compare", str(folder), "--by", "device"]) == 0


def test_records_with_nothing_in_common(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    records = [*rounds([1.0, 1.1, 0.9]), *rounds([2.0, 2.1, 1.9], workload="mnist-cnn")]
    assert run(["compare", str(write_all(tmp_path / "out", records))]) == 0
    assert "nothing can be compared" in capsys.readouterr().err
    # each with the published figures
    assert run(["compare", "--published", str(tmp_path / "out")]) == 0
    assert "nothing can be compared" not in capsys.readouterr().err
    failed = [*rounds([1.0, 1.1, 0.9]), *rounds([2.0], device="cuda:0", status="failed")]
    assert run(["compare", str(write_all(tmp_path / "failed", failed))]) == 0
    assert "nothing can be compared" not in capsys.readouterr().err


def test_the_table_is_the_default(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["compare", str(folder)]) == 0
    out, err = capsys.readouterr()
    assert "2.00× faster" in out
    assert err == ""


@pytest.mark.parametrize("form", [["--json"], ["--format", "json"]])
def test_json_is_alone_on_stdout(
    form: list[str], folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(["compare", str(folder), "--fail-below", "3", *form]) == 3
    out, err = capsys.readouterr()
    groups = json.loads(out)["groups"]
    assert [group["key"]["device"] for group in groups] == ["cpu", "cuda:0"]
    assert groups[1]["speedup"]["ratio"] == pytest.approx(2)
    assert "misses the bar of 3.00×" in err


def test_nan_survives(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    write_all(tmp_path, [a_record(train_loss=math.nan)])
    assert run(["compare", str(tmp_path), "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["groups"][0]["train_loss"] == "nan"


def test_markdown_and_csv(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["compare", str(folder), "--format", "markdown"]) == 0
    assert "| --- |" in capsys.readouterr().out
    assert run(["compare", str(folder), "--format", "csv"]) == 0
    assert [row["device"] for row in csv.DictReader(io.StringIO(capsys.readouterr().out))] == [
        "cpu",
        "cuda:0",
    ]


def test_the_baseline_turns_the_ratio_round(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert (
        run(["compare", str(folder), "--by", "device", "--baseline", "device=cuda:0", "--json"])
        == 0
    )
    assert json.loads(capsys.readouterr().out)["groups"][0]["speedup"]["verdict"] == "slower"


def test_the_margin_is_in_percent(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["compare", str(folder), "--margin", "5", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["margin"] == 0.05


def test_a_bar_that_is_cleared(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["compare", str(folder), "--fail-below", "0.95"]) == 0
    assert capsys.readouterr().err == ""


def test_a_bar_that_nothing_has_an_interval_for_is_no_gate(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    write_all(tmp_path, rounds([1.0]) + rounds([9.0], device="cuda:0"))
    assert run(["compare", str(tmp_path), "--fail-below", "0.95"]) == 2
    err = capsys.readouterr().err
    assert "cuda:0 can't be judged by the bar of 0.950×: it has no interval" in err
    assert "could be judged by the bar" in err and "--repeats" in err


def test_one_side_without_an_interval_is_named_and_passes(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    write_all(folder, rounds([9.0], device="cuda:1"))
    assert run(["compare", str(folder), "--fail-below", "0.95"]) == 0
    assert (
        "cuda:1 can't be judged by the bar of 0.950×: it has no interval" in capsys.readouterr().err
    )


def test_a_bar_without_anything_to_compare_is_reported(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    write_all(tmp_path, rounds([1.0]))
    assert run(["compare", str(tmp_path), "--fail-below", "0.95"]) == 2
    assert "could be judged by the bar" in capsys.readouterr().err


def test_trials_of_a_sweep_are_left_out_and_a_note_says_so(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(["compare", str(folder), "--json"]) == 0
    alone = capsys.readouterr().out
    write_all(folder, [a_trial(1), a_trial(2)])
    assert run(["compare", str(folder), "--json"]) == 0
    out, err = capsys.readouterr()
    assert out == alone
    assert "ignored 2 trials of a sweep" in err
    page = folder / "comment.md"
    assert run(["export", str(folder), "--to", "markdown", "-o", str(page)]) == 0
    assert "ignored 2 trials" in capsys.readouterr().err


def test_published(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["compare", str(folder), "--published", "--json"]) == 0
    (result,) = json.loads(capsys.readouterr().out)["published"]
    assert (result["workload"], result["run"], result["key"]) == ("mnist-mlp512", "20 epochs", None)


def test_an_empty_folder(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["compare", str(tmp_path)]) == 2
    out, err = capsys.readouterr()
    assert out == ""
    assert f"no records in {tmp_path}" in err


def test_a_path_that_is_not_there(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["compare", str(tmp_path / "nowhere")]) == 2
    assert (
        "nowhere: expected a record or a folder of records, found nothing"
        in capsys.readouterr().err
    )


@pytest.mark.parametrize("text", ["", "{", "[]", '{"name": "package"}', '{"schema_version": 1}'])
def test_foreign_json_among_the_records(
    text: str, folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (folder / "package.json").write_text(text)
    assert run(["compare", str(folder)]) == 1
    out, err = capsys.readouterr()
    assert out == ""
    assert "package.json is not a trainmark record" in err


def test_a_newer_record(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (folder / "newer.json").write_text(json.dumps({"schema_version": SCHEMA_VERSION + 1}))
    assert run(["compare", str(folder)]) == 1
    assert "written by a newer trainmark" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["--baseline", "device=cuda:7"], "expected one of cpu, cuda:0"),
        (["--baseline", "colour=red"], "unknown baseline key 'colour'"),
        (["--baseline", "cpu"], "expected KEY=VALUE, such as device=cpu"),
        (
            ["--by", "device", "--baseline", "backend=numpy"],
            "expected a baseline such as device=cpu",
        ),
        (["--by", "colour"], "colour"),
        (["--margin", "nan"], "nan is not a finite number"),
        (["--margin", "-1"], "expected a number from 0"),
        (["--fail-below", "0"], "expected a number above 0"),
        (["--fail-below", "inf"], "inf is not a finite number"),
        (["--format", "html"], "html"),
    ],
)
def test_usage(
    arguments: list[str], said: str, folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(["compare", str(folder), *arguments]) == 2
    out, err = capsys.readouterr()
    assert out == ""
    assert said in err


def test_records_are_needed(
    capsys: pytest.CaptureFixture[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    assert run(["compare"]) == 2
    assert "there is no trainmark-results here" in capsys.readouterr().err


def test_the_help_has_an_example(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["compare", "--help"]) == 0
    assert "trainmark compare trainmark-results/ --by device" in capsys.readouterr().out


@pytest.mark.parametrize(("name", "begins"), [("plot.svg", b"<svg"), ("plot.png", b"\x89PNG")])
def test_a_plot_for_papers(folder: Path, tmp_path: Path, name: str, begins: bytes) -> None:
    pytest.importorskip("vl_convert", reason="trainmark[report] is not installed")
    plot = tmp_path / name
    assert run(["compare", str(folder), "--plot", str(plot), "--chart", "speedup,epochs"]) == 0
    assert plot.read_bytes().startswith(begins)
    if name.endswith(".svg"):
        text = plot.read_text()
        assert "2.00×" in text
        assert "speed-up over the reference" in text
        assert "seconds" in text
        assert "var(--" not in text


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["--plot", "plot.gif"], ".svg or .png"),
        (["--plot", "plot.svg", "--chart", "epoch"], "epochs"),
        (["--chart", "epochs"], "--plot FILE.svg"),
        (["--plot", "plot.svg", "--chart", "gpu-power"], "nothing to draw"),
        (["--plot", "nowhere/plot.svg"], "can't write"),
    ],
)
def test_a_plot_that_can_not_be_drawn(
    folder: Path, arguments: list[str], said: str, capsys: pytest.CaptureFixture[str]
) -> None:
    pytest.importorskip("vl_convert", reason="trainmark[report] is not installed")
    assert run(["compare", str(folder), *arguments]) in (1, 2)
    assert said in capsys.readouterr().err


def test_a_picture_shows_the_command_without_its_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = write_all(tmp_path / "out", [*rounds([1.0, 1.1, 1.2])])
    picture = tmp_path / "picture.svg"
    words = ["compare", str(folder), "--export-svg", str(picture)]
    monkeypatch.setattr("sys.argv", ["trainmark", *words])
    assert run(words) == 0
    shown = picture.read_text().replace("&#160;", " ")
    assert f"$ trainmark compare {folder}" in shown
    assert "--export-svg" not in shown
