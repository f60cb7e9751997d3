"""The time of forward passes is known where each is followed by a backward pass."""

from __future__ import annotations

import pytest

from trainmark.inject.forward_time import ForwardTime


def test_steps_that_were_not_seen_take_as_long_as_the_others() -> None:
    times = ForwardTime()
    for step in range(10):
        times.begins(float(step))
        times.ends(step + 0.25)
        times.stepped(1.0 if step else 0.0)
        times.stepped(1.0)  # a step whose forward pass nobody looked at
    assert times.seconds(19.0) == pytest.approx(19 * 0.25)


def test_accumulated_passes_belong_to_their_step() -> None:
    times = ForwardTime()
    for at in range(8):
        times.begins(float(at))
        times.ends(at + 0.1)
        if at % 4 == 3:
            times.stepped(4.0)
    assert times.seconds(8.0) == pytest.approx(0.8)


def test_nothing_is_known_where_passes_follow_each_other() -> None:
    times = ForwardTime()
    for at in range(50):
        times.begins(float(at))
    times.ends(50.0)
    times.stepped(51.0)
    assert times.seconds(51.0) is None


def test_nothing_is_known_without_passes() -> None:
    assert ForwardTime().seconds(10.0) is None
