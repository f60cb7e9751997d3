"""``trainmark show``, from its argument to its exit code."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from msgspec import structs

from tests.records import a_command, a_record, a_trial, write_all
from trainmark.cli.main import run
from trainmark.record.observed import Observed
from trainmark.workload import catalog


@pytest.mark.parametrize("name", catalog.names())
def test_every_workload_of_the_catalogue(name: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["show", name]) == 0
    out = capsys.readouterr().out
    assert name in out
    assert "total" in out
    assert ("summed over the batch" in out) == (name == "cifar10-resnet9")


def test_a_workload_as_json(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["show", "mnist-cnn", "--json"]) == 0
    data = json.loads(capsys.readouterr().out)
    assert data["model"]["parameters"] == 21_840
    assert data["spec"]["name"] == "mnist-cnn"


def test_a_record(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    record = structs.replace(a_record(), trainmark="1.2.3+g0123456")
    path = write_all(tmp_path, [record]) / f"{record.id}.json"
    assert run(["show", str(path)]) == 0
    out = capsys.readouterr().out
    assert "mnist-mlp512, numpy fast on cpu: ok" in out
    assert f"trainmark 1.2.3+g0123456: {record.command}" in out
    assert run(["show", str(path), "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["id"] == record.id


def test_a_trial_says_what_was_varied(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    record = a_trial(3, {"learning_rate": 0.01, "hidden": 32})
    assert run(["show", str(write_all(tmp_path, [record]) / f"{record.id}.json")]) == 0
    assert "trial 3 of a sweep: learning_rate=0.01 hidden=32" in capsys.readouterr().out


def test_a_users_own_workload(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    own = tmp_path / "own.toml"
    own.write_text((Path(catalog.__file__).parent / "mnist-mlp32.toml").read_text("utf-8"), "utf-8")
    assert run(["show", str(own)]) == 0
    assert "25,450" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("what", "said"),
    [
        ("mnist-cn", "Did you mean mnist-cnn"),
        (
            "nowhere.json",
            "no records at nowhere.json: expected a record or a folder of records, found nothing",
        ),
        ("nowhere.toml", "nowhere.toml can't be read: found No such file"),
        (".", ". is a folder"),
        ("folder.json", "folder.json is a folder"),
        (
            "/dev/null",
            "/dev/null is not a workload: expected a name that ends in .toml, found "
            "neither a file nor",
        ),
    ],
)
def test_usage(
    what: str,
    said: str,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.chdir(tmp_path)
    write_all(tmp_path / "folder.json", [a_record(), a_record(round=1)])
    assert run(["show", what]) == 2
    out, err = capsys.readouterr()
    assert out == ""
    assert said in err


def test_a_file_that_is_not_a_record(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "package.json").write_text("{}")
    assert run(["show", str(tmp_path / "package.json")]) == 1
    assert "is not a trainmark record" in capsys.readouterr().err


def test_the_help_has_an_example(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["show", "--help"]) == 0
    assert "trainmark show mnist-cnn" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("old", "new", "words"),
    [
        pytest.param("units = 10", "units = 9", "has too few outputs", id="outputs"),
        pytest.param("[28, 28, 1]", "[32, 32, 3]", "does not fit the dataset", id="shape"),
        pytest.param(
            'dataset = "mnist"', 'dataset = "mnits"', "unknown dataset 'mnits'", id="dataset"
        ),
    ],
)
def test_what_could_not_be_run_is_not_shown_either(
    old: str, new: str, words: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    text = (Path(catalog.__file__).parent / "mnist-mlp128.toml").read_text("utf-8")
    file = tmp_path / "mine.toml"
    file.write_text(text.replace(old, new))
    said = []
    for verb in ("show", "run"):
        assert run([verb, str(file)]) == 2
        said.append(capsys.readouterr().err)
    assert words in said[0]
    assert said[0] == said[1]


def test_what_was_observed_of_a_command(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    seen = Observed(
        "torch",
        (),
        11,
        2.0,
        examples_per_step=32.0,
        loader_wait_seconds=0.5,
        evaluations=2,
        evaluation_seconds=0.25,
        losses=[2.5, 1.5],
        places={"loader": "train.py:41", "evaluation": "train.py:60"},
        ended_early=True,
    )
    write_all(tmp_path, [record := a_command(observed=seen)])
    assert run(["show", str(tmp_path / f"{record.id}.json")]) == 0
    printed = " ".join(capsys.readouterr().out.split())
    for words in (
        "steps 11 the first one is not timed; ended early",
        "step 200 ms mean",
        "examples per step 32 train.py:41",
        "loader wait 500 ms train.py:41",
        "evaluation 250 ms 2 times train.py:60",
        "step loss 1.500 the last one that was kept; the first one: 2.500",
    ):
        assert words in printed
