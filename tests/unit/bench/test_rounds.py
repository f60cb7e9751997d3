"""Live contenders take turns, with scripts that train nothing."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest
from rounds import WARM_UPS, Contender, Outcome, Timeouts, compete, rotated

from tests.unit.bench.conftest import BENCH

QUICK = Timeouts(set_up=120, turn=120, settle=0)
SCRIPT = f"""
import sys, time
sys.path.insert(0, {str(BENCH / "contenders")!r})
from turns import Turns

turns = Turns()
manner, place = sys.argv[4:6]
turns.versions(fake="1")
if manner == "absent":
    turns.cannot("not installed here")
for epoch in range(turns.epochs):
    with open(place, "a") as log:
        log.write(manner + "\\n")
    print("a framework prints what it likes")
    if manner == "slow":
        time.sleep(0.05)
    if manner == "dies" and epoch == 3:
        raise MemoryError("out of everything")
    if manner == "hangs" and epoch == 2:
        time.sleep(300)
    turns.epoch_done(epoch=epoch)
turns.test_accuracy(0.9)
"""


@pytest.fixture
def enter(tmp_path: Path):
    script = tmp_path / "fake.py"
    script.write_text(SCRIPT)

    def contender(manner: str, **settings) -> Contender:
        place = str(tmp_path / "order.txt")
        return Contender(manner, Path(sys.executable), script, (manner, place), **settings)

    return contender


def run(
    tmp_path: Path, contenders: list[Contender], rounds: int = 3, timeouts: Timeouts = QUICK
) -> Outcome:
    return compete(
        contenders, "nothing", tmp_path, rounds, timeouts=timeouts, log=lambda line: None
    )


def test_the_parents_clock_times_every_counted_turn(tmp_path, enter):
    outcome = run(tmp_path, [enter("slow"), enter("steady")])
    assert not outcome.left_out
    assert [len(outcome.seconds[name]) for name in ("slow", "steady")] == [3, 3]
    assert min(outcome.seconds["slow"]) >= 0.05
    assert [fact["epoch"] for fact in outcome.facts["steady"]] == [2, 3, 4]
    assert outcome.first["steady"]["epoch"] == WARM_UPS - 1
    assert outcome.test_accuracy == {"slow": 0.9, "steady": 0.9}
    assert outcome.versions["steady"] == {"fake": "1"}


def test_each_round_starts_with_the_next_contender(tmp_path, enter):
    run(tmp_path, [enter("slow"), enter("steady")], rounds=2)
    trained = (tmp_path / "order.txt").read_text().split()
    assert sorted(trained[:2]) == ["slow", "steady"]  # both at once
    assert trained[2:] == ["steady", "slow", "slow", "steady", "steady", "slow"]


def test_rotation():
    assert [rotated("ABC", number) for number in (-1, 0, 1, 3)] == [
        list("CAB"),
        list("ABC"),
        list("BCA"),
        list("ABC"),
    ]
    assert rotated([], 4) == []


def test_a_turn_may_hold_several_epochs(tmp_path, enter):
    outcome = run(tmp_path, [enter("steady", epochs_a_turn=2)], rounds=2)
    assert [fact["epoch"] for fact in outcome.facts["steady"]] == [5, 7]


def test_a_contender_that_dies_is_left_out_with_its_last_output(tmp_path, enter):
    outcome = run(tmp_path, [enter("dies"), enter("steady")])
    assert outcome.left_out == {"dies": "ended with exit code 1: MemoryError: out of everything"}
    assert set(outcome.seconds) == set(outcome.facts) == set(outcome.test_accuracy) == {"steady"}
    assert len(outcome.seconds["steady"]) == 3


def test_one_that_hangs_is_ended(tmp_path, enter):
    outcome = run(
        tmp_path, [enter("hangs"), enter("steady")], timeouts=Timeouts(set_up=120, turn=5, settle=0)
    )
    assert outcome.left_out == {"hangs": "no answer in 5 s"}
    assert len(outcome.seconds["steady"]) == 3


def test_a_contender_that_cannot_take_part_says_why(tmp_path, enter):
    outcome = run(tmp_path, [enter("absent"), enter("steady")], rounds=1)
    assert outcome.left_out == {"absent": "not installed here"}


def test_one_without_a_test_is_not_asked(tmp_path, enter):
    outcome = run(tmp_path, [enter("steady", tested=False)], rounds=1)
    assert outcome.test_accuracy == {}


def test_an_interrupt_ends_all(tmp_path, enter):
    def interrupted(line: str) -> None:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        compete(
            [enter("steady"), enter("slow")],
            "nothing",
            tmp_path,
            1,
            timeouts=QUICK,
            log=interrupted,
        )
    # each has warmed up twice
    assert len((tmp_path / "order.txt").read_text().split()) == 4
