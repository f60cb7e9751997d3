"""How raw turns become ratios, fractions of the peak and verdicts."""

from __future__ import annotations

import pytest
from ranking import (
    LIMIT,
    RacePlan,
    least_accuracy,
    paired_ratio,
    ranked,
    reference_of,
    table,
    verdicts,
)
from rounds import Outcome

from trainmark.workload import catalog

COURSE = RacePlan(
    catalog.find("mnist-mlp128"), examples=1_000, epochs_a_turn=2, test_examples=10_000
)


def outcome(**seconds: list[float]) -> Outcome:
    names = {
        "keras": "Keras fit",
        "torch": "PyTorch DataLoader",
        "ours": "trainmark torch idiomatic",
        "limit": LIMIT,
    }
    found = Outcome(seconds={names[name]: turns for name, turns in seconds.items()})
    found.test_accuracy = {name: 0.95 for name in found.seconds if name != LIMIT}
    peak = {
        "flops_per_second": COURSE.flops_a_turn * 2.0,
        "bytes_per_second": 1e10,
        "product": "p",
        "copy": "c",
    }
    found.facts = {LIMIT: [peak] * len(seconds["limit"])} if "limit" in seconds else {}
    return found


def test_a_turn_counts_examples_as_often_as_they_are_trained_on():
    assert (COURSE.batch, COURSE.steps, COURSE.examples_a_turn) == (100, 20, 2_000)
    assert COURSE.flops_a_turn == 2_000 * 454_400


def test_the_reference_is_the_faster_of_the_two():
    assert reference_of({"Keras fit": [2, 2, 9], "PyTorch DataLoader": [3, 3, 3]}) == "Keras fit"
    assert reference_of({"PyTorch DataLoader": [3.0]}) == "PyTorch DataLoader"
    assert reference_of({"trainmark torch idiomatic": [3.0]}) is None


def test_ratios_are_paired_round_by_round():
    # Twice as slow a machine in one round meets both sides, and leaves the ratio alone.
    ratio = paired_ratio([2.0, 4.0, 2.0], [1.0, 2.0, 1.0])
    assert (ratio.value, ratio.low, ratio.high) == pytest.approx((2, 2, 2))
    assert paired_ratio([2.0, 2.0], [1.0, 1.0]).low is None


def test_sides_are_compared_with_the_reference_and_the_peak():
    ours, keras, _ = ranked(
        COURSE, outcome(keras=[2.0] * 3, torch=[3.0] * 3, ours=[1.0, 1.1, 0.9], limit=[0.1] * 3)
    )
    assert (ours.name, keras.name) == ("trainmark torch idiomatic", "Keras fit")
    assert ours.ratio.value == pytest.approx(2 / (0.99 ** (1 / 3)))
    assert ours.ratio.low < 2 < ours.ratio.high
    assert keras.fraction.value == pytest.approx(0.25)


@pytest.mark.parametrize(
    ("ours", "verdict"),
    [
        ([2.0] * 3, "not slower"),
        ([3.05] * 3, "not slower"),
        ([4.0] * 3, "SLOWER"),
        ([1.5, 3.0, 6.0], "not decided"),
    ],
)
def test_a_style_must_not_be_slower_than_the_same_loop_of_a_peer(ours, verdict):
    (said,) = verdicts(ranked(COURSE, outcome(torch=[3.0] * 3, ours=ours)))
    assert said.startswith(f"{verdict}: trainmark torch idiomatic")


def test_the_peer_that_converts_per_image_comes_first():
    raced = outcome(torch=[3.0] * 3, ours=[2.0] * 3)
    raced.seconds["PyTorch DataLoader, per image"] = [4.0] * 3
    (ours,) = [row for row in ranked(COURSE, raced) if row.twin]
    assert (ours.twin, ours.twin_ratio.value) == ("PyTorch DataLoader, per image", pytest.approx(2))


def test_without_its_twin_a_style_has_no_verdict():
    assert verdicts(ranked(COURSE, outcome(keras=[3.0] * 3, ours=[3.0] * 3))) == []
    (said,) = verdicts(ranked(COURSE, outcome(torch=[3.0], ours=[3.0])))
    assert said.startswith("not decided")


@pytest.mark.parametrize(
    ("peers", "examples", "least"),
    [
        ({"Keras fit": 0.95}, 10_000, 0.93),
        ({"Keras fit": 0.34}, 1_000, 0.34 - 3 * (2 * 0.34 * 0.66 / 1_000) ** 0.5),
        (
            {"Keras fit": 0.7, "JAX jitted step": 0.6, "trainmark torch idiomatic": 0.1},
            10_000,
            0.7 - 3 * 0.005**0.5,
        ),
    ],
)
def test_accuracy_may_be_as_much_lower_as_chance_explains(peers, examples, least):
    assert least_accuracy(peers, "Keras fit", examples) == pytest.approx(least)


def test_one_that_does_not_learn_is_marked():
    raced = outcome(keras=[2.0] * 3, ours=[1.0] * 3)
    raced.test_accuracy["trainmark torch idiomatic"] = 0.92
    ours, keras = ranked(COURSE, raced)
    assert (ours.learns, keras.learns) == (False, True)
    assert "LOWER" in table(COURSE, raced, []).rows[0].cells[4].detail
    assert least_accuracy({"trainmark torch idiomatic": 0.9}, None, 10) is None


def test_the_table_says_who_was_left_out_and_why():
    raced = outcome(keras=[2.0] * 3, ours=[1.0] * 3, limit=[0.1] * 3)
    raced.leave_out("PyTorch DataLoader", "it died")
    made = table(COURSE, raced, ["a machine"])
    assert made.conditions[0] == "a machine"
    assert "left out: PyTorch DataLoader: it died" in made.notes
    assert [row.cells[0].text for row in made.rows] == ["trainmark torch idiomatic", "Keras fit"]
    assert made.rows[0].cells[2].text == "2.00×"
