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
        "(train.py:5).",
    ]


def test_what_is_on_several_lines_names_them() -> None:
    places = {"backward": "a.py:9", "backward_2": "a.py:20", "backward_of": "a.py:1"}
    assert "backward 40 % (a.py:9, a.py:20)," in own_steps(replace(SEEN, places=places))[1]


def test_the_time_to_queue_something_on_a_gpu_says_nothing() -> None:
    on_gpu = replace(SEEN, device="cuda:0", sync_seconds=2.0, no_grad_seconds=1.0)
    assert [part.name for part in parts(on_gpu)] == ["loader wait", "waiting for the GPU"]


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


def test_a_growth_comes_first() -> None:
    times = tuple((float(step), 0.001 + step * 1e-5, 32.0) for step in range(1, 1000, 10))
    first = own_steps(replace(SEEN, step_times=times))[0]
    assert first.startswith("On average, each step takes 10.0 µs longer than the one before")
    assert first.endswith("if this goes on.")
    planned = own_steps(replace(SEEN, step_times=times, planned_steps=20_000))[0]
    assert planned.endswith("if this goes on; 201 ms in the last step, number 20,000.")
    over = own_steps(replace(SEEN, step_times=times, planned_steps=500))[0]
    assert over == first, "it went on for longer than the framework has planned"


def test_a_growth_of_memory_comes_before_the_learning() -> None:
    memory = tuple((step, 3e8 + step * 1e6, None) for step in range(1, 1000, 10))
    first, second, *_ = own_steps(replace(SEEN, step_memory=memory), last=5000)
    assert first == (
        "The memory of the training process grows by 977 KiB with each step: 335 MiB at the start, "
        "1.20 GiB after 991 steps, and about 9.51 GiB after 9,910 if this goes on; 4.94 GiB in the "
        "last step, number 5,000."
    )
    assert second.startswith("The first loss")


def test_several_ranks_are_named() -> None:
    assert "Examples and losses are those of rank 0 of 2." in own_steps(replace(SEEN, ranks=2))


def test_several_trainings_are_counted() -> None:
    sentences = own_steps(replace(SEEN, training_starts=(0, 30, 60)))
    assert "3 trainings in one process." in sentences
    assert not any("loss was" in each for each in sentences), "they are of several"
