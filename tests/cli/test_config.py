"""Options from a file and from the environment, and ``trainmark config``."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from trainmark.cli.main import run


@pytest.fixture(autouse=True)
def _here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


def options(capsys: pytest.CaptureFixture[str], *words: str) -> dict[str, Any]:
    """Return the options of ``run``: (value, source, where) by option."""
    assert run(["config", "--json", "run", *words]) == 0
    return {
        row["option"]: (row["value"], row["source"], row["where"])
        for row in json.loads(capsys.readouterr().out)
    }


def test_the_nearest_file_holds(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: Any
) -> None:
    (tmp_path / "trainmark.toml").write_text("repeats = 4\n")
    inner = tmp_path / "inner"
    inner.mkdir()
    monkeypatch.chdir(inner)
    assert options(capsys)["repeats"] == (4, "file", f"{tmp_path / 'trainmark.toml'}, line 1")
    (inner / "pyproject.toml").write_text(
        "[project]\nname = 'mine'\n\n[tool.trainmark]\nrepeats = 6\n"
    )
    assert options(capsys)["repeats"][0] == 6


def test_a_table_of_the_verb_wins_over_what_holds_for_all(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "trainmark.toml").write_text(
        "repeats = 4\nfail-below = 0.9\n[run]\nrepeats = 8\nbackend = ['torch', 'jax']\n"
    )
    found = options(capsys)
    assert found["repeats"] == (8, "file", f"{tmp_path / 'trainmark.toml'}, line 4")
    assert found["backend"][0] == ["torch", "jax"]


def test_what_is_typed_wins_then_the_environment_then_the_file(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "trainmark.toml").write_text("repeats = 4\n")
    monkeypatch.setenv("TRAINMARK_REPEATS", "5")
    assert options(capsys)["repeats"] == (5, "environment", "TRAINMARK_REPEATS")
    assert options(capsys, "--repeats", "6")["repeats"] == (6, "command line", "command line")


def test_without_a_verb_only_what_is_set_is_shown(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(["config"]) == 0
    assert "No file and no environment variable" in capsys.readouterr().out
    (tmp_path / "trainmark.toml").write_text("[noise]\nbudget = 10\n")
    assert run(["config"]) == 0
    lines = [line.split() for line in capsys.readouterr().out.splitlines() if "--budget" in line]
    assert [line[:3] for line in lines] == [["noise", "--budget", "10.0"]]


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("repeets = 4\n", "line 1: unknown key 'repeets'"),
        ("repeets = 4\n", "Did you mean repeats"),
        ("seed = 1\n[run]\nlegend = true\nbudgett = 3\n", "line 4: unknown key 'budgett'"),
        ("repeats = 'five'\n", "line 1: repeats: expected what --repeats takes"),
        ("repeats = true\n", "line 1: repeats: expected a string or a number, found True"),
        ("\nrepeats = [4]\n", "line 2: repeats: expected a string or a number, found [4]"),
        ("legend = 1\n", "line 1: legend: expected true or false, found 1"),
        ("run = 3\n", "line 1: run: expected a table, found 3"),
        ("repeats = \n", "expected TOML 1.0"),
    ],
)
def test_a_wrong_file_is_an_error_with_its_line(
    text: str, said: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "trainmark.toml").write_text(text)
    assert run(["run", "--dry-run"]) == 2
    err = capsys.readouterr().err
    assert said in err
    assert str(tmp_path / "trainmark.toml") in err


def test_a_project_without_a_table_of_ours_is_left_alone(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "pyproject.toml").write_text(
        "[project]\nname = 'trainmark-user'\n[tool.other]\nrepeats = 3\n"
    )
    assert options(capsys)["repeats"][1] == "default"


def test_help_needs_no_file_that_can_be_read(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "trainmark.toml").write_text("= broken")
    assert run(["run", "--help"]) == 0
    assert "--repeats" in capsys.readouterr().out


def test_a_dry_run_leaves_nothing(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    assert run(["measure", "--dry-run", "--vary", "n=1,2", "--", "true", "{n}"]) == 0
    assert "10 runs: true, n=1; n=2, 5 rounds." in capfd.readouterr().err
    assert not list(tmp_path.glob("trainmark-results/*.json"))


def test_a_measured_commands_own_help_does_not_hide_the_file(
    tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "trainmark.toml").write_text("repeats = 3\n")
    assert run(["measure", "--dry-run", "--", "true", "--help"]) == 0
    assert "3 rounds" in capfd.readouterr().err
