"""The sentences about a script with JAX: where its time goes and why, without a promise."""

from __future__ import annotations

from dataclasses import replace

import pytest

from trainmark.record.observed import Observed
from trainmark.report.jax_steps import jax_steps
from trainmark.report.own_steps import parts

SEEN = Observed(
    "jax",
    (),
    steps=101,
    seconds=10.0,
    between_seconds=0.5,
    compile_seconds=0.0,
    places={"step": "train.py:9"},
    device="cpu:0",
)


def test_calls_of_the_step_are_a_part_of_the_time() -> None:
    assert jax_steps(SEEN) == [
        "Where the time goes: jitted step 95 % (train.py:9), outside of the jitted step 5 %."
    ]


def test_a_step_that_is_compiled_in_the_middle_has_its_line() -> None:
    places = {"step": "train.py:9", "compile": "train.py:20"}
    seen = replace(SEEN, compile_seconds=2.0, step_compiles=3, places=places)
    where, compiled = jax_steps(seen)
    assert "compiling 20 % (train.py:20)" in where
    assert compiled.startswith(
        "JAX compiled the step 3 more times after the first step (train.py:20), which took 2.0"
    )


def test_what_else_was_compiled_is_not_called_the_step() -> None:
    _, compiled = jax_steps(replace(SEEN, compile_seconds=2.0))
    assert compiled.startswith("JAX compiled after the first step, which took")


def test_reads_in_every_step_are_named_and_rare_ones_are_not() -> None:
    reads = {"train.py:11 float()": 100, "train.py:30 .item()": 10}
    syncs = {**reads, "train.py:40 float()": 500}  # in evaluations
    _, read = jax_steps(replace(SEEN, syncs=syncs, step_reads=reads))
    assert read.startswith("train.py:11 reads a result in nearly every step, by float().")


def test_much_time_between_steps_is_a_sentence() -> None:
    _, between = jax_steps(replace(SEEN, between_seconds=4.0))
    assert between.startswith("40 % of the time passes outside of the jitted step")


def test_reads_are_no_other_time_between_steps() -> None:
    assert len(jax_steps(replace(SEEN, between_seconds=4.0, sync_seconds=3.5))) == 1


def test_what_is_not_jitted_has_its_line() -> None:
    places = {"eager": "train.py:7", "outside": "train.py:9"}
    _, eager, outside = jax_steps(replace(SEEN, places=places))
    assert eager.startswith("The gradients at train.py:7 are computed outside of jax.jit")
    assert outside == (
        "The weights are changed or copied outside of jitted functions, one operation at a time; "
        "their gradients are computed at train.py:9."
    )


def test_no_time_is_counted_twice() -> None:
    seen = replace(
        SEEN,
        between_seconds=6.0,
        sync_seconds=4.0,
        loader_wait_seconds=1.0,
        compile_seconds=1.0,
        evaluation_seconds=2.0,
        evaluation_in_steps_seconds=2.0,
    )
    shares = {part.name: part.share for part in parts(seen)}
    assert shares["outside of the jitted step"] == pytest.approx(0.1)
    assert shares["jitted step"] == pytest.approx(0.1)
    assert sum(shares.values()) == pytest.approx(1.0)
