"""Whatever stdin, stdout and stderr are: closed, full, or without the letters that trainmark uses."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from msgspec import structs

from tests.end_to_end.command import CommandLine
from tests.records import a_record, write_all

# Python would else speak UTF-8 in the locale C as well.
ASCII = {"LC_ALL": "C", "PYTHONCOERCECLOCALE": "0", "PYTHONUTF8": "0", "PYTHONIOENCODING": ""}
TRAIN = "run mnist-mlp32 --backend fake --dataset synthetic-digits --steps 3 --repeats 1 --out {out}"


def in_shell(command: CommandLine, words: str, how: str) -> tuple[int, str, str]:
    # The interpreter's own words come after the line, where the shell counts them from 0.
    process = command.start(*words.split(), before=["sh", "-c", f'"$0" "$@" {how}'])
    out, err = process.communicate(timeout=120)
    return process.returncode, out, err


@pytest.mark.parametrize("words", ["list", "show mnist-cnn", "compare {out}", TRAIN, "--help"])
def test_letters_that_a_terminal_lacks_end_nothing(words: str, command: CommandLine) -> None:
    write_all(command.out, [a_record(), a_record(round=1)])
    code, out, err = command.run(*words.format(out=command.out).split(), extra=ASCII)
    assert code == 0, err
    assert out and "Traceback" not in err


def test_json_says_every_letter_in_any_encoding(command: CommandLine) -> None:
    record = a_record()
    named = structs.replace(record, machine=structs.replace(record.machine, name="Büro \N{CJK UNIFIED IDEOGRAPH-673A}"))
    file = write_all(command.out, [named]) / f"{named.id}.json"
    for encoding in ("ascii", "latin-1", "utf-8"):
        code, out, err = command.run("show", str(file), "--json", extra={"PYTHONIOENCODING": encoding})
        assert code == 0, err
        assert json.loads(out)["machine"]["name"] == named.machine.name, encoding


@pytest.mark.parametrize("closed", [">&-", "2>&-", "<&-", "<&- >&- 2>&-"])
def test_streams_that_are_closed(closed: str, command: CommandLine) -> None:
    code, out, err = in_shell(command, TRAIN.format(out=command.out), closed)
    assert code == 0, err
    assert set(command.outcomes()) == {"ok"}
    assert "Traceback" not in out + err


@pytest.mark.parametrize("words", ["list", "list --json", "--help", TRAIN])
def test_a_disk_that_is_full_under_what_is_printed(words: str, command: CommandLine) -> None:
    if not Path("/dev/full").exists():
        pytest.skip("there is no /dev/full here")
    code, _, err = in_shell(command, words.format(out=command.out), ">/dev/full")
    assert code == 1
    assert "what is printed can't be written: No space left on device" in err
    assert "Traceback" not in err
    if words == TRAIN:
        assert set(command.outcomes()) == {"ok"}, "records are not what is printed"


def test_words_and_folders_that_are_not_unicode(command: CommandLine) -> None:
    command.out = command.out.parent / b"caf\xe9".decode("utf-8", "surrogateescape")
    code, _, err = command.run(*TRAIN.format(out=command.out).split())
    assert code == 0, err
    code, _, err = command.run(*f"measure --repeats 1 --name {command.out.name} --out {command.out} -- true".split())
    assert code == 0, err
    records = command.records()
    assert {record.outcome.status for record in records} == {"ok"}
    assert all("caf?" in record.command for record in records)
    code, out, err = command.run("compare", str(command.out), "--json")
    assert code == 0, err
    assert json.loads(out)
