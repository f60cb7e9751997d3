"""A single command learns where the time of its steps goes, with shares that can be so."""

from __future__ import annotations

from dataclasses import replace

import pytest

from trainmark.record.observed import Observed
from trainmark.report.own_steps import own_steps, parts

SEEN = Observed(
    "torch",
    (),
    steps=101,
    seconds=10.0,
    loader_wait_seconds=1.0,
    forward_seconds=3.0,
    backward_seconds=4.0,
    optimizer_seconds=0.05,
    losses=[2.3, 1.2, 0.05],
    places={"loader": "train.py:5", "backward": "train.py:9"},
    device="cpu",
)


def test_the_largest_parts_come_first_with_their_lines() -> None:
    assert own_steps(SEEN) == [
        "The first loss was 2.300, the last one that was kept 0.05000.",
        "Where the time goes: backward 40 % (train.py:9), forward and loss 30 %, loader wait 10 % "
        "(train.py:5), at least 19 % elsewhere.",
    ]


def test_what_is_on_several_lines_names_them() -> None:
    places = {"backward": "a.py:9", "backward_2": "a.py:20", "backward_of": "a.py:1"}
    assert "backward 40 % (a.py:9, a.py:20)," in own_steps(replace(SEEN, places=places))[1]


def test_of_some_parts_only_the_beginning_is_known() -> None:
    """What follows a line, up to the next part, may be on many lines."""
    places = {"forward": "a.py:9", "evaluation": "a.py:20"}
    (_, where) = own_steps(replace(SEEN, places=places, evaluation_seconds=10.0, evaluations=2))
    assert "forward and loss 15 % (from a.py:9)" in where
    assert "evaluation 50 % (from a.py:20)" in where
    (_, of_jax) = own_steps(replace(SEEN, framework="jax", places=places, evaluation_seconds=10.0))
    assert "evaluation and what follows 50 % (from a.py:20)" in of_jax


def test_the_time_to_queue_something_on_a_gpu_says_nothing() -> None:
    on_gpu = replace(SEEN, device="cuda:0", sync_seconds=2.0, no_grad_seconds=1.0)
    assert [part.name for part in parts(on_gpu)] == ["loader wait", "waiting for the GPU"]
    assert "elsewhere" not in " ".join(own_steps(on_gpu)), "what the GPU does is not known"


def test_little_time_elsewhere_is_not_named() -> None:
    whole = replace(SEEN, forward_seconds=4.8)
    assert "elsewhere" not in " ".join(own_steps(whole))


def test_a_rare_evaluation_is_a_share_of_all_of_the_time() -> None:
    (_, where) = own_steps(replace(SEEN, evaluation_seconds=10.0, evaluations=2))
    assert "evaluation 50 %" in where
    assert "backward 20 %" in where


def test_what_is_unknown_has_its_reason() -> None:
    unknown = replace(SEEN, unknown={"examples_per_step": "no loader and no network was seen"})
    assert own_steps(unknown)[-1] == (
        "Examples per step: unknown, since no loader and no network was seen."
    )


@pytest.mark.parametrize("losses", [[], [1.0]])
def test_one_loss_shows_no_learning(losses: list[float]) -> None:
    assert "loss was" not in " ".join(own_steps(replace(SEEN, losses=losses)))


def test_several_ranks_are_named() -> None:
    assert "Examples and losses are those of rank 0 of 2." in own_steps(replace(SEEN, ranks=2))


def test_several_trainings_are_counted() -> None:
    sentences = own_steps(replace(SEEN, training_starts=(0, 30, 60)))
    assert "3 trainings in one process." in sentences
    assert not any("loss was" in each for each in sentences), "they are of several"
