"""``trainmark data show``: any example, without a record."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from trainmark.cli.main import run


@pytest.fixture
def shown(monkeypatch: pytest.MonkeyPatch, cache_home: Path) -> None:
    """Generated digits, from the cache that all tests share."""
    monkeypatch.delenv("TRAINMARK_DATA", raising=False)
    monkeypatch.setenv("XDG_CACHE_HOME", str(cache_home))


@pytest.mark.usefixtures("shown")
def test_an_example_is_drawn_with_what_it_is(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["data", "show", "synthetic-digits", "--split", "train", "--index", "59999"]) == 0
    out = capsys.readouterr().out
    assert "synthetic-digits, train example 59,999: " in out
    assert any(shade in out for shade in "░▒▓█")


@pytest.mark.usefixtures("shown")
def test_its_pixels_can_be_had(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["data", "show", "synthetic-digits", "--index", "3", "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert (found["split"], found["index"], found["class"]) == ("test", 3, str(found["label"]))
    assert len(found["pixels"]) == 28


@pytest.mark.usefixtures("shown")
@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["synthetic-digits", "--index", "10000"], "from 0 to 9,999"),
        ([], "show takes one dataset"),
        (["synthetic-digits", "mnist"], "show takes one dataset"),
        (["mnits"], "mnist"),
    ],
)
def test_what_is_missing_is_named(
    arguments: list[str], said: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(["data", "show", *arguments]) == 2
    assert said in capsys.readouterr().err
