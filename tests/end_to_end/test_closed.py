"""Paths that can't even be looked at, in folders that are closed to us or too long, are errors like any other."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.end_to_end.command import CommandLine
from tests.end_to_end.limits import NotHere, closed
from trainmark.cli.main import run

FAKE = ("mnist-mlp128", "--backend", "fake", "--dataset", "synthetic-digits")
VERBS = [
    ("compare", "{}"),
    ("report", "{}"),
    ("export", "{}", "--to", "csv", "-o", "out.csv"),
    ("show", "{}"),
    ("show", "{}.json"),
    ("show", "{}.toml"),
    ("explain", "{}"),
    ("explain", "{}.json"),
    ("predict", "{}"),
    ("run", "{}"),
    ("run", "{}.toml"),
    ("run", *FAKE, "--data-dir", "{}"),
    ("run", *FAKE, "--weights-from", "{}.json"),
    ("run", *FAKE, "--out", "{}"),
    (
        "sweep",
        "mnist-mlp32",
        "--grid",
        "hidden=8",
        "--backend",
        "numpy",
        "--dataset",
        "synthetic-digits",
        "--out",
        "{}",
    ),
    ("scale", "{}.toml"),
    ("data", "list", "--data-dir", "{}"),
    ("measure", "--out", "{}", "--", "true"),
    ("container", "write", "--out", "{}"),
]


@pytest.mark.parametrize("words", VERBS, ids=" ".join)
def test_a_name_that_is_too_long(words: tuple[str, ...], tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = str(tmp_path / ("x" * 300))
    assert run([word.format(path) for word in words]) == 2
    out, err = capsys.readouterr()
    assert "File name too long" in err
    assert out == ""


def test_a_folder_that_is_closed(command: CommandLine) -> None:
    command.out.mkdir()
    path = str(command.out / "inside")
    try:
        with closed(command.out) as prefix:
            started = [command.start(*(word.format(path) for word in words), before=prefix) for words in VERBS]
            said = [(each.communicate(timeout=120), each.returncode) for each in started]
    except NotHere as error:
        pytest.skip(str(error))
    for words, ((out, err), code) in zip(VERBS, said, strict=True):
        assert (code, out) == (2, ""), (words, err)
        assert "Permission denied" in err and "Traceback" not in err, (words, err)


@pytest.mark.parametrize("words", [("doctor", "--quick"), ("measure", "--", "true"), ("run", *FAKE)], ids=" ".join)
def test_a_working_folder_that_is_gone(words: tuple[str, ...], command: CommandLine, tmp_path: Path) -> None:
    gone = tmp_path / "gone"
    gone.mkdir()
    process = command.start(*words, before=["sh", "-c", f'cd {gone} && rmdir {gone} && exec "$0" "$@"'])
    out, err = process.communicate(timeout=120)
    assert (process.returncode, out) == (2, ""), err
    assert "No such file or directory" in err and "Traceback" not in err
