"""A user's secrets are in no record, message, export or page; a run with secrets is resumed."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from tests.end_to_end.command import CommandLine

SECRET = "hunter2Tiger"
SCRIPT = """
import os, sys
from trainmark import hook
for epoch in range(2):
    hook.epoch(loss=2.0 / (1 + epoch), examples=600, steps=6)
print("arguments", sys.argv)
print("the key is", os.environ["WANDB_API_KEY"], "and", sys.argv[2])
sys.exit("--fail" in sys.argv and f"can't log in with {sys.argv[2]}" or 0)
"""


@pytest.fixture
def script(tmp_path: Path) -> str:
    path = tmp_path / "train.py"
    path.write_text(SCRIPT)
    return str(path)


def started(command: CommandLine, *arguments: str) -> tuple[int, str, str]:
    """Run trainmark as its own process, so that the command line in records is the real one."""
    process = command.start(*arguments, extra={"WANDB_API_KEY": f"{SECRET}42"})
    out, err = process.communicate(timeout=120)
    return process.returncode, out, err


def measured(command: CommandLine, script: str, *more: str, options: tuple[str, ...] = ()) -> str:
    """Measure the script with a secret among its words; returns everything printed."""
    words = (sys.executable, script, "--api-key", SECRET, f"PASSWORD={SECRET}", *more)
    kept = ("--out", str(command.out), "--repeats", "1", "--ignore-failure")
    _, out, err = started(command, "measure", *kept, *options, "--", *words)
    return out + err


def files_under(folder: Path) -> dict[Path, str]:
    return {path: path.read_text(errors="replace") for path in folder.rglob("*") if path.is_file()}


@pytest.mark.parametrize("ending", [(), ("--fail",)], ids=["ok", "failed"])
def test_no_file_and_no_message_has_a_secret(
    command: CommandLine, script: str, tmp_path: Path, ending: tuple[str, ...]
) -> None:
    exports = [f"--export-{form}" for form in ("json", "markdown", "csv", "svg")]
    pairs = [(flag, str(tmp_path / f"export{flag}")) for flag in exports]
    flags = [word for pair in pairs for word in pair]
    printed = measured(command, script, *ending, options=tuple(flags))
    for verb in (
        ("show", str(next(command.out.glob("*.json")))),
        ("show", str(next(command.out.glob("*.json"))), "--json"),
        ("compare", str(command.out), "--json"),
        ("export", str(command.out), "--to", "csv"),
        ("report", str(command.out), "-o", str(tmp_path / "page.html")),
    ):
        _, out, err = started(command, *verb)
        printed += out + err
    assert (tmp_path / "page.html").exists()
    assert SECRET not in printed
    assert "***" in printed
    for path, text in files_under(tmp_path).items():
        assert SECRET not in text or path.name == "train.py", path
        assert SECRET not in str(path)


def test_an_error_about_a_command_shows_no_secret(command: CommandLine) -> None:
    code, out, err = started(
        command, "measure", "--vary", "x=1,2", "--", "train", "--api-key", SECRET, f"TOKEN={SECRET}"
    )
    assert code == 2
    assert "--api-key ***" in err
    assert SECRET not in out + err


def test_a_run_with_a_secret_is_resumed(command: CommandLine, script: str) -> None:
    measured(command, script)
    before = sorted(command.out.glob("*.json"))
    measured(command, script, options=("--resume",))
    assert sorted(command.out.glob("*.json")) == before
    measured(command, script, "--epochs", options=("--resume",))
    assert len(list(command.out.glob("*.json"))) == len(before) + 1


def test_sides_that_differ_in_a_varied_token_are_compared(
    command: CommandLine, script: str
) -> None:
    _, out, err = started(
        command, "measure", "--out", str(command.out), "--repeats", "1", "--vary",
        "token=cls,mean", "--", sys.executable, script, "--token", "{token}",
    )  # fmt: skip
    styles = sorted(str(record.backend.style) for record in command.records())
    assert styles == ["token=cls", "token=mean"], err
    assert "token=mean" in out


def test_the_configuration_shows_no_secret(command: CommandLine) -> None:
    process = command.start(
        "config", extra={"TRAINMARK_LABEL": f"data=https://user:{SECRET}@host/data"}
    )
    out, err = process.communicate(timeout=60)
    assert "https://***@host/data" in out, err
    assert SECRET not in out + err


def test_the_process_itself_gets_its_secrets(command: CommandLine, tmp_path: Path) -> None:
    script = tmp_path / "t.py"
    script.write_text("import sys; open(sys.argv[1], 'w').write(sys.argv[3])")
    word = (sys.executable, str(script), str(tmp_path / "got"), "--password", SECRET)
    started(command, "measure", "--out", str(command.out), "--repeats", "1", "--", *word)
    assert (tmp_path / "got").read_text() == SECRET
