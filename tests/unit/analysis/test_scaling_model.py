"""The model of scale: its formula by hand, its fits on made-up times, and where it says that more stops paying."""

from __future__ import annotations

import math

import pytest

from trainmark.analysis.scaling_model import (
    Link,
    Network,
    ScalingModel,
    StepCost,
    fastest,
    fit_link,
    fit_step,
    pays_up_to,
)
from trainmark.errors import ScalingFailed, SumsLost

MICRO = 1e-6
LINK = Link(10 * MICRO, 1e-9, "ring", "made up")
STEP = StepCost(1e-3, 1e-5, {})
NETWORK = Network(4_000_000, 1, {1: 1.0, 2: 0.6}, {1: 0, 2: 2_000})


def test_a_ring_by_hand() -> None:
    # 4 devices: 3 hops each way, and 3/4 of the bytes twice
    assert LINK.all_reduce_seconds(1e6, 4) == pytest.approx(2 * 3 * 10 * MICRO + 2 * 0.75 * 1e6 * 1e-9)


def test_a_tree_has_as_many_hops_as_it_is_high() -> None:
    tree = Link(10 * MICRO, 1e-9, "tree", "made up")
    assert tree.all_reduce_seconds(0, 1024) == pytest.approx(2 * 10 * 10 * MICRO)
    assert tree.all_reduce_seconds(0, 5) == pytest.approx(2 * 3 * 10 * MICRO)


def test_one_device_sums_nothing() -> None:
    assert LINK.all_reduce_seconds(1e9, 1) == 0


def test_every_message_pays_the_latency_again() -> None:
    more = LINK.all_reduce_seconds(1e6, 2, messages=3) - LINK.all_reduce_seconds(1e6, 2)
    assert more == pytest.approx(2 * 2 * 10 * MICRO)


@pytest.mark.parametrize("hops", ["ring", "tree"])
@pytest.mark.parametrize("ranks", [2, 4])
def test_a_fit_finds_the_link_that_made_the_times(hops: str, ranks: int) -> None:
    made = Link(37 * MICRO, 0.7e-9, hops, "")  # type: ignore[arg-type]
    timings = {size: [made.all_reduce_seconds(size, ranks)] * 3 for size in (4, 10**4, 10**6, 10**7)}
    found = fit_link(timings, ranks, made.hops, "here")
    assert found.alpha_seconds == pytest.approx(37 * MICRO)
    assert found.beta_seconds_per_byte == pytest.approx(0.7e-9)
    assert found.largest_error == pytest.approx(0, abs=1e-9)
    assert found.source == "here"


def test_the_error_of_a_fit_is_that_of_the_size_it_misses_most() -> None:
    timings = {size: [LINK.all_reduce_seconds(size, 2)] for size in (4, 10**4, 10**6)}
    timings[10**4] = [2 * timings[10**4][0]]
    error = fit_link(timings, 2, "ring", "").largest_error
    assert error is not None
    assert 0.2 < error < 1


def test_sums_below_the_noise_are_left_out_of_the_fit() -> None:
    timings = {size: [LINK.all_reduce_seconds(size, 2)] * 3 for size in (10**4, 10**5, 10**6)}
    link = fit_link({1000: [-1e-5, -2e-5, 3e-6], **timings}, 2, "ring", "")
    assert link.alpha_seconds == pytest.approx(LINK.alpha_seconds)
    assert link.beta_seconds_per_byte == pytest.approx(LINK.beta_seconds_per_byte)


def test_nothing_but_noise_is_no_link() -> None:
    with pytest.raises(ScalingFailed, match="lost in the noise"):
        fit_link({10**4: [-1e-5], 10**5: [1e-5], 10**6: [1e-4]}, 2, "ring", "")


def test_a_line_that_misses_all_of_a_sum_is_no_link() -> None:
    with pytest.raises(SumsLost, match="misses one by"):
        fit_link({1000: [9e-4], 2000: [1e-4], 4000: [8e-4], 8000: [5e-5]}, 2, "tree", "")


def test_the_copy_with_the_largest_share_decides() -> None:
    model = ScalingModel(StepCost(0.0, 1e-3, {}), Link(1e-12, 1e-30, "ring", ""), NETWORK, 100)
    assert model.predict(64).step_seconds == pytest.approx(2e-3, rel=1e-3)  # 100 examples on 64: one has 2


def test_steps_that_get_shorter_with_more_examples_are_taken_for_equal() -> None:
    step = fit_step({64: 2e-3, 128: 1.9e-3})
    assert step.seconds(1000) == pytest.approx(1.95e-3, rel=0.03)


def test_a_measured_step_is_not_fitted() -> None:
    step = fit_step({32: 1.4e-3, 64: 1.7e-3, 128: 2.3e-3})
    assert step.seconds(64) == 1.7e-3
    assert step.seconds(256) == pytest.approx(1.1e-3 + 256 * 0.94e-5, rel=0.05)


def test_strong_and_weak_by_hand() -> None:
    model = ScalingModel(STEP, LINK, NETWORK, 128)
    strong, weak = model.predict(2), model.predict(2, weak=True)
    talk = 2 * 10 * MICRO + 4e6 * 1e-9
    assert strong.step_seconds == pytest.approx(1e-3 + 64e-5 + talk)
    assert strong.communication == pytest.approx(talk / strong.step_seconds)
    assert weak.step_seconds == pytest.approx(1e-3 + 128e-5 + talk)
    assert (strong.batch, weak.batch) == (128, 256)
    alone = 128 / (1e-3 + 128e-5)
    assert strong.efficiency == pytest.approx(128 / strong.step_seconds / (2 * alone))
    assert weak.efficiency == pytest.approx(256 / weak.step_seconds / (2 * alone))


def test_one_device_is_fully_efficient() -> None:
    alone = ScalingModel(STEP, LINK, NETWORK, 128).predict(1)
    assert (alone.efficiency, alone.communication) == (1.0, 0.0)


def test_a_pipeline_waits_to_be_filled() -> None:
    model = ScalingModel(StepCost(0.0, 1e-5, {}), Link(0.0, 1e-30, "ring", ""), NETWORK, 128)
    # 4 pieces through 2 stages take 5 turns of the longest stage
    assert model.predict(1, 2, 4).step_seconds == pytest.approx(5 * 32e-5 * 0.6)


def test_the_curves_go_on_for_as_long_as_every_copy_has_an_example() -> None:
    model = ScalingModel(STEP, LINK, NETWORK, 100)
    assert [point.data for point in model.curve(weak=False)] == [1, 2, 4, 8, 16, 32, 64]
    assert model.curve(weak=True)[-1].data == 4096


def test_where_it_stops() -> None:
    model = ScalingModel(StepCost(0.0, 1e-4, {}), Link(50 * MICRO, 1e-12, "ring", ""), NETWORK, 1024)
    strong = model.curve(weak=False)
    rates = [point.samples_per_second for point in strong]
    assert fastest(strong) == strong[rates.index(max(rates))].data
    assert 1 < pays_up_to(strong) < 1024
    assert all(point.efficiency >= 0.5 for point in strong if point.data <= pays_up_to(strong))
    beyond = next(point for point in strong if point.data == 2 * pays_up_to(strong))
    assert beyond.efficiency < 0.5


def test_nothing_in_a_curve_is_infinite() -> None:
    for point in ScalingModel(STEP, LINK, NETWORK, 128).curve(weak=True):
        assert math.isfinite(point.step_seconds) and 0 < point.efficiency <= 1
