"""The time of forward passes is known where each is followed by its backward pass."""

from __future__ import annotations

import pytest

from trainmark.inject.forward_time import ForwardTime


def test_steps_that_were_not_seen_take_as_long_as_the_others() -> None:
    times = ForwardTime()
    for step in range(10):
        times.begins(float(step))
        times.ends(step + 0.25)
        times.stepped(1.0 if step else 0.0)
        times.stepped(1.0)  # a step whose forward pass was not looked at
    assert times.seconds(19) == pytest.approx(19 * 0.25)


def test_accumulated_passes_belong_to_their_step() -> None:
    times = ForwardTime()
    for at in range(8):
        times.begins(float(at))
        times.ends(at + 0.1)
        if at % 4 == 3:
            times.stepped(4.0)
    assert times.seconds(2) == pytest.approx(0.8)


def test_nothing_is_known_where_passes_follow_each_other() -> None:
    times = ForwardTime()
    for at in range(50):
        times.begins(float(at))
    times.ends(50.0)
    times.stepped(51.0)
    assert times.seconds(1) is None


@pytest.mark.parametrize("evaluates", [True, False])
def test_a_pass_without_a_backward_pass_spoils_its_step_alone(evaluates: bool) -> None:
    times = ForwardTime()
    now = 0.0
    for step in range(40):
        if step == 20:
            times.begins(now)
            now += 7.0
            if evaluates:
                times.interrupted()
        times.begins(now)
        times.ends(now + 0.25)
        now += 1.0
        times.stepped(8.0 if step == 20 else 1.0)
    assert times.seconds(40) == pytest.approx(10.0)


def test_nothing_is_known_where_another_network_computes() -> None:
    times = ForwardTime()
    for step in range(10):
        times.begins(step + 0.0)
        times.ends(step + 0.1)
        times.ends(step + 0.5)
        times.stepped(1.0)
    assert times.seconds(10) is None


def test_no_forward_pass_takes_longer_than_its_step() -> None:
    times = ForwardTime()
    times.begins(0.0)
    times.ends(3.0)
    times.stepped(2.0)
    assert times.seconds(1) is None


def test_nothing_is_known_without_passes() -> None:
    assert ForwardTime().seconds(10) is None
