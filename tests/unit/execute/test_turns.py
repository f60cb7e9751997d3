"""Two who take turns: one at a time, and nobody waits for one who is gone."""

from __future__ import annotations

import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from trainmark.execute.turns import Pids, Seat, Turn, in_turns


def player(name: str, rounds: int, seen: list[str], playing: threading.Semaphore) -> Callable[[Seat], str]:
    """Plays so many rounds, each begun and ended while nobody else plays."""

    def play(seat: Seat) -> str:
        turn = Turn(seat)
        turn.take()
        for number in range(rounds):
            if number:
                turn.rest()
            assert playing.acquire(blocking=False), "somebody else was playing"
            time.sleep(0.002)
            seen.append(name)
            playing.release()
        return name

    return play


@pytest.mark.timeout(20)
@pytest.mark.parametrize(
    ("rounds", "expected"), [((3, 3), "ababab"), ((4, 2), "ababaa"), ((2, 4), "ababbb"), ((1, 1), "ab")]
)
def test_rounds_alternate_and_who_is_left_goes_on_alone(rounds: tuple[int, int], expected: str) -> None:
    seen: list[str] = []
    playing = threading.Semaphore()
    a, b = (player(name, number, seen, playing) for name, number in zip("ab", rounds, strict=True))
    assert in_turns(a, b, lambda: None) == ("a", "b")
    assert "".join(seen) == expected


@pytest.mark.timeout(20)
def test_one_that_fails_does_not_keep_the_other_waiting() -> None:
    seen: list[str] = []

    def fails(_: Seat) -> str:
        raise ValueError("no turn was taken")

    with pytest.raises(ValueError, match="no turn was taken"):
        in_turns(fails, player("b", 3, seen, threading.Semaphore()), lambda: None)
    assert seen == ["b"] * 3


def test_alone_it_is_always_ones_turn() -> None:
    turn = Turn(None)
    turn.take()
    turn.rest()


def sleeper() -> subprocess.Popen[bytes]:
    return subprocess.Popen([sys.executable, "-c", "import time; time.sleep(60)"], start_new_session=True)


@pytest.mark.timeout(20)
def test_who_comes_after_the_end_is_ended_too() -> None:
    early, late, pids = sleeper(), sleeper(), Pids()
    pids.born(early.pid)
    pids.end()
    assert early.wait() == -signal.SIGKILL
    pids.born(late.pid)
    assert late.wait() == -signal.SIGKILL


def test_the_descriptors_are_closed() -> None:
    before = {*Path("/proc/self/fd").iterdir()}
    in_turns(lambda _: None, lambda _: None, lambda: None)
    assert {*Path("/proc/self/fd").iterdir()} <= before, "others may be closed meanwhile, none may be added"
