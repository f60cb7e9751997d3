"""Steps that take longer and longer, or more and more memory: by how much, and how long later."""

from __future__ import annotations

from dataclasses import replace

from trainmark.record.observed import Observed
from trainmark.report.growth import growth_sentences

TIMES = tuple((float(step), 0.001 + step * 1e-5, 32.0) for step in range(1, 1000, 10))
SEEN = Observed("torch", (), steps=1000, seconds=10.0, step_times=TIMES)


def test_a_growth_is_continued_to_the_last_step_that_is_planned() -> None:
    (first,) = growth_sentences(SEEN)
    assert first.startswith("On average, each step takes 10.0 µs longer than the one before")
    assert first.endswith("after 991 steps, and about 100 ms after 9,910, if this goes on.")
    (planned,) = growth_sentences(replace(SEEN, planned_steps=20_000))
    assert planned.endswith(
        "and about 100 ms after 9,910, about 201 ms in the last step, number 20,000, if this goes "
        "on."
    )
    (over,) = growth_sentences(replace(SEEN, planned_steps=500))
    assert over == first, "it went on for longer than the framework has planned"


def test_a_growth_of_memory_is_continued_to_the_last_step_of_an_earlier_run() -> None:
    memory = tuple((step, 3e8 + step * 1e6, None) for step in range(1, 1000, 10))
    (only,) = growth_sentences(replace(SEEN, step_times=(), step_memory=memory), last=5000)
    assert only == (
        "The private memory of the training process grows by 977 KiB with each step: 335 MiB at "
        "the start, 1.20 GiB after 991 steps, and about 4.94 GiB in the last step, number 5,000, "
        "if this goes on."
    )


def test_what_stays_the_same_has_no_sentence() -> None:
    same = tuple((step, 0.001, 32.0) for step, _, _ in TIMES)
    assert not list(growth_sentences(replace(SEEN, step_times=same)))
