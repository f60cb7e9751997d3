from __future__ import annotations

import inspect
import math

import pytest

from trainmark import errors
from trainmark.errors import TrainingDiverged, TrainmarkError, UnknownName, UsageError


@pytest.mark.parametrize(
    ("parts", "text"),
    [
        ({}, "the cup is wrong"),
        ({"expected": "tea"}, "the cup is wrong: expected tea"),
        ({"found": "soup"}, "the cup is wrong: found soup"),
        ({"expected": "tea", "found": "soup"}, "the cup is wrong: expected tea, found soup"),
        ({"fix": "Pour again."}, "the cup is wrong. Pour again."),
        ({"expected": "tea", "fix": "Pour again."}, "the cup is wrong: expected tea. Pour again."),
    ],
)
def test_a_message_has_expected_found_and_fix(parts: dict[str, str], text: str) -> None:
    assert str(TrainmarkError("the cup is wrong", **parts)) == text


def test_an_unknown_name_suggests_the_nearest_and_lists_all() -> None:
    error = UnknownName("workload", "mnist-mlp33", ["mnist-mlp32", "cifar10-cnn"])
    assert str(error) == (
        "unknown workload 'mnist-mlp33': expected one of cifar10-cnn, mnist-mlp32. Did you mean "
        "mnist-mlp32?"
    )
    assert error.near == ("mnist-mlp32",)
    assert isinstance(error, UsageError)


@pytest.mark.parametrize(
    ("name", "near"),
    [
        ("lr", "learning_rate"),  # its initials
        ("wd", "weight_decay"),
        ("optimizer.lr", "optimizer.learning_rate"),
        ("batch", "batch_size"),  # its beginning
        ("decay", "weight_decay"),  # a part of it
        ("momentun", "momentum"),
    ],
)
def test_a_shortened_name_is_similar(name: str, near: str) -> None:
    known = [
        "learning_rate",
        "weight_decay",
        "batch_size",
        "momentum",
        "hidden",
        "optimizer.learning_rate",
    ]
    assert UnknownName("key", name, known).near[0] == near


@pytest.mark.parametrize("name", ["l", "x", "ra", "toaster"])
def test_one_or_two_letters_of_a_name_are_not_similar(name: str) -> None:
    assert UnknownName("key", name, ["learning_rate", "weight_decay"]).near == ()


def test_unknown_name_suggests_nothing_when_nothing_is_near() -> None:
    assert UnknownName("device", "toaster", ["cpu", "mps"]).fix == ""
    assert str(UnknownName("variant", "x", [])) == "unknown variant 'x'"


def test_known_names_from_a_generator_are_listed_in_order() -> None:
    assert (
        UnknownName("device", "c", (name for name in ("cuda:0", "cpu"))).expected
        == "one of cpu, cuda:0"
    )


@pytest.mark.parametrize(
    ("loss", "text"),
    [
        (math.nan, "loss is NaN at step 7"),
        (math.inf, "loss is infinite at step 7"),
        (-math.inf, "loss is infinite at step 7"),
    ],
)
def test_divergence_says_which_kind_and_where(loss: float, text: str) -> None:
    error = TrainingDiverged(7, loss, 0.25)
    assert str(error) == text
    assert (error.step, error.before) == (7, 0.25)


def test_the_tree_in_the_docstring_is_the_tree_of_classes() -> None:
    drawn = errors.__doc__ or ""
    for name, kind in inspect.getmembers(errors, inspect.isclass):
        if issubclass(kind, TrainmarkError):
            line = next(line for line in drawn.splitlines() if name in line.split())
            depth = line.index(name) // 4
            assert len(kind.__mro__) - len(TrainmarkError.__mro__) == depth, name
