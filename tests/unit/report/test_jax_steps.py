"""What is said about a script with JAX: where its time goes and why, without a promise."""

from __future__ import annotations

from dataclasses import replace

from trainmark.record.observed import Observed
from trainmark.report.jax_steps import jax_steps

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
        "Where the time goes: calls of the step 95 % (train.py:9), between steps 5 %."
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
    assert compiled.startswith("JAX compiled other functions after the first step, which took")


def test_reads_in_every_step_are_named_and_rare_ones_are_not() -> None:
    syncs = {"train.py:11 float()": 100, "train.py:30 .item()": 10}
    _, read = jax_steps(replace(SEEN, syncs=syncs))
    assert read.startswith("train.py:11 reads a result in nearly every step, by float().")


def test_much_time_between_steps_is_a_sentence() -> None:
    _, between = jax_steps(replace(SEEN, between_seconds=4.0))
    assert between.startswith("40 % of the time passes between the calls of the step")


def test_what_is_not_jitted_has_its_line() -> None:
    places = {"eager": "train.py:7", "outside": "train.py:9"}
    _, eager, outside = jax_steps(replace(SEEN, places=places))
    assert eager.startswith("The gradients at train.py:7 are computed outside of jax.jit")
    assert "outside of the jitted function at train.py:9" in outside
