"""Another program, from its start to its end: its words as they come, and nothing of it left behind."""

from __future__ import annotations

import contextlib
import subprocess
import time
from collections.abc import Callable, Sequence

import psutil

from trainmark.errors import BuildFailed

_PATIENCE_SECONDS = 10.0


def ask(words: Sequence[str], seconds: float | None = None) -> tuple[int, str, str]:
    """Run a program that answers; exit code, stdout and stderr. One that takes longer than ``seconds`` says nothing.

    Raises:
        BuildFailed: it can't be started.
    """
    with _started(words, stderr=subprocess.PIPE) as process:
        try:
            out, err = process.communicate(timeout=seconds)
        except subprocess.TimeoutExpired:
            end(process)
            return 124, "", f"no answer within {seconds:g} s"
        except BaseException:
            end(process)
            raise
    return process.returncode, out, err


def follow(words: Sequence[str], told: Callable[[str], None]) -> int:
    """Run a program and pass on each line as it comes; returns its exit code. Ctrl-C ends it, and all it started.

    Raises:
        BuildFailed: it can't be started.
    """
    with _started(words, stderr=subprocess.STDOUT) as process:
        assert process.stdout is not None
        try:
            for line in process.stdout:
                told(line.rstrip())
            return process.wait()
        except BaseException:
            end(process)
            raise


def _started(words: Sequence[str], stderr: int) -> subprocess.Popen[str]:
    try:
        return subprocess.Popen(
            words,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=stderr,
            encoding="utf-8",
            errors="replace",
            start_new_session=True,  # a Ctrl-C is ours to pass on
        )
    except OSError as error:
        raise BuildFailed(f"{words[0]} can't be started", found=error.strerror or str(error)) from error


def end(process: subprocess.Popen[str]) -> None:
    """End a program and all it started: politely, then not."""
    with contextlib.suppress(psutil.NoSuchProcess):
        tree = _tree(psutil.Process(process.pid))
        for member in tree:
            with contextlib.suppress(psutil.NoSuchProcess):
                member.terminate()
        deadline = time.monotonic() + _PATIENCE_SECONDS
        while tree and time.monotonic() < deadline:
            if process.poll() is None:
                tree |= _tree(psutil.Process(process.pid))  # what it started since, to clean up
            tree = {member for member in tree if _lives(member)}
            time.sleep(0.05)
        for member in tree:
            with contextlib.suppress(psutil.NoSuchProcess):
                member.kill()
    process.wait()


def _tree(root: psutil.Process) -> set[psutil.Process]:
    with contextlib.suppress(psutil.NoSuchProcess):
        return {root, *root.children(recursive=True)}
    return {root}


def _lives(process: psutil.Process) -> bool:
    try:
        return bool(process.is_running() and process.status() != psutil.STATUS_ZOMBIE)
    except psutil.NoSuchProcess:
        return False
