"""What Ctrl-C leaves is said by every verb, and how to go on."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from tests.records import a_record
from trainmark.cli.main import INTERRUPTED, run

COURSE = SimpleNamespace(workload=SimpleNamespace(name="mnist-mlp512"))


class ARun:
    title, turn, course, blocks = "mnist-mlp512 torch fast cpu", "round 1", COURSE, None


TASK = SimpleNamespace(runs=(ARun(),), first=ARun())
PLAN = SimpleNamespace(
    notices=[],
    tasks=[TASK],
    course=COURSE,
    side=SimpleNamespace(title="torch fast cpu"),
    sides=[],
    settings=SimpleNamespace(threads=None),
    question=SimpleNamespace(layouts=[(1, 1)], rendezvous=SimpleNamespace(nodes=1)),
)


def interrupted(verb: str, finished: bool, folder: Path, monkeypatch: pytest.MonkeyPatch) -> int:
    def measure(_plan: Any, _store: Any, observer: Any, *_: Any, **__: Any) -> None:
        observer.task_started(TASK)
        observer.run_started(TASK, ARun(), False)
        if finished:
            observer.recorded(TASK, a_record())
        raise KeyboardInterrupt

    monkeypatch.setattr(f"trainmark.study.{verb}.prepare", lambda *_, **__: PLAN)
    monkeypatch.setattr(f"trainmark.study.{verb}.measure", measure)
    return run([verb, "mnist-mlp512", "--out", str(folder)])


@pytest.mark.parametrize(
    ("verb", "finished", "words"),
    [
        ("scale", True, "Finished runs are in {0} (trainmark compare {0}); --resume with the same command continues."),
        ("scale", False, "No run finished; --resume with the same command continues."),
        ("parity", True, "Records: {0}; the same command starts over."),
    ],
)
def test_it_is_said_what_is_finished_and_how_to_go_on(
    verb: str,
    finished: bool,
    words: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    assert interrupted(verb, finished, tmp_path, monkeypatch) == INTERRUPTED
    err = capsys.readouterr().err
    assert words.format(tmp_path / verb) in err
    assert err.endswith("trainmark: interrupted\n")
