"""Real shells complete trainmark's command lines."""

from __future__ import annotations

import os
import pty
import select
import shutil
import subprocess
import sys
import time
from pathlib import Path

import pytest

from tests.unit.test_light_imports import FRAMEWORKS, HEAVY, imported_by

SCRIPT = "from trainmark.cli.main import run; raise SystemExit(run([]))"
SHELLS = {
    "bash": (["bash", "--norc", "--noprofile", "-i"], "COMP_WORDBREAKS=${COMP_WORDBREAKS//:}; "),
    "zsh": (["zsh", "-f", "-i"], "autoload -U compinit; compinit -u -D; "),
}


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Holds a ``trainmark`` that completes for real and otherwise repeats its words; also a record
    and the scripts."""
    tmp_path = tmp_path_factory.mktemp("shells")
    (tmp_path / "bin").mkdir()
    command = tmp_path / "bin" / "trainmark"
    command.write_text(
        f'#!/bin/sh\n[ -n "$_TRAINMARK_COMPLETE" ] && exec {sys.executable} -m trainmark '
        '"$@"\necho "typed: $*."\n'
    )
    command.chmod(0o755)
    (tmp_path / "my-record.json").write_text("{}")
    for shell in ("bash", "zsh", "fish"):
        script = subprocess.run(
            [sys.executable, "-c", SCRIPT],
            env={**os.environ, "_TRAINMARK_COMPLETE": f"{shell}_source"},
            capture_output=True,
            check=True,
        )
        (tmp_path / f"complete.{shell}").write_bytes(script.stdout)
    return tmp_path


def environment(folder: Path) -> dict[str, str]:
    return {
        **os.environ,
        "PATH": f"{folder / 'bin'}:{os.environ['PATH']}",
        "PS1": "> ",
        "TERM": "dumb",
        "HOME": str(folder),
    }


def typed(shell: str, folder: Path, line: str) -> str:
    """Return what the command gets when a person types ``line``, presses Tab and then Return."""
    words, before = SHELLS[shell]
    terminal, of_shell = pty.openpty()
    # This is not pty.fork, since other tests have left threads in this process. The leader of a
    # session that opens a terminal gets it.
    with_terminal = ["sh", "-c", 'exec "$@" <>"$0" >&0 2>&0', os.ttyname(of_shell), *words]
    process = subprocess.Popen(
        with_terminal, cwd=folder, env=environment(folder), start_new_session=True
    )
    said = ""

    def until(text: str) -> None:
        nonlocal said
        deadline = time.monotonic() + 120
        while text not in said:
            assert time.monotonic() < deadline, said
            if select.select([terminal], [], [], 1)[0]:
                said += os.read(terminal, 4096).decode(errors="replace")

    try:
        os.write(terminal, f"{before}. ./complete.{shell}; echo rea''dy\n".encode())
        until("ready")
        os.write(terminal, f"trainmark {line}\t".encode())
        time.sleep(0.1)
        os.write(terminal, b"\n")
        until("typed: ")
        until(".\r\n")
        return said[said.index("typed: ") + 7 :].partition(".\r\n")[0].strip()
    finally:
        os.close(of_shell)
        os.close(terminal)
        process.wait()


@pytest.mark.parametrize("shell", ["bash", "zsh"])
@pytest.mark.parametrize(
    ("line", "whole"),
    [
        ("swe", "sweep"),
        ("run --budg", "run --budget"),
        ("run mnist-c", "run mnist-cnn"),
        ("run --backend torch,jax,num", "run --backend torch,jax,numpy"),
        ("run --backend keras:t", "run --backend keras:torch"),
        ("explain my-r", "explain my-record.json"),
    ],
)
def test_what_is_begun_is_completed(shell: str, line: str, whole: str, folder: Path) -> None:
    if shutil.which(shell) is None:
        pytest.skip(f"{shell} is not installed")
    assert typed(shell, folder, line) == whole


def test_fish_completes(folder: Path) -> None:
    if shutil.which("fish") is None:
        pytest.skip("fish is not installed")
    asked = (
        "source complete.fish; complete -C 'trainmark data fetch cif'; complete -C "
        "'trainmark run --style f'"
    )
    done = subprocess.run(
        ["fish", "--no-config", "-c", asked],
        cwd=folder,
        env=environment(folder),
        capture_output=True,
        text=True,
    )
    assert done.stdout.split() == ["cifar10", "fast"]


def test_it_imports_nothing_heavy() -> None:
    asked = (
        "os.environ.update(COMP_WORDS='trainmark run --backend ', COMP_CWORD='3', "
        "_TRAINMARK_COMPLETE='bash_complete')"
    )
    code = (
        f"import os; {asked}\nfrom trainmark.cli.main import run\ntry: run([])\nexcept "
        "SystemExit: pass"
    )
    assert not imported_by(code) & (FRAMEWORKS | HEAVY)
