"""``trainmark measure`` sees the steps of unchanged scripts of Keras and JAX, and their losses stay
the same."""

from __future__ import annotations

import re
import shlex
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.end_to_end.command import CommandLine
from tests.slow import slow
from trainmark.record.observed import Observed
from trainmark.record.record import Epoch

SCRIPTS = Path(__file__).parent / "own_scripts"
Seen = Callable[..., tuple[list[Epoch], Observed, str]]


@pytest.fixture
def seen(command: CommandLine, tmp_path: Path) -> Seen:
    """Measure a script; returns its epochs, what was observed, and what it printed."""

    def measured(*words: str, options: tuple[str, ...] = ()) -> tuple[list[Epoch], Observed, str]:
        printed = tmp_path / "printed"
        line = (
            f"exec {shlex.join([sys.executable, str(SCRIPTS / words[0]), *words[1:]])} > "
            f"{shlex.quote(str(printed))}"
        )
        _, _, err = command.run(
            "measure", "--out", str(command.out), "--repeats", "1", *options, "--", "sh", "-c", line
        )
        (record,) = command.records()
        assert record.observed is not None, (err, record.outcome)
        assert not [
            what for what in record.observed.injected if what.startswith(("not ", "turned off"))
        ]
        return record.epochs, record.observed, printed.read_text()

    return measured


def plain(*words: str) -> str:
    """Return the output of a script without an observer."""
    return subprocess.run(
        [sys.executable, str(SCRIPTS / words[0]), *words[1:]],
        capture_output=True,
        text=True,
        check=True,
    ).stdout


def numbers(printed: str, name: str) -> list[float]:
    """Return the numbers in the lines that begin with a name."""
    return [
        float(each)
        for line in re.findall(rf"^{name} (.*)$", printed, re.MULTILINE)
        for each in line.split()
    ]


def check_fit(epochs: list[Epoch], observed: Observed, printed: str, at_once: int) -> None:
    """Check a fit of two epochs with 297 examples in batches of 20, of which the first step is not
    timed."""
    assert (observed.framework, observed.steps, observed.examples_per_step) == ("keras", 30, 19.8)
    assert [(each.steps, each.examples) for each in epochs] == [
        (15 - at_once, 297 - 20 * at_once),
        (15, 297),
    ]
    assert [each.train_loss for each in epochs] == numbers(printed, "loss")
    assert [each.train_accuracy for each in epochs] == numbers(printed, "accuracy")
    assert [each.test_loss for each in epochs] == numbers(printed, "val_loss")
    assert [each.test_accuracy for each in epochs] == numbers(printed, "val_accuracy")
    assert (len(observed.losses), observed.evaluations) == (30, 3)
    assert observed.planned_steps == 30
    for losses, loss in zip(
        (observed.losses[:15], observed.losses[15:]), numbers(printed, "loss"), strict=True
    ):
        assert (sum(losses[:-1]) * 20 + losses[-1] * 17) / 297 == pytest.approx(
            loss, rel=1e-5 if at_once == 1 else 0.02
        )
    script = (SCRIPTS / "keras_convnet.py").read_text().splitlines()
    assert {
        name: script[int(at.rpartition(":")[2]) - 1].split("(")[0]
        for name, at in observed.places.items()
    } == {
        "model": "model = keras.Sequential",
        "optimizer": "model.compile",
        "fit": "history = model.fit",
        "evaluation": "history = model.fit",
        "evaluation_2": "print",
        "optimizer_step": "history = model.fit",
        **(
            dict.fromkeys(("loader", "loading", "backward"), "history = model.fit")
            if "torch" in observed.injected
            else {}
        ),
    }


@pytest.mark.parametrize(
    ("engine", "at_once"), [slow("tensorflow", 4), slow("jax", 1), ("torch", 1)]
)
def test_fit_of_keras(
    seen: Seen, monkeypatch: pytest.MonkeyPatch, engine: str, at_once: int
) -> None:
    pytest.importorskip("keras")
    pytest.importorskip(engine)
    monkeypatch.setenv("KERAS_BACKEND", engine)
    epochs, observed, printed = seen("keras_convnet.py", str(at_once))
    check_fit(epochs, observed, printed, at_once)
    assert (observed.loader_wait_seconds is None) == (engine == "tensorflow")
    if engine == "tensorflow":
        assert printed == plain("keras_convnet.py", str(at_once))


def test_loops_of_ones_own_in_keras(seen: Seen, monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("keras")
    pytest.importorskip("tensorflow")
    monkeypatch.setenv("KERAS_BACKEND", "tensorflow")
    epochs, observed, printed = seen("keras_loop.py")
    assert observed.losses == numbers(printed, "loss")
    assert (observed.framework, len(observed.losses), observed.evaluations) == ("keras", 70, 9)
    assert observed.steps == 70 + 7, "the last seven are those of a loop within a tf.function"
    assert observed.examples_per_step == pytest.approx(
        numbers(printed, "examples")[0] / observed.steps
    )
    assert [(each.steps, each.examples) for each in epochs[:3]] == [(6, 84), (7, 100), (7, 100)]
    assert sorted(observed.syncs.values()) == [3, 9, 63]


@pytest.mark.parametrize(
    ("script", "steps", "examples", "evaluations"),
    [("jax_fused.py", 24, 15, 3), ("jax_split.py", 25, 8, 0)],
)
def test_steps_of_jax(seen: Seen, script: str, steps: int, examples: int, evaluations: int) -> None:
    pytest.importorskip("jax")
    _, observed, printed = seen(script)
    assert (observed.framework, observed.steps, observed.examples_per_step) == (
        "jax",
        steps,
        examples,
    )
    assert (observed.losses, observed.evaluations) == (numbers(printed, "loss"), evaluations)
    assert printed == plain(script)
    line = (
        (SCRIPTS / script)
        .read_text()
        .splitlines()[int(observed.places["step"].rpartition(":")[2]) - 1]
    )
    assert line.startswith(("@partial(jax.jit", "@jax.jit"))


def test_a_training_of_jax_ends_early(seen: Seen) -> None:
    pytest.importorskip("jax")
    _, observed, printed = seen("jax_split.py", options=("--steps", "10"))
    assert (observed.steps, observed.ended_early) == (10, True)
    assert observed.losses[:9] == numbers(printed, "loss")


def test_changes_of_keras_take_effect(seen: Seen, monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("keras")
    pytest.importorskip("tensorflow")
    names = ("same-batch", "jit", "steps-per-execution=4", "mixed-bf16")
    monkeypatch.setenv("KERAS_BACKEND", "tensorflow")
    monkeypatch.setenv("TRAINMARK_CHANGES", ",".join(names))
    epochs, observed, _ = seen("keras_convnet.py")
    assert (set(observed.changed), observed.failed) == (set(names), {})
    assert (observed.steps, observed.precision, [each.steps for each in epochs]) == (
        30,
        "bfloat16",
        [11, 15],
    )
    assert observed.losses[0] == observed.losses[3] != observed.losses[4]


@pytest.mark.slow
def test_steps_of_keras_on_jax_count_with_the_same_batch(
    seen: Seen, monkeypatch: pytest.MonkeyPatch
) -> None:
    pytest.importorskip("keras")
    pytest.importorskip("jax")
    monkeypatch.setenv("KERAS_BACKEND", "jax")
    monkeypatch.setenv("TRAINMARK_CHANGES", "same-batch")
    _, observed, _ = seen("keras_convnet.py")
    assert (set(observed.changed), observed.steps) == ({"same-batch"}, 30)
