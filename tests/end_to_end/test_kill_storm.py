"""A few kills at random moments; ``bench/kill_storm.py`` does hundreds."""

from __future__ import annotations

import pytest

from bench.kill_storm import storm


# each kind of kill also has a separate test, in test_interrupts.py and test_faults.py
@pytest.mark.slow
def test_a_few_kills_lose_nothing() -> None:
    tally = storm("fake", 3, rounds=2, most_each=3, seed=4)
    assert tally.faults == []
    assert tally.kills.total() == 3
    assert (tally.least_finished or 0) >= 1
