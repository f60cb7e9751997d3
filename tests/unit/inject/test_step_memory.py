"""The memory of a training is read now and then."""

from __future__ import annotations

import sys

import pytest

from trainmark.inject import step_memory
from trainmark.inject.step_memory import StepMemory, own_bytes

linux = pytest.mark.skipif(sys.platform != "linux", reason="Linux alone tells a process's memory")


@linux
def test_what_a_process_allocates_is_its_own_memory() -> None:
    before = own_bytes()
    kept = bytearray(b"x" * 50_000_000)
    after = own_bytes()
    assert before is not None and after is not None
    assert len(kept) * 0.9 < after - before < len(kept) * 2.2


def test_where_the_system_does_not_tell_it_is_unknown(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(step_memory, "_PAGES", step_memory._PAGES.with_name("not there"))
    memory = StepMemory(lambda: None)
    memory.stepped(1, 5.0)
    assert memory.readings() == [[1, None, None]]


def test_readings_become_rarer_and_are_thinned_out() -> None:
    memory = StepMemory(lambda: 7)
    for step in range(1, 100_001):
        memory.stepped(step, step * 0.01)
    found = memory.readings()
    assert 40 <= len(found) < 96
    assert found[0][0] == 1
    assert found[-1][0] is not None and found[-1][0] > 90_000
    assert all(device == 7 for _, _, device in found)


def test_steps_that_follow_at_once_are_not_read() -> None:
    memory = StepMemory(lambda: 7)
    for step in range(1, 100):
        memory.stepped(step, 1 + step * 0.001)
    assert [step for step, _, _ in memory.readings()] == [1]
