"""The message after Ctrl-C names the results that are kept, and how to go on."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from tests.records import a_record
from trainmark.cli.main import INTERRUPTED, run

COURSE = SimpleNamespace(workload=SimpleNamespace(name="mnist-mlp512"))


class ARun:
    title = "mnist-mlp512 torch fast cpu"
    turn = "round 1"
    scheduled = COURSE
    blocks = None


TASK = SimpleNamespace(runs=(ARun(),), first=ARun())
PLAN = SimpleNamespace(
    notices=[],
    tasks=[TASK],
    scheduled=COURSE,
    side=SimpleNamespace(title="torch fast cpu"),
    sides=[],
    settings=SimpleNamespace(threads=None),
    question=SimpleNamespace(layouts=[(1, 1)], rendezvous=SimpleNamespace(nodes=1)),
)


def interrupted(finished: bool, folder: Path, monkeypatch: pytest.MonkeyPatch) -> int:
    def measure(_plan: Any, _store: Any, observer: Any, *_: Any, **__: Any) -> None:
        observer.task_started(TASK)
        observer.run_started(TASK, ARun(), False)
        if finished:
            observer.recorded(TASK, a_record())
        raise KeyboardInterrupt

    monkeypatch.setattr("trainmark.study.scale.prepare", lambda *_, **__: PLAN)
    monkeypatch.setattr("trainmark.study.scale.measure", measure)
    return run(["scale", "mnist-mlp512", "--out", str(folder)])


@pytest.mark.parametrize(
    ("finished", "words"),
    [
        (
            True,
            "Finished runs are in {0} (trainmark compare {0}); --resume with the same command "
            "continues.",
        ),
        (False, "No run finished; --resume with the same command continues."),
    ],
)
def test_the_message_names_what_is_finished_and_how_to_go_on(
    finished: bool,
    words: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    assert interrupted(finished, tmp_path, monkeypatch) == INTERRUPTED
    err = capsys.readouterr().err
    assert words.format(tmp_path / "scale") in err
    assert err.endswith("trainmark: interrupted\n")
