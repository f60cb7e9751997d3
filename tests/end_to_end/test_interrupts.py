"""Signals at every phase of a command: nothing is lost, and no process stays behind."""

from __future__ import annotations

import os
import signal
from pathlib import Path

import pytest

from tests.end_to_end.command import CommandLine, alive, descendants, measured, wait_until
from tests.slow import slow
from trainmark.record import folder_lock


@pytest.fixture
def fresh(command: CommandLine, tmp_path: Path) -> CommandLine:
    """The digits are available, and the cache has nothing else, so the limits of the CPU have to be
    measured."""
    cache = tmp_path / "cache-home"
    (cache / "trainmark").mkdir(parents=True)
    (cache / "trainmark" / command.data.directory.name).symlink_to(command.data.directory)
    return CommandLine(command.data, cache, command.out)


TRAINING = (
    "run",
    "mnist-mlp128",
    "--backend",
    "numpy",
    "--dataset",
    "synthetic-digits",
    "--repeats",
    "1",
)

HOW = {
    signal.SIGINT: "ctrl-c",
    signal.SIGTERM: "sigterm",
    signal.SIGHUP: "sighup",
    signal.SIGQUIT: "sigquit",
}


@pytest.mark.parametrize(
    ("phase", "processes", "how"),
    [
        ("asking", 1, signal.SIGINT),
        slow("asking", 1, signal.SIGTERM),
        ("limits", 2, signal.SIGTERM),
        slow("limits", 2, signal.SIGINT),
        ("training", 3, signal.SIGINT),
        slow("training", 3, signal.SIGTERM),
        slow("training", 3, signal.SIGHUP),  # by day, a terminal is closed
        ("training", 3, signal.SIGQUIT),
    ],
    ids=lambda value: HOW.get(value) if isinstance(value, signal.Signals) else None,
)
def test_at_each_phase(fresh: CommandLine, phase: str, processes: int, how: signal.Signals) -> None:
    process = fresh.start(*TRAINING, "--out", str(fresh.out))
    seen: set[int] = set()

    def there() -> bool:
        seen.update(child.pid for child in measured(process.pid))
        return len(seen) >= processes

    wait_until(there)
    family = wait_until(lambda: descendants(process.pid))
    process.send_signal(how)
    _, err = process.communicate(timeout=120)
    assert process.returncode == 130, err
    assert "Traceback" not in err
    assert not alive(family), "nobody is left behind"
    name = "Ctrl-C" if how == signal.SIGINT else how.name
    reasons = [(record.outcome.status, record.outcome.reason) for record in fresh.records()]
    assert reasons == ([("interrupted", name)] if phase == "training" else [])
    assert fresh.leftovers() == []


def test_a_closed_terminal_leaves_a_record(command: CommandLine) -> None:
    words = command.train_arguments("--repeats", "1", "--device", "cpu", "--steps", "4000")
    screen, terminal = os.openpty()
    process = command.start(
        *words,
        fake={"step_seconds": 0.01},
        before=["sh", "-c", f'exec setsid --ctty "$@" </dev/fd/{terminal} >&0 2>&0', "sh"],
        keep=[terminal],
    )
    os.close(terminal)
    lock = folder_lock.path_of(command.out)
    wait_until(lambda: lock.exists() and lock.read_text())  # then the probes have ended
    wait_until(lambda: measured(process.pid))
    family = wait_until(lambda: descendants(process.pid))
    os.close(screen)
    process.communicate(timeout=120)
    assert process.returncode == 130
    assert not alive(family)
    (record,) = command.records()
    assert (record.outcome.status, record.outcome.reason) == ("interrupted", "SIGHUP")


def test_two_live_sides(command: CommandLine) -> None:
    """Both leave a record of the interruption, whichever has the turn."""
    words = command.train_arguments("--repeats", "1", "--device", "cpu,cuda:0", "--steps", "4000")
    process = command.start(*words, fake={"step_seconds": 0.01})
    wait_until(lambda: len(measured(process.pid)) >= 2)
    family = wait_until(lambda: descendants(process.pid))
    process.send_signal(signal.SIGINT)
    _, err = process.communicate(timeout=120)
    assert process.returncode == 130, err
    assert "Traceback" not in err
    assert not alive(family)
    assert command.outcomes() == ["interrupted", "interrupted"]
    assert command.leftovers() == []


def test_while_an_interpreter_hangs(command: CommandLine, tmp_path: Path) -> None:
    hanging = tmp_path / "python"
    hanging.write_text("#!/bin/sh\nexec sleep 300\n")
    hanging.chmod(0o755)
    process = command.start(
        "run", "--backend", "fake@slow", "--python", f"slow={hanging}", "--out", str(command.out)
    )
    family = wait_until(lambda: descendants(process.pid))
    process.send_signal(signal.SIGINT)
    _, err = process.communicate(timeout=120)
    assert process.returncode == 130, err
    assert not alive(family)


def test_while_data_is_made(command: CommandLine, tmp_path: Path) -> None:
    cache = tmp_path / "cache-home"
    alone = CommandLine(command.data, cache, command.out)
    process = alone.start(*alone.train_arguments("--repeats", "1"))
    folder = cache / "trainmark" / command.data.directory.name
    wait_until(lambda: (folder / ".lock").exists())
    process.send_signal(signal.SIGINT)
    _, err = process.communicate(timeout=120)
    assert process.returncode == 130, err
    assert "trainmark: interrupted" in err and "Traceback" not in err
    assert [path.name for path in folder.iterdir()] == [".lock"], "no file that is not whole"


def test_kill_9_keeps_what_is_finished_and_resume_does_the_rest(command: CommandLine) -> None:
    arguments = command.train_arguments("--repeats", "2", "--device", "cpu,cuda:0")
    process = command.start(*arguments, fake={"step_seconds": 0.03})
    wait_until(lambda: "ok" in command.outcomes())
    family = descendants(process.pid)
    process.kill()
    process.communicate()
    wait_until(lambda: not alive(family))
    kept = {path: path.read_bytes() for path in command.out.glob("*.json")}
    assert kept
    code, _, err = command.run(*arguments, "--resume")
    assert code == 0, err
    assert {path: path.read_bytes() for path in kept} == kept, "what was finished is as it was"
    done = [
        (record.round, record.device.id)
        for record in command.records()
        if record.outcome.status == "ok"
    ]
    assert sorted(done) == [(0, "cpu"), (0, "cuda:0"), (1, "cpu"), (1, "cuda:0")], (
        "all of it, and nothing twice"
    )
    assert command.leftovers() == []
