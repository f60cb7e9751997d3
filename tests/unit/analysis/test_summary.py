"""Figures that are derived from one record."""

from __future__ import annotations

import math

import pytest

from tests.records import a_command, a_record
from trainmark.analysis.summary import summarize
from trainmark.record.caveats import Caveat
from trainmark.record.observed import Observed
from trainmark.record.record import Epoch, Final, Slice


def test_the_first_epoch_is_not_steady() -> None:
    run = summarize(a_record(seconds=(9.0, 2.0, 3.0, 2.5)))
    assert run.epoch_seconds == 2.5
    assert run.samples_per_second == 60_000 / 2.5
    assert run.training_seconds == 16.5
    assert Caveat.ONE_EPOCH not in run.caveats


def test_a_single_epoch_counts_and_has_a_caveat() -> None:
    run = summarize(a_record(seconds=(9.0,)))
    assert run.epoch_seconds == 9.0
    assert Caveat.ONE_EPOCH in run.caveats


def test_a_last_epoch_that_was_cut_short_is_no_epoch() -> None:
    whole = [Epoch(index, 0.0, 4.0 - index, 100, 10_000) for index in range(3)]
    cut = Epoch(3, 0.0, 0.1, 5, 500)
    assert summarize(a_record(epochs=[*whole, cut])).epoch_seconds == 2.5


def test_the_first_epoch_does_not_count_even_one_step_short() -> None:
    epochs = [Epoch(index, 0.0, 4.0 - index, 99 + (index > 0), 10_000) for index in range(3)]
    run = summarize(a_record(epochs=epochs))
    assert run.epoch_seconds == 2.5
    assert Caveat.ONE_EPOCH not in run.caveats


def test_training_seconds_are_summed_where_the_record_has_none() -> None:
    assert summarize(a_record(seconds=(3.0, 2.0), final=Final())).training_seconds == 5.0


def test_an_epoch_of_0_seconds_has_an_unknown_rate() -> None:
    run = summarize(a_record(seconds=(1.0, 0.0)))
    assert run.epoch_seconds is None
    assert run.samples_per_second is None


def test_a_diverged_run_does_not_learn_and_has_no_training_time() -> None:
    run = summarize(a_record(status="diverged", train_loss=None))
    assert not run.learns
    assert run.training_seconds is None
    assert run.train_loss is not None
    assert math.isnan(run.train_loss)


@pytest.mark.parametrize("loss", [math.nan, math.inf])
def test_a_loss_that_is_not_finite_is_not_learning(loss: float) -> None:
    assert not summarize(a_record(train_loss=loss)).learns


def test_a_run_without_epochs_has_no_figures() -> None:
    run = summarize(a_record(seconds=(), final=Final()))
    assert run.epoch_seconds is None
    assert run.training_seconds is None


def test_without_epochs_the_rate_is_that_of_the_observed_steps() -> None:
    seen = Observed("torch", (), steps=11, seconds=2.0, examples_per_step=32.0)
    assert summarize(a_command(observed=seen)).samples_per_second == 160
    assert (
        summarize(a_command(observed=seen, seconds=[2.0, 2.0], examples=640)).samples_per_second
        == 320
    )
    assert summarize(a_command(observed=Observed("torch", (), 11, 2.0))).samples_per_second is None


def test_the_rate_of_slices_leaves_out_the_start() -> None:
    seen = Observed("torch", (), steps=11, seconds=2.0, examples_per_step=32.0)
    slices = [Slice(0, order, float(order), 10, 10, 0.5, 320.0) for order in range(2)]
    assert summarize(a_command(observed=seen, slices=slices)).samples_per_second == 640
