from __future__ import annotations

import pytest

from trainmark.errors import SpecError, TrainmarkError, UnknownName, UsageError
from trainmark.workload import catalog
from trainmark.workload.grid import (
    MOST_TRIALS,
    GridPoint,
    drawn,
    points,
    read_grid,
    read_ranges,
    title,
)
from trainmark.workload.layers import ChannelDropout, Dense, Dropout, every


def of(*words: str, workload: str = "mnist-mlp128") -> list[GridPoint]:
    return points(catalog.find(workload), read_grid(words))


def test_every_combination_in_order_the_last_key_fastest() -> None:
    made = of("learning_rate=0.1,1e-2", "hidden=32,64")
    assert [tuple(point.values.values()) for point in made] == [
        (0.1, 32),
        (0.1, 64),
        (0.01, 32),
        (0.01, 64),
    ]
    assert title(made[2].values) == "learning_rate=0.01 hidden=32"


def test_each_value_makes_another_step_and_the_name_stays() -> None:
    made = of("learning_rate=0.1,0.01", "hidden=32,64", "batch_size=50,100")
    assert len({point.workload.step_fingerprint for point in made}) == 8
    assert {point.workload.name for point in made} == {"mnist-mlp128"}
    assert {point.workload.published for point in made} == {None}


def test_the_workload_s_own_values_change_nothing() -> None:
    (point,) = of("learning_rate=0.1", "momentum=0.9", "batch_size=100")
    assert point.workload.step_fingerprint == catalog.find("mnist-mlp128").step_fingerprint


def test_hidden_leaves_the_last_layer_alone() -> None:
    (point,) = of("hidden=7")
    assert [layer.units for layer in point.workload.model if isinstance(layer, Dense)] == [7, 7, 10]


def test_the_key_dropout_includes_nested_layers_and_attention() -> None:
    (point,) = of("dropout=0.1", workload="shakespeare-gpt-10m")
    rates = {
        getattr(each, "rate", None) or getattr(each, "dropout", None)
        for each in every(point.workload.model)
    }
    assert rates == {0.1, None}


def test_dropout_is_of_every_dropout_layer() -> None:
    (point,) = of("dropout=0.1", workload="mnist-cnn")
    rates = [
        layer.rate for layer in point.workload.model if isinstance(layer, (Dropout, ChannelDropout))
    ]
    assert rates and set(rates) == {0.1}


def test_a_seed_belongs_to_the_run_and_changes_no_workload() -> None:
    made = of("seed=3,4")
    assert [point.seed for point in made] == [3, 4]
    assert len({point.workload for point in made}) == 1
    assert of("momentum=0.5")[0].seed is None


def test_epochs_decide_alone_how_long_it_goes_on() -> None:
    workload = catalog.find("mnist-mlp128").with_schedule(steps=5)
    (point,) = points(workload, read_grid(["epochs=2"]))
    assert (point.workload.schedule.epochs, point.workload.schedule.steps) == (2, None)


def test_a_path_leads_to_any_value() -> None:
    (point,) = of("model[1].units=5", "optimizer.decay_biases=false", "batches.size=full")
    first = next(layer for layer in point.workload.model if isinstance(layer, Dense))
    assert first.units == 5
    assert point.workload.optimizer.decay_biases is False  # type: ignore[union-attr]
    assert point.workload.batches.size == "full"


@pytest.mark.parametrize(
    ("words", "error", "said"),
    [
        (["learnig_rate=1"], UnknownName, "Did you mean learning_rate?"),
        (["optimizer.momentun=1"], UnknownName, "Did you mean optimizer.momentum?"),
        (["name=x"], UnknownName, "unknown grid key 'name'"),
        (["published.source=x"], UnknownName, "unknown grid key"),
        (["schedule.protocol=continued"], UnknownName, "unknown grid key"),
        (
            ["rho=0.9"],
            SpecError,
            "mnist-mlp128 has no rho: expected one of learning_rate, momentum",
        ),
        (["dropout=0.5"], SpecError, "has no dropout"),
        (
            ["hidden=12.5"],
            SpecError,
            "hidden=12.5 does not fit mnist-mlp128 at model[1].units: expected a whole",
        ),
        (["learning_rate=abc"], SpecError, "expected a number, found 'abc'"),
        (["learning_rate=nan"], SpecError, "expected a number, found 'nan'"),
        (["learning_rate=0.1,-1"], SpecError, "expected a number above 0, found -1"),
        (["optimizer.kind=adam"], SpecError, "found the key 'momentum'"),
        (["seed=a"], SpecError, "expected a whole number from 0"),
        (["seed=-1"], SpecError, "expected a whole number from 0"),
        (["hidden"], UsageError, "can't be read: expected KEY=VALUE,VALUE"),
        (["hidden="], UsageError, "can't be read"),
        (["hidden=3,,4"], UsageError, "can't be read"),
        (["=3"], UsageError, "can't be read"),
        (["hidden=3", "hidden=4"], UsageError, "'hidden' twice"),
        (["learning_rate=0.1,.1"], UsageError, "learning_rate=0.1 twice"),
        (["model[1].units=3", "hidden=3"], UsageError, "both set model[1].units"),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, list) else "",
)
def test_errors_name_the_wrong_value(
    words: list[str], error: type[TrainmarkError], said: str
) -> None:
    with pytest.raises(error) as raised:
        of(*words)
    assert said in str(raised.value)


def test_far_too_many_trials_are_refused_before_any_is_made() -> None:
    many = ",".join(str(number) for number in range(1, 201))
    with pytest.raises(UsageError, match=f"{MOST_TRIALS:,} at most"):
        of(f"hidden={many}", f"seed={many}")


def test_a_range_repeats_its_values_and_keeps_whole_numbers() -> None:
    ranges = read_ranges(["learning_rate=0.001..0.1:log", "hidden=16..256"])
    samples = drawn(ranges, 200, seed=1)
    assert drawn(ranges, 3, seed=1) == samples[:3]
    assert drawn(ranges, 3, seed=2) != samples[:3]
    rates = [float(sample["learning_rate"]) for sample in samples]
    assert all(0.001 <= rate <= 0.1 for rate in rates)
    assert 60 < sum(rate < 0.01 for rate in rates) < 140, "each decade gets about half"
    assert all(
        type(sample["hidden"]) is int and 16 <= sample["hidden"] <= 256 for sample in samples
    )


def test_each_combination_of_the_grid_gets_every_sample_once() -> None:
    workload = catalog.find("mnist-mlp128")
    made = points(
        workload, read_grid(["seed=1,2"]), drawn(read_ranges(["hidden=8..9"]), 50, seed=1)
    )
    assert sorted((point.values["seed"], point.values["hidden"]) for point in made) == [
        (1, 8),
        (1, 9),
        (2, 8),
        (2, 9),
    ]


def test_an_epoch_without_passes_stays_what_the_workload_says() -> None:
    (point,) = points(catalog.find("shakespeare-gpt"), read_grid(["epochs=2"]))
    assert (
        point.workload.schedule.steps_per_epoch
        == catalog.find("shakespeare-gpt").schedule.steps_per_epoch
        is not None
    )
