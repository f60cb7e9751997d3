"""Names, notes and last output of strangers, on a screen, in files and in errors."""

from __future__ import annotations

import csv
import html
import io
import json
import os
import re
from pathlib import Path

import pytest
from msgspec import structs

from fuzz.screen import harmless
from tests.browser.samples import hostile_records
from tests.records import a_record, write_all
from trainmark.cli.main import run
from trainmark.record import codec
from trainmark.record.record import Record
from trainmark.report.printable import printable

ESCAPES = (
    "\x1b[2J\x1b]0;owned\x07\x9b31m\x08\x7f\r\u202egnp.exe\u2066\u061c\u200e\u200f\u2028\u2029"
)


def escaping() -> list[Record]:
    """The record has the worst text of a page, and terminal escapes in every name."""
    records = []
    for number, record in enumerate(hostile_records()[:2]):
        worse = structs.replace(
            record,
            id=f"r{number}",
            command=ESCAPES,
            backend=structs.replace(
                record.backend,
                name=ESCAPES,
                version=f"{ESCAPES}{number}",
                settings={ESCAPES: ESCAPES},
            ),
            machine=structs.replace(record.machine, name=ESCAPES),
            dataset=record.dataset and structs.replace(record.dataset, name=ESCAPES),
            outcome=structs.replace(
                record.outcome, status="failed", reason=ESCAPES, stderr_tail=ESCAPES
            ),
        )
        records.append(worse)
    return records


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    written = write_all(tmp_path / "records", escaping())
    (written / "r0.safetensors").touch()  # so that predict looks at what else the record says
    return written


@pytest.mark.parametrize(
    "command",
    [
        ["show", "{0}/r0.json"],
        ["show", "{0}/r0.json", "--json"],
        ["compare", "{0}"],
        ["compare", "{0}", "--json"],
        ["compare", "{0}", "--format", "markdown"],
        ["compare", "{0}", "--format", "csv"],
        ["explain", "{0}/r0.json"],
        ["explain", "{0}/r0.json", "{0}/r1.json"],
        ["predict", "{0}/r0.json"],
    ],
)
def test_no_text_of_a_record_steers_the_terminal(
    folder: Path, command: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    run([word.format(folder) for word in command])
    said = "".join(capsys.readouterr())
    assert "owned" in said  # otherwise this proves nothing
    assert harmless(said)


def test_nor_does_an_error_about_one(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    data = json.loads(codec.encode(a_record()))
    path = tmp_path / "r.json"
    path.write_text(json.dumps({**data, "schema_version": ESCAPES}))
    assert run(["compare", str(path)]) == 1
    assert run(["show", f"{ESCAPES}.toml"]) == 2
    assert harmless(capsys.readouterr().err)


@pytest.mark.parametrize(
    "begin", ["=cmd|'/c calc'!A1", "+1", "-1", "@SUM(A1)", "\t=1", " =1", "＝1", "\r=1"]
)
def test_no_cell_of_an_export_is_a_formula(tmp_path: Path, begin: str) -> None:
    record = a_record(machine=begin, version=begin, python=begin, id="r")
    write_all(tmp_path / "in", [record])
    for form in ("csv", "markdown"):
        assert run(["export", str(tmp_path / "in"), "--to", form, "-o", str(tmp_path / form)]) == 0
    rows = list(csv.reader(io.StringIO((tmp_path / "csv").read_text())))
    cells = [cell for row in rows for cell in row]
    assert "'" + printable(begin) in cells
    assert not [cell for cell in cells if cell.lstrip()[:1] in tuple("=+-@＝")]


def test_markdown_holds_no_html_and_no_more_columns_than_it_has(tmp_path: Path) -> None:
    name = "a | b <img src=x onerror=alert(1)> [x](javascript:alert(1)) `code`\n| c |"
    write_all(tmp_path / "in", [a_record(version=name, machine=name)])
    assert (
        run(["export", str(tmp_path / "in"), "--to", "markdown", "-o", str(tmp_path / "md")]) == 0
    )
    text = (tmp_path / "md").read_text()
    lines = [line for line in text.splitlines() if line.startswith("|")]
    assert len({line.replace("\\|", "").count("|") for line in lines}) == 1
    assert "\\<img" in text or "<img" not in text
    assert "[x](" not in text.replace("\\[x](", "")


@pytest.mark.parametrize(
    "name",
    [
        "https://evil.example/x",
        "FTP://evil.example",
        "_www.evil.example",
        "WWW.evil.example",
        "me@evil.example",
        "mailto:me@evil.example",
        "hello @octocat",
        "&#64;octocat &commat;octocat",
        "https&colon;//evil.example",
        "owner/repo#1 GH-1",
    ],
)
def test_github_makes_no_link_and_no_mention_of_a_name_in_markdown(
    tmp_path: Path, name: str
) -> None:
    write_all(tmp_path / "in", [a_record(id="r", version=name, machine=name)])
    assert (
        run(["export", str(tmp_path / "in"), "--to", "markdown", "-o", str(tmp_path / "md")]) == 0
    )
    written = (tmp_path / "md").read_text()
    # Escapes and entities are gone when GitHub looks for names and addresses.
    seen = html.unescape(
        re.sub(r"\\([^\w\s])", lambda each: "&amp;" if each[1] == "&" else each[1], written)
    )
    assert name in seen.replace("\u200b", "")
    assert not re.search(r"://|www\.|@\w|#\d|GH-\d", seen, re.IGNORECASE)


@pytest.mark.timeout(120)
def test_paths_that_are_no_files_are_errors_at_once(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    for name in ("p.json", "p.toml"):
        os.mkfifo(tmp_path / name)
    for words in (
        ["show", "p.json"],
        ["show", "p.toml"],
        ["compare", "p.json"],
        ["explain", "p.json"],
        ["run", "p.toml"],
    ):
        assert run([words[0], str(tmp_path / words[1])]) in (1, 2)
    for words in (["compare", "/dev/zero"], ["predict", "/dev/zero"], ["compare", str(tmp_path)]):
        assert run(words) in (1, 2)
    assert "Traceback" not in capsys.readouterr().err
