"""The hook: says one line an event to whoever listens, and nothing to no one."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

import trainmark.hook

HOOK = Path(trainmark.hook.__file__)
THREE_EPOCHS = """
import hook
for loss in (2.0, float("nan"), 0.5):
    hook.epoch(loss=loss, accuracy=0.5, examples=100, steps=10)
    hook.test(accuracy=0.25)
"""


@pytest.fixture
def place(tmp_path: Path) -> Path:
    return tmp_path / "lines"


def test_every_event_is_a_line_and_times_grow(place: Path) -> None:
    lines = said(THREE_EPOCHS, place)
    assert [line["event"] for line in lines] == ["hello", *["epoch", "test"] * 3]
    times = [line["t"] for line in lines]
    assert times == sorted(times)
    epochs = [line for line in lines if line["event"] == "epoch"]
    assert [line["loss"] for line in epochs] == [2.0, "nan", 0.5]
    assert [line["index"] for line in epochs] == [0, 1, 2]
    assert epochs[0]["examples"] == 100
    assert {line["trainmark"] for line in lines} == {1}


def said(
    code: str, place: Path, python: str = sys.executable, **environment: str
) -> list[dict[str, Any]]:
    """Return what a program with a copy of the file writes to ``place``."""
    script = place.parent / "script.py"
    script.write_text(code)
    (place.parent / "hook.py").write_text(HOOK.read_text())
    place.write_text("")
    subprocess.run(
        [python, str(script)],
        check=True,
        env={**os.environ, "TRAINMARK_HOOK": str(place), **environment},
    )
    return [json.loads(line) for line in place.read_text().splitlines()]


def test_the_wait_for_batches_is_reported_with_the_epoch(place: Path) -> None:
    code = """
import time, hook
def slow():
    for _ in range(3):
        time.sleep(0.01)
        yield 1
assert sum(hook.batches(slow())) == 3
hook.epoch()
hook.epoch()
"""
    waits = [line["data_wait_seconds"] for line in said(code, place) if line["event"] == "epoch"]
    assert waits[0] >= 0.03
    assert waits[1] == 0.0


TURNS_CODE = """
import time, hook
def trains(steps):
    for batch in hook.batches(range(steps)):
        time.sleep(0.02)
"""


@pytest.mark.timeout(200)
@pytest.mark.parametrize(
    ("code", "events", "settled"),
    [
        (
            TURNS_CODE + "trains(25); hook.epoch(); trains(5); hook.epoch()",
            ["hello", "pause", "resume", "slice", "pause", "resume", "epoch", "epoch"],
            [False, False],
        ),
        (
            "import time, hook\nfor _ in range(3):\n"
            "  hook.begin(); time.sleep(0.2); hook.epoch(ended=time.perf_counter())",
            [
                "hello",
                "pause",
                "resume",
                "begin",
                "epoch",
                "slice",
                "pause",
                "resume",
                "begin",
                "epoch",
                "begin",
                "epoch",
            ],
            [False, True],
        ),
        (
            "import time, hook\nfor _ in range(3):\n  time.sleep(0.2); hook.epoch()",
            ["hello", "epoch", "pause", "resume", "epoch", "slice", "pause", "resume", "epoch"],
            [True, True],
        ),
    ],
    ids=["batches", "begin", "epochs"],
)
def test_it_pauses_until_its_turn(
    place: Path, code: str, events: list[str], settled: list[bool]
) -> None:
    turns = place.parent / "turns"
    turns.write_text("0.2 0.02\ninf 0.02\n")
    lines = said(code, place, TRAINMARK_TURNS=str(turns))
    assert [line["event"] for line in lines] == events
    assert [line["settled"] for line in lines if line["event"] == "pause"] == settled
    (timed,) = (line for line in lines if line["event"] == "slice")
    assert 0.2 <= timed["seconds"] <= timed["t"] - timed["start"] + 1e-6
    # Fewer than ten, if each sleeps longer than asked.
    assert timed["steps"] in (range(2, 11) if "batches" in code else (1,))
    assert timed["seconds"] >= (0.02 if "batches" in code else 0.2) * timed["steps"]


def test_a_turn_may_count_steps(place: Path) -> None:
    turns = place.parent / "turns"
    turns.write_text("0.2 0.05 40\n" * 2 + "inf 0\n")
    lines = said(TURNS_CODE + "trains(30)", place, TRAINMARK_TURNS=str(turns))
    # 0.05 s stand for 2 untimed steps, and 0.2 s for 8 steps, however long they take.
    assert [line["steps"] for line in lines if line["event"] == "slice"] == [8, 8]


@pytest.mark.parametrize("answer", ["", "nonsense\n"])
def test_a_training_without_turns_goes_on(place: Path, answer: str) -> None:
    turns = place.parent / "turns"
    turns.write_text(answer)
    lines = said(TURNS_CODE + "trains(9); hook.epoch()", place, TRAINMARK_TURNS=str(turns))
    assert [line["event"] for line in lines] == ["hello", "pause", "resume", "epoch"]
    assert lines[-1]["batches"] == 9


@pytest.mark.parametrize("rank", ["RANK", "SLURM_PROCID", "OMPI_COMM_WORLD_RANK", "PMI_RANK"])
def test_only_one_of_many_processes_reports(place: Path, rank: str) -> None:
    assert said(THREE_EPOCHS, place, **{rank: "1"}) == []
    assert len(said(THREE_EPOCHS, place, **{rank: "0"})) == 7


def test_a_descriptor_is_as_good_as_a_file(tmp_path: Path) -> None:
    reads, writes = os.pipe()
    code = f"import sys; sys.path.insert(0, {str(HOOK.parent)!r})\nimport hook\nhook.epoch(loss=1)"
    subprocess.run(
        [sys.executable, "-c", code],
        check=True,
        pass_fds=[writes],
        env={**os.environ, "TRAINMARK_HOOK": str(writes)},
    )
    os.close(writes)
    with os.fdopen(reads) as lines:
        assert [json.loads(line)["event"] for line in lines] == ["hello", "epoch"]


@pytest.mark.timeout(120)
def test_a_pipe_without_a_reader_does_not_keep_it_waiting(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    code = (
        f"import sys; sys.path.insert(0, {str(HOOK.parent)!r})\nimport hook\nhook.epoch(); "
        "print(hook.is_listening())"
    )
    done = subprocess.run(
        [sys.executable, "-c", code],
        capture_output=True,
        text=True,
        check=True,
        env={**os.environ, "TRAINMARK_HOOK": str(tmp_path / "pipe")},
    )
    assert done.stdout == "False\n"


@pytest.mark.timeout(120)
def test_a_reader_that_has_gone_ends_nothing(tmp_path: Path) -> None:
    reads, writes = os.pipe()
    code = (
        f"import sys; sys.path.insert(0, {str(HOOK.parent)!r})\nimport hook, "
        "sys\nsys.stdin.read()\n"
        "hook.epoch(); hook.epoch(); print(hook.is_listening())"
    )
    with subprocess.Popen(
        [sys.executable, "-c", code],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        pass_fds=[writes],
        env={**os.environ, "TRAINMARK_HOOK": str(writes)},
    ) as process:
        os.close(writes)
        os.read(reads, 1 << 16)
        os.close(reads)
        out, _ = process.communicate("go on", timeout=100)
    assert (process.returncode, out) == (0, "False\n")


def test_without_trainmark_the_hook_reports_nothing() -> None:
    assert not trainmark.hook.is_listening()
    trainmark.hook.begin()
    trainmark.hook.epoch(loss=object())  # type: ignore[arg-type]  # not even looked at
    trainmark.hook.test()
    assert list(trainmark.hook.batches(range(3))) == [0, 1, 2]


@pytest.mark.parametrize("version", ["3.8", "3.9", "3.10", "3.12", "3.13"])
def test_other_pythons_can_take_the_file(place: Path, version: str) -> None:
    found = sorted(Path.home().glob(f".pyenv/versions/{version}.*/bin/python"))
    if not found:
        pytest.skip(f"there is no Python {version} here")
    assert len(said(THREE_EPOCHS, place, str(found[0]))) == 7
