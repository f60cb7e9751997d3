"""Published figures compared with measured ones."""

from __future__ import annotations

import dataclasses
import math
from typing import Any

import msgspec
import pytest

from tests.browser.samples import full_records, slices_alone
from tests.records import a_command, a_record
from trainmark.analysis.agreement import PublishedResult, ValueResult, agree, band, trainings
from trainmark.errors import RecordError
from trainmark.record.caveats import Caveat
from trainmark.record.codec import to_plain
from trainmark.record.record import Epoch, FirstEvaluation, Outcome, Record
from trainmark.workload import catalog
from trainmark.workload.published import Published, PublishedRun, PublishedValue, Seeds
from trainmark.workload.spec import Workload


def scheduled(name: str, run: int = 0) -> Workload:
    workload = catalog.find(name)
    assert workload.published is not None
    return workload.scheduled_as(workload.published.runs[run])


def repeats(workload: Workload, count: int, **arguments: Any) -> list[Record]:
    """Continued repeats in one process: accuracy 0.80, 0.82, ..., loss 0.60, 0.58, ..."""
    return [
        a_record(
            workload=workload,
            repeat=number,
            id=f"repeat-{number}",
            seconds=(0.5,) * 10,
            **{
                "train_accuracy": 0.80 + 0.02 * number,
                "train_loss": 0.60 - 0.02 * number,
                **arguments,
            },
        )
        for number in range(count)
    ]


def measured(results: tuple[PublishedResult, ...]) -> PublishedResult:
    (found,) = (result for result in results if result.key is not None)
    return found


def figure(result: PublishedResult, quantity: str, where: str = "end") -> ValueResult:
    (found,) = (
        value for value in result.values if (value.quantity, value.where) == (quantity, where)
    )
    return found


def test_the_median_over_all_continued_repeats_is_judged() -> None:
    results = agree(repeats(scheduled("mnist-mlp32"), 10))
    result = measured(results)
    assert result.run == "benchmark 1"
    assert "after 50 and 60 steps, not after 10" in result.note
    accuracy = figure(result, "train_accuracy")
    assert accuracy.measured == pytest.approx((0.88 + 0.90) / 2)
    assert (accuracy.published, accuracy.statistic, accuracy.verdict) == (
        0.880783,
        "median of 10",
        "agrees",
    )
    assert figure(result, "train_loss").measured == pytest.approx(0.51)
    assert [other.run for other in results if other.key is None] == [
        "benchmark 2",
        "benchmark 3",
        "benchmark 4",
    ]


def test_commands_and_rounds_of_slices_have_no_published_figures() -> None:
    records = full_records()
    trained = [record for record in slices_alone(records) if record.epochs]
    assert 0 < len(trained) < len(records)
    assert trainings([*slices_alone(records), a_command()]) == trained
    diverged = msgspec.structs.replace(
        slices_alone(records)[-1], outcome=Outcome("diverged", "loss is nan")
    )
    assert trainings([diverged]) == [diverged]


def test_a_figure_that_was_not_measured_is_not_judged() -> None:
    (result,) = agree([a_record()])
    assert result.key is None
    assert {value.verdict for value in result.values} == {"not judged"}
    assert {value.reason for value in result.values} == {"nothing measured"}


def test_too_few_repeats_stand_for_other_states() -> None:
    accuracy = figure(measured(agree(repeats(scheduled("mnist-mlp32"), 5))), "train_accuracy")
    assert (accuracy.measured, accuracy.verdict) == (None, "not judged")
    assert accuracy.reason == "needs 10 continued repeats"


def test_a_gap_between_repeats_is_not_bridged() -> None:
    records = [record for record in repeats(scheduled("mnist-mlp32"), 11) if record.repeat != 4]
    assert figure(measured(agree(records)), "train_accuracy").verdict == "not judged"


def test_fresh_runs_do_not_match_a_continued_published_protocol() -> None:
    fresh = scheduled("mnist-mlp32").with_schedule(protocol="fresh")
    assert all(result.key is None for result in agree(repeats(fresh, 10)))


def test_each_repeat_is_judged_by_its_own_figures() -> None:
    workload = scheduled("mnist-cnn")
    records = [
        a_record(
            workload=workload,
            repeat=number,
            id=f"r{number}",
            test_accuracy=accuracy,
            test_loss=loss,
        )
        for number, (accuracy, loss) in enumerate([(0.983, 0.05), (0.95, 0.04)])
    ]
    result = measured(agree(records))
    accuracies = [value for value in result.values if value.quantity == "test_accuracy"]
    assert [(value.statistic, value.verdict) for value in accuracies] == [
        ("repeat 1", "agrees"),
        ("repeat 2", "differs"),
    ]


def test_means_over_epochs_and_the_edges_of_the_tolerance() -> None:
    workload = scheduled("mnist-mlp128")
    epochs = [
        Epoch(n, 0.0, 1.0, 600, 60_000, None, 0.84, None, 0.97 + 0.002 * (n % 5)) for n in range(20)
    ]
    record = a_record(workload=workload, epochs=epochs, test_accuracy=0.986, train_accuracy=0.997)
    result = measured(agree([record]))
    assert figure(result, "train_accuracy", "epoch 1").verdict == "differs"
    assert figure(result, "train_accuracy").verdict == "agrees"
    assert figure(result, "test_accuracy").verdict == "differs"
    mean = figure(result, "test_accuracy", "mean of epochs 16 to 20")
    assert mean.measured == pytest.approx(0.974)
    assert mean.verdict == "agrees"


def cifar(**changes: Any) -> Record:
    """290 steps whose total loss is 4.67 at step 0 and 3.70 at every tenth from 230, and 9.0
    elsewhere."""
    losses = [9.0] * 290
    losses[0] = 4.67
    losses[230:290:10] = [3.70] * 6
    l2 = [2.37 * 0.9996 ** (2 * step) for step in range(290)]
    return a_record(
        workload=scheduled("cifar10-cnn"),
        **{"train_examples": 50_000, "step_losses": losses, "step_l2_losses": l2, **changes},
    )


def test_step_losses_are_totals_and_their_l2_part_is_apart() -> None:
    result = measured(agree([cifar()]))
    assert {value.verdict for value in result.values} == {"agrees"}
    assert figure(
        result, "step_loss", "mean of steps 230 to 280, every 10"
    ).measured == pytest.approx(3.70)
    assert figure(result, "step_l2_loss", "step 230").measured == pytest.approx(1.971, abs=1e-3)


def test_figures_that_need_all_the_data_are_not_judged_by_a_part() -> None:
    result = measured(agree([cifar(train_examples=40_000, caveats=[Caveat.PARTIAL_DATASET])]))
    mean = figure(result, "step_loss", "mean of steps 230 to 280, every 10")
    assert (mean.verdict, mean.reason) == ("not judged", "needs the whole training set")
    assert mean.measured == pytest.approx(3.70)
    assert figure(result, "step_loss", "step 0").verdict == "agrees"


def test_a_whole_training_set_is_enough_for_a_figure_of_training() -> None:
    result = measured(agree([cifar(caveats=[Caveat.PARTIAL_DATASET])]))
    assert figure(result, "step_loss", "mean of steps 230 to 280, every 10").verdict == "agrees"


def seeded(count: int, *, value: float = 0.0183) -> PublishedValue:
    return PublishedValue("train_loss", value, seeds=Seeds(count, 0.0175, 0.001))


def test_a_band_is_the_prediction_interval_of_its_seeds() -> None:
    low, high = band(seeded(20), figures=1)
    half = 2.8609 * 0.001 * math.sqrt(1 + 1 / 20)  # Student's t of 99 % and 19 degrees of freedom
    assert (low, high) == (
        pytest.approx(0.0175 - half, rel=1e-4),
        pytest.approx(0.0175 + half, rel=1e-4),
    )
    assert band(seeded(20, value=0.03), figures=1) == (low, 0.03), (
        "the published value is random, too"
    )
    assert band(seeded(20, value=0.01), figures=1) == (0.01, high)
    _, wider = band(seeded(20), figures=6)
    _, surer = band(seeded(100), figures=1)
    assert wider is not None and high is not None and surer is not None
    assert surer < high < wider


def test_a_band_ends_where_a_figure_must() -> None:
    accuracy = PublishedValue("test_accuracy", 0.99, seeds=Seeds(3, 0.99, 0.01))
    assert band(accuracy, figures=1)[1] == 1.0
    assert band(PublishedValue("train_loss", seeds=Seeds(3, 0.01, 0.01)), figures=1)[0] == 0.0


@pytest.mark.parametrize(
    ("loss", "verdict"), [(0.0150, "agrees"), (0.0213, "agrees"), (0.026, "differs")]
)
def test_a_run_is_judged_by_the_band_of_its_seeds(loss: float, verdict: str) -> None:
    of_the_catalogue = PublishedValue("train_loss", 0.0183, seeds=Seeds(21, 0.017931, 0.0012))
    workload = dataclasses.replace(
        catalog.find("mnist-mlp512"),
        name="mine",
        published=Published(
            "a page", (PublishedRun("20 epochs", epochs=20, values=(of_the_catalogue,)),)
        ),
    )
    assert workload.published is not None
    record = a_record(workload=workload.scheduled_as(workload.published.runs[0]), train_loss=loss)
    value = figure(measured(agree([record])), "train_loss")
    assert value.verdict == verdict
    assert value.low is not None and value.low < 0.0175


def test_steps_that_were_not_recorded_are_not_judged() -> None:
    value = figure(
        measured(agree([cifar(step_losses=[4.67], step_l2_losses=None)])), "step_l2_loss", "step 0"
    )
    assert (value.verdict, value.reason) == ("not judged", "not measured")


def test_a_run_for_the_other_kind_of_device_is_not_followed() -> None:
    assert all(result.key is None for result in agree([cifar(device="cuda:0")]))


def test_a_published_nan_is_shown_with_what_was_measured() -> None:
    result = measured(agree(repeats(scheduled("mnist-mlp32", 3), 10, train_loss=0.0157)))
    published_nan, bounded = (value for value in result.values if value.quantity == "train_loss")
    if bounded.device == "cpu":
        published_nan, bounded = bounded, published_nan
    assert math.isnan(published_nan.published or 0)
    assert (published_nan.verdict, published_nan.reason) == (
        "not judged",
        "the published run failed",
    )
    assert published_nan.measured == 0.0157
    assert bounded.verdict == "agrees"
    assert any(value["published"] == "nan" for value in to_plain(result)["values"])


def test_a_gpu_is_not_compared_with_the_nan_of_a_cpu() -> None:
    result = measured(agree(repeats(scheduled("mnist-mlp32", 3), 10, device="cuda:0")))
    assert [value.device for value in result.values] == ["gpu", "gpu"]


def test_a_network_that_diverged_differs() -> None:
    records = repeats(scheduled("mnist-mlp32"), 7)
    records[-1] = a_record(
        workload=scheduled("mnist-mlp32"),
        repeat=6,
        id="last",
        status="diverged",
        train_loss=math.nan,
        train_accuracy=None,
    )
    loss = figure(measured(agree(records)), "train_loss")
    assert math.isnan(loss.measured or 0)
    assert loss.verdict == "differs"


def test_the_median_of_many_runs_does_not_hide_a_diverged_one() -> None:
    workload = scheduled("mnist-mlp128")
    fine = [
        a_record(workload=workload, round=number, seconds=(1.0,) * 20, train_accuracy=0.994)
        for number in range(3)
    ]
    accuracy = figure(measured(agree(fine)), "train_accuracy")
    assert (accuracy.statistic, accuracy.verdict) == ("median of 3", "agrees")
    diverged = a_record(workload=workload, round=3, status="diverged", train_accuracy=math.nan)
    assert figure(measured(agree([*fine, diverged])), "train_accuracy").verdict == "differs"


@pytest.mark.parametrize(
    ("changes", "reason"),
    [
        ({"dataset": "synthetic-digits"}, "trained on synthetic-digits, published for mnist"),
        ({"weights_from": "another"}, "started from another record's weights"),
    ],
)
def test_another_experiment_is_not_judged(changes: dict[str, Any], reason: str) -> None:
    result = measured(agree([a_record(workload=scheduled("mnist-mlp512"), **changes)]))
    assert {(value.verdict, value.reason) for value in result.values if value.where == "end"} == {
        ("not judged", reason)
    }


def test_an_option_that_changes_the_schedule_is_no_published_run() -> None:
    twice = scheduled("mnist-mlp32").with_schedule(dataset_repeats=2)
    assert all(result.key is None for result in agree(repeats(twice, 10)))


def test_timings_are_next_to_each_other() -> None:
    (timing,) = measured(agree(repeats(scheduled("mnist-mlp32"), 10))).timings
    assert (timing.quantity, timing.device, timing.published) == (
        "training_seconds",
        "cpu",
        3.54387,
    )
    assert timing.measured == pytest.approx(5.0)
    assert timing.ratio == pytest.approx(3.54387 / 5)
    assert timing.includes == "10 steps; no loading, no evaluation"


def test_a_throughput_is_faster_when_it_is_larger() -> None:
    epochs = [Epoch(0, 0.0, 10.0, 290, 37_120)]
    (timing,) = measured(agree([cifar(epochs=epochs)])).timings
    assert timing.measured == pytest.approx(3712)
    assert timing.ratio == pytest.approx(3712 / 594.4)


def test_a_users_workload_speaks_for_itself() -> None:
    value = PublishedValue("test_accuracy", 0.98, low=0.97, high=0.99)
    published = Published("a thesis", (PublishedRun("table 1", epochs=3, values=(value,)),))
    workload = dataclasses.replace(catalog.find("mnist-mlp512"), name="mine", published=published)
    workload = workload.with_schedule(epochs=3)
    result = measured(agree([a_record(workload=workload)]))
    assert (result.source, result.values[0].verdict) == ("a thesis", "agrees")
    assert agree([a_record(workload=dataclasses.replace(workload, published=None))]) == ()


def test_a_workload_that_cannot_be_read_is_an_error() -> None:
    record = a_record()
    broken = msgspec.structs.replace(record.workload, spec={"name": "mnist-mlp512"})
    with pytest.raises(RecordError, match="can't be read"):
        agree([msgspec.structs.replace(record, workload=broken)])


def test_figures_before_step_0_come_from_the_first_evaluation() -> None:
    before = FirstEvaluation(0.1, 4.1649, 0.0, 4.19, 0.0)
    result = measured(agree([a_record(workload=scheduled("shakespeare-gpt"), before=before)]))
    assert figure(result, "test_loss", "before step 0").verdict == "agrees"
    assert figure(result, "train_loss", "before step 0").verdict == "differs"


def test_a_run_has_the_precisions_that_it_was_published_for() -> None:
    records = [
        a_record(
            workload=scheduled("cifar10-resnet9"),
            precision="fp16",
            device="cuda:0",
            test_accuracy=0.94,
        )
    ]
    assert figure(measured(agree(records)), "test_accuracy").verdict == "agrees"
