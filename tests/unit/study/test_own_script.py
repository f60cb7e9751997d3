"""How long the unchanged script is observed."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from trainmark.execute.parent.scheduler import RunStopped
from trainmark.execute.protocol.answers import StepsObserved
from trainmark.study.explain import own_script

TASK: Any = None


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> SimpleNamespace:
    made = SimpleNamespace(now=0.0)
    monkeypatch.setattr(own_script, "time", SimpleNamespace(monotonic=lambda: made.now))
    return made


def observed(clock: SimpleNamespace, at: float) -> own_script._Watcher:
    """Watches a script whose first step was reported at a time."""
    watcher = own_script._Watcher(lambda _: None, "the unchanged script", most=1.0, patience=60.0)
    clock.now = at
    watcher.heard(TASK, StepsObserved("torch", (), steps=1, seconds=0.0))
    return watcher


def test_it_ends_with_a_report_since_what_came_after_the_last_one_would_be_lost(clock: SimpleNamespace) -> None:
    watcher = observed(clock, at=10.0)
    clock.now = 11.5
    watcher.counted(TASK, 3)
    watcher.heard(TASK, StepsObserved("torch", (), steps=3, seconds=1.5))
    with pytest.raises(RunStopped, match="observed long enough"):
        watcher.counted(TASK, 3)


def test_a_script_that_reports_nothing_more_is_not_waited_for(clock: SimpleNamespace) -> None:
    watcher = observed(clock, at=10.0)
    clock.now = 71.0
    with pytest.raises(RunStopped):
        watcher.counted(TASK, 1)


def test_a_script_without_a_step_is_not_waited_for(clock: SimpleNamespace) -> None:
    watcher = own_script._Watcher(lambda _: None, "the unchanged script", most=1.0, patience=60.0)
    clock.now = 59.0
    watcher.counted(TASK, 0)
    clock.now = 61.0
    with pytest.raises(RunStopped, match="no training step"):
        watcher.counted(TASK, 0)


def test_a_failure_names_the_file_of_the_user_not_of_the_copy() -> None:
    printed = "python: can't open file '/tmp/trainmark-scratch-h6mpzr0j/e/train.py': [Errno 2] No such file"
    record: Any = SimpleNamespace(outcome=SimpleNamespace(status="failed", reason="exit code 2", stderr_tail=printed))
    assert own_script._why(record) == "exit code 2: python: can't open file 'train.py': [Errno 2] No such file"
