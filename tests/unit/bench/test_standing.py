"""How raw turns become ratios, fractions of the peak, and bars."""

from __future__ import annotations

import pytest
from rounds import Outcome
from standing import LIMIT, Course, least_accuracy, paired_ratio, reference_of, standings, table, verdicts

from trainmark.workload import catalog, traffic
from trainmark.workload.model import lay_out

COURSE = Course(catalog.find("mnist-mlp128"), examples=1_000, epochs_a_turn=2, test_examples=10_000)


def outcome(**seconds: list[float]) -> Outcome:
    names = {"keras": "Keras fit", "torch": "PyTorch DataLoader", "ours": "trainmark torch fast", "limit": LIMIT}
    found = Outcome(seconds={names[name]: turns for name, turns in seconds.items()})
    found.test_accuracy = {name: 0.95 for name in found.seconds if name != LIMIT}
    peak = {"flops_per_second": COURSE.flops_a_turn * 2.0, "bytes_per_second": 1e10, "product": "p", "copy": "c"}
    found.facts = {LIMIT: [peak] * len(seconds["limit"])} if "limit" in seconds else {}
    return found


def test_a_turn_counts_every_example_as_often_as_it_is_trained_on():
    assert (COURSE.batch, COURSE.steps, COURSE.examples_a_turn) == (100, 20, 2_000)
    assert COURSE.flops_a_turn == 2_000 * 454_400


def test_the_reference_is_the_faster_of_the_two():
    assert reference_of({"Keras fit": [2, 2, 9], "PyTorch DataLoader": [3, 3, 3]}) == "Keras fit"
    assert reference_of({"PyTorch DataLoader": [3.0]}) == "PyTorch DataLoader"
    assert reference_of({"trainmark torch fast": [3.0]}) is None


def test_ratios_are_paired_round_by_round():
    # Twice as slow a machine in one round meets both sides, and leaves the ratio alone.
    ratio = paired_ratio([2.0, 4.0, 2.0], [1.0, 2.0, 1.0])
    assert (ratio.value, ratio.low, ratio.high) == pytest.approx((2, 2, 2))
    assert paired_ratio([2.0, 2.0], [1.0, 1.0]).low is None


def test_standings_hold_each_against_the_reference_and_the_peak():
    ours, keras, _ = standings(COURSE, outcome(keras=[2.0] * 3, torch=[3.0] * 3, ours=[1.0, 1.1, 0.9], limit=[0.1] * 3))
    assert (ours.name, keras.name) == ("trainmark torch fast", "Keras fit")
    assert ours.ratio.value == pytest.approx(2 / (0.99 ** (1 / 3)))
    assert ours.ratio.low < 2 < ours.ratio.high
    assert keras.fraction.value == pytest.approx(0.25)


def test_bars_are_met_by_the_lower_bound():
    fast = standings(COURSE, outcome(keras=[4.0] * 3, ours=[1.0] * 3, limit=[0.1] * 3))
    assert [said.split(":")[0] for said in verdicts(COURSE, fast)] == ["bar met", "bar met"]
    noisy = standings(COURSE, outcome(keras=[4.0] * 3, ours=[0.5, 1.0, 2.0], limit=[0.1] * 3))
    assert [said.split(":")[0] for said in verdicts(COURSE, noisy)] == ["bar MISSED", "bar MISSED"]
    alone = standings(COURSE, outcome(ours=[1.0] * 3))
    assert [said.split(":")[0] for said in verdicts(COURSE, alone)] == ["bar not decided", "bar not decided"]


@pytest.mark.parametrize(
    ("peers", "examples", "least"),
    [
        ({"Keras fit": 0.95}, 10_000, 0.93),
        ({"Keras fit": 0.34}, 1_000, 0.34 - 3 * (2 * 0.34 * 0.66 / 1_000) ** 0.5),
        ({"Keras fit": 0.7, "JAX jitted step": 0.6, "trainmark torch fast": 0.1}, 10_000, 0.7 - 3 * 0.005**0.5),
    ],
)
def test_accuracy_may_be_as_much_lower_as_chance_explains(peers, examples, least):
    assert least_accuracy(peers, "Keras fit", examples) == pytest.approx(least)


def test_one_that_does_not_learn_is_marked():
    raced = outcome(keras=[2.0] * 3, ours=[1.0] * 3)
    raced.test_accuracy["trainmark torch fast"] = 0.92
    ours, keras = standings(COURSE, raced)
    assert (ours.learns, keras.learns) == (False, True)
    assert "LOWER" in table(COURSE, raced, []).rows[0].cells[3].detail
    assert least_accuracy({"trainmark torch fast": 0.9}, None, 10) is None


def test_the_table_says_who_was_left_out_and_why():
    raced = outcome(keras=[2.0] * 3, ours=[1.0] * 3, limit=[0.1] * 3)
    raced.leave_out("PyTorch DataLoader", "it died")
    made = table(COURSE, raced, ["a machine"])
    assert made.conditions[0] == "a machine"
    assert "left out: PyTorch DataLoader: it died" in made.notes
    assert [row.cells[0].text for row in made.rows] == ["trainmark torch fast", "Keras fit"]
    assert made.rows[0].cells[2].text == "2.00×"


@pytest.mark.parametrize(
    ("name", "batch", "least", "unfused"),  # MB a step, as the specification of the workloads gives them
    [
        ("mnist-mlp32", 60_000, 188.8, 422.8),
        ("mnist-mlp128", 100, 2.06, 4.15),
        ("mnist-cnn", 200, 0.98, 18.7),
        ("mnist-mlp512", 128, 11.1, 23.5),
        ("cifar10-cnn", 128, 9.4, 98.8),
    ],
)
def test_memory_bounds(name, batch, least, unfused):
    workload = catalog.find(name)
    model = lay_out(workload)
    assert traffic.compulsory(model, workload.optimizer, batch) / 1e6 == pytest.approx(least, rel=0.01)
    assert traffic.layer_by_layer(model, workload.optimizer, batch) / 1e6 == pytest.approx(unfused, rel=0.01)
