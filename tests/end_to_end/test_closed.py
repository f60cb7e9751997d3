"""Paths that can't even be looked at, in folders that are closed to us or too long, are errors like
any other."""

from __future__ import annotations

import shutil
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
]


@pytest.mark.parametrize("words", VERBS, ids=" ".join)
def test_a_name_that_is_too_long(
    words: tuple[str, ...], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
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
            started = [
                command.start(*(word.format(path) for word in words), before=prefix)
                for words in VERBS[::3]
            ]
            said = [(each.communicate(timeout=120), each.returncode) for each in started]
    except NotHere as error:
        pytest.skip(str(error))
    for words, ((out, err), code) in zip(VERBS[::3], said, strict=True):
        assert (code, out) == (2, ""), (words, err)
        assert "Permission denied" in err and "Traceback" not in err, (words, err)


def test_data_that_is_closed_is_not_fallen_past(
    command: CommandLine, data_dir: Path, tmp_path: Path
) -> None:
    (tmp_path / "named" / "mnist").mkdir(parents=True)
    words = [
        "run",
        "mnist-mlp32",
        "--backend",
        "fake",
        "--steps",
        "2",
        "--data-dir",
        str(tmp_path / "named"),
    ]
    try:
        with closed(tmp_path / "named" / "mnist") as prefix:
            process = command.start(*words, before=prefix, extra={"TRAINMARK_DATA": str(data_dir)})
            _, err = process.communicate(timeout=120)
    except NotHere as error:
        pytest.skip(str(error))
    assert process.returncode == 2, err
    assert "named of --data-dir can't be read" in err and "Permission denied" in err


def test_a_program_that_may_be_run_and_not_read(command: CommandLine, tmp_path: Path) -> None:
    program = tmp_path / "program"
    shutil.copy("/bin/true", program)
    try:
        with closed(program) as prefix:
            program.chmod(0o111)
            process = command.start(
                "measure",
                "--repeats",
                "1",
                "--out",
                str(command.out),
                "--",
                str(program),
                before=prefix,
            )
            _, err = process.communicate(timeout=120)
    except NotHere as error:
        pytest.skip(str(error))
    assert process.returncode == 0, err
    assert command.outcomes() == ["ok"]


@pytest.mark.parametrize(
    "words",
    [
        ("doctor", "--quick"),
        ("measure", "--", "true"),
        ("run", *FAKE),
        ("list", "backends", "--python", "x=bin/python"),
    ],
    ids=" ".join,
)
def test_a_working_folder_that_is_gone(
    words: tuple[str, ...], command: CommandLine, tmp_path: Path
) -> None:
    gone = tmp_path / "gone"
    gone.mkdir()
    process = command.start(
        *words, before=["sh", "-c", f'cd {gone} && rmdir {gone} && exec "$0" "$@"']
    )
    out, err = process.communicate(timeout=120)
    assert (process.returncode, out) == (2, ""), err
    assert "No such file or directory" in err and "Traceback" not in err


IN_ROOT = ("sh", "-c", 'cd / && exec "$0" "$@"')


@pytest.mark.parametrize("verb", ["run", "measure"])
def test_the_root_folder_is_a_working_folder(verb: str, command: CommandLine) -> None:
    words = command.train_arguments("--repeats", "1", "--device", "cpu")
    if verb == "measure":
        words = ["measure", "--repeats", "1", "--out", str(command.out), "--", "true"]
    process = command.start(*words, before=IN_ROOT)
    _, err = process.communicate(timeout=120)
    assert process.returncode == 0, err
    assert command.outcomes() == ["ok"]


@pytest.mark.parametrize("words", [("explain",), ("measure",)], ids=" ".join)
def test_the_root_folder_is_not_copied(
    words: tuple[str, ...], command: CommandLine, tmp_path: Path
) -> None:
    script = tmp_path / "train.py"
    script.write_text("print('started')")
    process = command.start(*words, "--", "python", str(script), before=IN_ROOT)
    out, err = process.communicate(timeout=120)
    assert (process.returncode, out) == (2, ""), err
    assert "the working folder / can't be copied" in err and "cd to that folder" in err
