"""Which values of a figure are found in what a command prints."""

from __future__ import annotations

import math
import time

import pytest

from trainmark.execute.parent.metric_series import MOST_VALUES
from trainmark.execute.parent.printed_metric import PrintedMetric
from trainmark.record.named_metric import WantedMetric


def read(name: str, *parts: str) -> PrintedMetric:
    printed = PrintedMetric(WantedMetric(name, "lower"))
    for part in parts:
        printed.feed(part.encode())
    printed.close()
    return printed


def last(name: str, text: str) -> float | None:
    (series,) = read(name, text).matches.values()
    return series.last


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("val_loss: 0.31", 0.31),
        ("val_loss=0.31, lr=0.1", 0.31),
        ("val_loss 0.31 s 4", 0.31),
        ("{'loss': 2.0, 'val_loss': 0.31}", 0.31),
        ('{"val_loss": "0.31"}', 0.31),
        ("val_loss: 1e-3", 0.001),
        ("val_loss -> -1.5", -1.5),
        ("val_loss: 1,234.5", 1234.5),
        ("val_loss: tensor(0.31, device='cuda:0')", 0.31),
        ("│   val_loss   │   0.31   │", 0.31),
        ("\x1b[1mval_loss\x1b[0m: \x1b[32m0.31\x1b[0m", 0.31),
        ("loss: 0.5 - val_loss: 0.31\x08\x08", 0.31),
        ("val_loss: inf", math.inf),
        ("val_loss: 31.5%", 31.5),
        ("val_loss: 31/100 (31%)", 0.31),
        ("The val_loss is 1. val_loss: 0.31.", 0.31),
    ],
)
def test_forms_of_a_printed_value(text: str, value: float) -> None:
    assert last("val_loss", text) == value


def test_nan_is_a_value() -> None:
    assert math.isnan(last("loss", "loss: nan") or 0.0)


@pytest.mark.parametrize(
    "text", ["val_loss: 0.3", "losses: 0.3", "loss_of_critic 0.3", "loss2: 0.3", "loss fell to 0.3"]
)
def test_a_part_of_another_word_is_not_the_name(text: str) -> None:
    assert not read("loss", text).matches


@pytest.mark.parametrize("text", ["0,31", "12ms", "n/a", "None", "1.2.3", "0.3/0.5"])
def test_what_is_no_plain_number_is_left_out(text: str) -> None:
    found = read("loss", f"loss: {text}")
    assert not found.matches
    assert found.not_numbers


def test_a_bar_ends_its_lines_by_a_carriage_return() -> None:
    bar = "Epoch 1:  50%|#  | 1/2 [00:01<00:01, loss=0.5]\rEpoch 2: 100%|##| 2/2 [loss=0.25]\r"
    (series,) = read("loss", bar).matches.values()
    assert (series.count, series.last, series.at, series.counted_in) == (2, 0.25, [1, 2], "epoch")


def test_a_value_may_arrive_in_parts() -> None:
    (series,) = read("loss", "los", "s: 0.", "31\nloss: 0", ".3").matches.values()
    assert series.values == [0.31, 0.3]


def test_the_same_letters_come_first() -> None:
    found = read("Loss", "loss: 1\nLoss: 2\nval Loss: 3")
    assert {name: series.last for name, series in found.matches.items()} == {"Loss": 2}
    assert last("loss", "LOSS: 1") == 1


def test_words_before_the_name_belong_to_it() -> None:
    line = "step 250: train loss 2.39, val loss 2.41"
    assert last("val loss", line) == 2.41
    assert {*read("loss", line).matches} == {"train loss", "val loss"}
    assert last("loss", "Average loss: 0.5") == 0.5


def test_with_other_capital_letters_longer_names_may_be_meant() -> None:
    found = read("loss", "Loss: 1\nAverage loss: 2")
    assert {*found.matches} == {"Loss", "Average loss"}


def test_counts_and_levels_of_logging_belong_to_no_name() -> None:
    lines = ["Epoch1 loss 0.3", "Epoch2 loss 0.2", "step10 loss 0.1", "INFO loss 0.05"]
    (found,) = read("loss", "\n".join(lines)).matches.items()
    assert (found[0], found[1].values) == ("loss", [0.3, 0.2, 0.1, 0.05])
    lines = ["INFO train epoch1 loss 0.3", "INFO val epoch1 loss 0.4"]
    assert {*read("loss", "\n".join(lines)).matches} == {"train loss", "val loss"}


def test_a_number_may_tell_figures_apart() -> None:
    found = read("accuracy", "top1 accuracy 0.5, top5 accuracy 0.9")
    assert {*found.matches} == {"top1 accuracy", "top5 accuracy"}


@pytest.mark.parametrize("printed", ["PRÄZISION: 0.5", "präzision: 0.5", "Präzision 0.5"])
def test_a_name_may_have_any_letters(printed: str) -> None:
    assert last("PRÄZISION", printed) == 0.5


def test_in_a_long_line_the_values_next_to_the_name_are_found() -> None:
    filler = "other 1 " * 10_000
    assert last("loss", f"loss: 0.6 {filler}loss: 0.5 {filler}\n") == 0.5


def test_of_many_values_the_best_and_the_last_are_known() -> None:
    values = [*range(3 * MOST_VALUES, 0, -1), 7]
    (series,) = read("loss", *(f"step {n}: loss {n}\n" for n in values)).matches.values()
    assert (series.count, series.last, series.best, series.best_at) == (len(values), 7, 1, 1)
    assert MOST_VALUES < len(series.values) < MOST_VALUES + 100


def test_the_other_names_are_listed() -> None:
    found = read("fid", "Epoch: 1, train loss 2.5, 'val_acc': 0.5\n")
    assert found.others() == ["Epoch", "train loss", "val_acc"]


@pytest.mark.parametrize(
    "text",
    [
        "x" * 400_000,
        "a b " * 100_000,
        "loss " * 100_000,
        "loss 1 " * 15_000,
        "1" * 200_000,
        "loss" + " " * 100_000,
        "loss" + " " * 100_000 + "x",
        "loss: " + "1" * 100_000 + "x",
        "loss: 1." + "1" * 100_000 + "x",
        "loss: 1" + ",111" * 25_000 + "x",
        "loss: 1e" + "1" * 100_000 + "x",
        "loss: 1" + " " * 100_000,
        "loss: 1/" + "1" * 100_000 + "x",
        "loss: " + "a" * 100_000,
        "loss: 1 step" + " " * 100_000,
        "loss: 1 step " + "1" * 100_000 + ",",
        "loss: 1 \x1b[" + "0" * 100_000,
        "loss: 1 " + "\x1b]" * 50_000,
    ],
)
def test_the_time_for_hostile_output_grows_with_its_length(text: str) -> None:
    start = time.process_time()
    found = read("loss", text, "\n")
    assert len(found.others()) <= 20
    assert time.process_time() - start < 5
