"""Where the figure that the user names is found in a run."""

from __future__ import annotations

from collections.abc import Sequence

from trainmark.execute.parent.find_metric import MetricFinder
from trainmark.execute.protocol.answers import MetricLogged
from trainmark.record.named_metric import WantedMetric
from trainmark.record.record import Epoch


def finder(*printed: str, name: str = "val_loss") -> MetricFinder:
    found = MetricFinder(WantedMetric(name, "lower"))
    for text in printed:
        found.on_output(text.encode())
    return found


def logged(tag: str, values: Sequence[tuple[int, float]], count: int = 0) -> MetricLogged:
    return MetricLogged(tag, count or len(values), [*values], [*values], ["lr"])


def test_a_logged_value_comes_before_a_printed_one() -> None:
    looking = finder("val_loss: 0.31\n")
    looking.on_logged(logged("val_loss", [(10, 0.4), (20, 0.3), (30, 0.3125)]))
    found = looking.found([], is_final=True)
    assert (found.source, found.last, found.best, found.best_at) == ("logged", 0.3125, 0.3, 20)
    assert (found.counted_in, found.at) == ("step", [10, 20, 30])


def test_logged_values_arrive_with_gaps() -> None:
    looking = finder()
    looking.on_logged(logged("val_loss", [(1, 0.5)], count=1))
    looking.on_logged(logged("val_loss", [(4_000, 0.25)], count=4_000))
    found = looking.found([], is_final=True)
    assert (found.count, found.values) == (4_000, [0.5, 0.25])


def test_what_the_hook_reports_has_a_name() -> None:
    epochs = [Epoch(0, 0.0, 1.0, None, None, 0.5), Epoch(1, 1.0, 1.0, None, None, 0.25)]
    found = finder(name="train_loss").found(epochs, is_final=True)
    assert (found.source, found.last, found.best_at, found.counted_in) == (
        "reported",
        0.25,
        2,
        "epoch",
    )


def test_several_meanings_are_no_value() -> None:
    found = finder("train loss 0.5, val loss 0.6\n", name="loss").found([], is_final=True)
    assert (found.last, found.candidates) == (None, ["train loss", "val loss"])


def test_a_figure_that_is_missing_leaves_the_other_names() -> None:
    looking = finder("acc: 0.5\n")
    looking.on_logged(logged("", []))
    found = looking.found([], is_final=True)
    assert (found.source, found.others) == (None, ["lr", "acc"])
