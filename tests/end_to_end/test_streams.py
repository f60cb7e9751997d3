"""Streams of every kind: stdin, stdout and stderr are closed, full, or lack the letters that
trainmark uses."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from msgspec import structs

from tests.end_to_end.command import CommandLine
from tests.records import a_record, write_all
from tests.slow import slow

# Otherwise Python would use UTF-8 in the locale C as well.
ASCII = {"LC_ALL": "C", "PYTHONCOERCECLOCALE": "0", "PYTHONUTF8": "0", "PYTHONIOENCODING": ""}
TRAIN = (
    "run mnist-mlp32 --backend fake --style fast --device cpu --dataset synthetic-digits --steps "
    "3 --repeats 1"
    " --out {out}"
)


def in_shell(command: CommandLine, words: str, how: str, **extra: str) -> tuple[int, str, str]:
    if "/dev/full" in how and not Path("/dev/full").exists():
        pytest.skip("there is no /dev/full here")
    # The interpreter's own words come after the line, where the shell counts them from 0.
    process = command.start(*words.split(), before=["sh", "-c", f'"$0" "$@" {how}'], extra=extra)
    out, err = process.communicate(timeout=120)
    return process.returncode, out, err


@pytest.mark.parametrize(
    ("words", "tongue"),
    [
        ("compare {out}", ASCII),
        (TRAIN, ASCII),
        ("compare {out}", {"PYTHONIOENCODING": "latin-1"}),
        slow(TRAIN, {"PYTHONIOENCODING": "latin-1"}),
    ],
)
def test_letters_that_a_terminal_lacks_end_nothing(
    words: str, tongue: dict[str, str], command: CommandLine
) -> None:
    write_all(command.out, [a_record(), a_record(round=1)])
    code, out, err = command.run_alone(*words.format(out=command.out).split(), extra=tongue)
    assert code == 0, err
    assert out and "Traceback" not in err


@pytest.mark.parametrize("form", ["json", "csv", "markdown"])
def test_what_may_be_read_as_a_file_is_utf_8(form: str, command: CommandLine) -> None:
    record = a_record()
    named = structs.replace(
        record, machine=structs.replace(record.machine, name="Büro \N{CJK UNIFIED IDEOGRAPH-673A}")
    )
    folder = str(write_all(command.out, [named]))
    said = [
        command.start("compare", folder, "--format", form, extra={"PYTHONIOENCODING": encoding})
        for encoding in ("latin-1", "utf-8")
    ]
    texts = [process.communicate(timeout=120)[0] for process in said]
    assert texts[0] == texts[1]
    assert form == "markdown" or named.machine.name in texts[0]


@pytest.mark.parametrize("closed", [">&-", "2>&-", "<&- >&- 2>&-"])
def test_streams_that_are_closed(closed: str, command: CommandLine) -> None:
    code, out, err = in_shell(command, TRAIN.format(out=command.out), closed)
    assert code == 0, err
    assert set(command.outcomes()) == {"ok"}
    assert "Traceback" not in out + err


@pytest.mark.parametrize(
    ("words", "unbuffered"), [("--help", ""), ("schema", ""), ("schema", "1"), (TRAIN, "")]
)
def test_a_disk_that_is_full_under_what_is_printed(
    words: str, unbuffered: str, command: CommandLine
) -> None:
    code, _, err = in_shell(
        command, words.format(out=command.out), ">/dev/full", PYTHONUNBUFFERED=unbuffered
    )
    assert code == 1
    assert "can't write to stdout: found No space left on device" in err
    assert "Traceback" not in err and "ignored" not in err
    if words == TRAIN:
        assert set(command.outcomes()) == {"ok"}, "records are not what is printed"


@pytest.mark.parametrize(("how", "code"), [("2>/dev/full", 0), (">/dev/full 2>&1", 1)])
def test_a_log_on_a_full_disk_does_not_end_the_command(
    how: str, code: int, command: CommandLine
) -> None:
    assert in_shell(command, TRAIN.format(out=command.out), how)[0] == code
    assert set(command.outcomes()) == {"ok"}


def test_an_error_without_a_reader_keeps_its_exit_code(command: CommandLine) -> None:
    assert in_shell(command, "lsit", "2>/dev/full")[0] == 2


def test_a_file_that_may_not_grow(command: CommandLine, tmp_path: Path) -> None:
    process = command.start(
        "schema", before=["sh", "-c", f'ulimit -f 1; "$0" "$@" >{tmp_path}/schema']
    )
    _, err = process.communicate(timeout=120)
    assert (process.returncode, "can't write to stdout: found File too large" in err) == (
        1,
        True,
    ), err


def test_a_reader_that_has_enough(command: CommandLine) -> None:
    process = command.start(
        "schema", before=["bash", "-c", '"$0" "$@" | true; exit ${PIPESTATUS[0]}']
    )
    _, err = process.communicate(timeout=120)
    assert (process.returncode, err) == (0, "")


def test_words_and_folders_that_are_not_unicode(command: CommandLine) -> None:
    command.out = command.out.parent / b"caf\xe9".decode("utf-8", "surrogateescape")
    code, _, err = command.run_alone(*TRAIN.format(out=command.out).split())
    assert code == 0, err
    words = f"measure --repeats 1 --name {command.out.name} --out {command.out} -- true"
    code, _, err = command.run_alone(*words.split())
    assert code == 0, err
    records = command.records()
    assert {record.outcome.status for record in records} == {"ok"}
    assert all("caf?" in record.command for record in records)
    code, out, err = command.run_alone("compare", str(command.out), "--json")
    assert code == 0, err
    assert json.loads(out)
