"""``trainmark data list``: available datasets with their places, and advice about missing ones."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from trainmark.cli.main import run
from trainmark.data.catalog import CATALOG, MNIST
from trainmark.data.locate import Located, locate
from trainmark.errors import DataUnavailable
from trainmark.execute.parent import request as run_requests
from trainmark.execute.parent.request import RunRequest, locate_all
from trainmark.workload import catalog


@pytest.fixture(autouse=True)
def nothing_at_hand(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.delenv("TRAINMARK_DATA", raising=False)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))


def with_mnist(folder: Path, files: int = 4) -> Path:
    """Files of the right names: a list reads none of them."""
    folder.mkdir(parents=True)
    for file in MNIST.files[:files]:
        (folder / file.name).touch()
    return folder


def listed(capsys: pytest.CaptureFixture[str], *arguments: str) -> dict[str, Any]:
    assert run(["data", "list", "--json", *arguments]) == 0
    return {row["name"]: row for row in json.loads(capsys.readouterr().out)}


def test_nothing_is_at_hand_and_how_to_have_it(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(["data", "list"]) == 0
    out = capsys.readouterr().out
    assert "not found: use --data-dir DIR, TRAINMARK_DATA=DIR, or trainmark data fetch mnist" in out
    assert "generated when needed" in out
    assert list(listed(capsys)) == list(CATALOG)
    assert not (tmp_path / "cache").exists(), "looking makes nothing"


def test_what_is_at_hand_and_who_named_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    cached = with_mnist(tmp_path / "cache" / "trainmark" / "mnist")
    by_environment = with_mnist(tmp_path / "env" / "mnist")
    named = with_mnist(tmp_path / "named")
    where = [
        (None, (), cached, "cache"),
        (by_environment.parent, (), by_environment, "environment"),
    ]
    where.append((by_environment.parent, ("--data-dir", str(named)), named, "named"))
    for environment, arguments, directory, source in where:
        if environment is not None:
            monkeypatch.setenv("TRAINMARK_DATA", str(environment))
        row = listed(capsys, "mnist", *arguments)["mnist"]
        assert (row["directory"], row["source"], row["complete"]) == (str(directory), source, True)
    assert run(["data", "list", "mnist"]) == 0
    assert f"available, in {by_environment} (from TRAINMARK_DATA)" in capsys.readouterr().out


def test_a_folder_that_holds_too_little_is_a_separate_problem(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    named = with_mnist(tmp_path / "named", files=1)
    row = listed(capsys, "--data-dir", str(named))["mnist"]
    assert row["directory"] is None
    assert "only a part of mnist" in row["problem"]
    assert run(["data", "list", "--data-dir", str(tmp_path / "nowhere")]) == 2
    assert run(["data", "list", "mnits"]) == 2


def test_a_replacement_says_how_to_get_the_real_data(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    def here(name: str, **_: Any) -> Located:
        if name == "mnist":
            raise DataUnavailable("mnist was not found")
        return Located(name, tmp_path, "drawn", "", True, 60_000, 10_000)

    monkeypatch.setattr(run_requests, "locate", here)
    _, (notice,) = locate_all(RunRequest(), [catalog.find("mnist-mlp512")], tmp_path)
    assert notice.startswith("mnist was not found; using generated synthetic-digits instead")
    for remedy in ("--data-dir DIR", "TRAINMARK_DATA=DIR", "trainmark data fetch mnist"):
        assert remedy in notice


def test_a_workload_without_its_data_names_the_variable(tmp_path: Path) -> None:
    with pytest.raises(DataUnavailable) as caught:
        locate("mnist", cache=tmp_path, download=False)
    assert "add --data-dir DIR or set TRAINMARK_DATA=DIR" in caught.value.fix
