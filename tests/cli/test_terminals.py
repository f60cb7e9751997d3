"""Narrow terminals, and those without colour: nothing raises, nothing is wider, nothing is an
escape code."""

from __future__ import annotations

import re
import sys
from collections.abc import Sequence
from pathlib import Path

import pytest
from rich.cells import cell_len

from tests.records import a_command, a_record, rounds, write_all
from trainmark.cli.main import run
from trainmark.execute.parent import probe as probes
from trainmark.execute.parent.probe import Seen
from trainmark.record.caveats import Caveat

WIDTH = 40
TERMINALS = {
    "colour": {"TERM": "xterm-256color"},
    "no colour": {"TERM": "xterm", "NO_COLOR": "1"},
    "dumb": {"TERM": "dumb"},
}
ESCAPE = re.compile(r"\x1b\[([0-9;?]*)([A-Za-z])")
OUTPUTS = (
    ("compare",),
    ("compare", "--legend", "--published"),
    ("compare", "commands"),
    ("show", "trainmark-results/failed.json"),
    ("show", "mnist-cnn"),
    ("explain", "trainmark-results/failed.json", "trainmark-results/other.json"),
    ("list", "workloads"),
    ("list", "backends"),
    ("list", "datasets"),
    ("config", "run", "--repeats", "7"),
)
ERRORS = (
    ("compare", "nothing-here"),
    ("run", "--lr", "0.1"),
    ("run", "mnist-mlp51"),
    ("noise", "--backend", "a,b"),
)


@pytest.fixture(autouse=True)
def _records(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Some records in ``trainmark-results``, one of a failed run, and commands in ``commands``."""
    long = "a-machine-with-a-name-that-is-longer-than-the-terminal"
    write_all(
        tmp_path / "trainmark-results",
        [
            *rounds([2.0, 2.1, 1.9], caveats=[Caveat.BUSY_MACHINE]),
            *rounds([1.0, 1.05, 0.95], device="cuda:0"),
            *rounds([3.0, 3.1], backend="torch", style="idiomatic", machine=long),
            a_record(id="failed", round=3, status="failed"),
            a_record(id="other", round=4),
        ],
    )
    write_all(
        tmp_path / "commands",
        [a_command(side=f"workers={n}", round=r) for n in (0, 2) for r in range(3)],
    )
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(
        probes, "probe", lambda where, name: Seen(name, where, problem=f"No module named {name!r}")
    )


@pytest.fixture(params=TERMINALS)
def terminal(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    """A kind of terminal, as the environment describes it."""
    for name in ("NO_COLOR", "FORCE_COLOR", "COLORTERM", "TTY_COMPATIBLE", "LINES"):
        monkeypatch.delenv(name, raising=False)
    for name, value in {"COLUMNS": str(WIDTH), **TERMINALS[request.param]}.items():
        monkeypatch.setenv(name, value)
    return str(request.param)


def ran(words: Sequence[str], capsys: pytest.CaptureFixture[str]) -> tuple[int, str, str]:
    """Return the exit code of a command, and its output on stdout and stderr, which are
    terminals."""
    with pytest.MonkeyPatch.context() as patch:
        for stream in (sys.stdout, sys.stderr):
            patch.setattr(stream, "isatty", lambda: True)
        code = run(list(words))
    return code, *capsys.readouterr()


def is_colour(found: re.Match[str]) -> bool:
    return found[2] == "m" and any(
        re.fullmatch("[34][0-9]|9[0-7]|10[0-7]", number) for number in found[1].split(";")
    )


@pytest.mark.parametrize("words", OUTPUTS, ids=" ".join)
def test_nothing_is_wider_than_the_terminal(
    words: Sequence[str], capsys: pytest.CaptureFixture[str], terminal: str
) -> None:
    code, out, err = ran(words, capsys)
    assert code == 0
    lines = ESCAPE.sub("", out + err).splitlines()
    assert [line for line in lines if cell_len(line.rstrip()) > WIDTH and " " in line.strip()] == []


@pytest.mark.parametrize("words", [*OUTPUTS, *ERRORS], ids=" ".join)
def test_no_colour_where_there_is_none(
    words: Sequence[str], capsys: pytest.CaptureFixture[str], terminal: str
) -> None:
    _, out, err = ran(words, capsys)
    assert out or err
    if terminal == "dumb":
        assert "\x1b" not in out + err
    elif terminal == "no colour":
        assert not any(map(is_colour, ESCAPE.finditer(out + err)))


def test_a_terminal_with_colour_is_recognised(
    capsys: pytest.CaptureFixture[str], terminal: str
) -> None:
    _, out, _ = ran(["compare"], capsys)
    assert any(map(is_colour, ESCAPE.finditer(out))) is (terminal == "colour")


@pytest.mark.parametrize("words", ERRORS, ids=" ".join)
def test_an_error_is_one_line_that_the_terminal_wraps(
    words: Sequence[str], capsys: pytest.CaptureFixture[str], terminal: str
) -> None:
    code, out, err = ran(words, capsys)
    assert (code, out) == (2, "")
    said = ESCAPE.sub("", err).strip()
    assert said.startswith("trainmark: ") and "\n" not in said, "so a command in it can be copied"
