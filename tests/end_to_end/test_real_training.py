"""Real frameworks train a real network through the command line."""

from __future__ import annotations

import importlib.util
import re
from pathlib import Path

import pytest

from tests.end_to_end.command import CommandLine
from tests.slow import slow
from trainmark.record.caveats import Caveat
from trainmark.workload import catalog

needs_torch = pytest.mark.skipif(
    not importlib.util.find_spec("torch"), reason="torch is not installed"
)


def arguments(command: CommandLine, workload: str, backend: str, *more: str) -> list[str]:
    return [
        "run",
        workload,
        "--backend",
        backend,
        "--dataset",
        "synthetic-digits",
        "--repeats",
        "1",
        "--budget",
        "0",
        "--out",
        str(command.out),
        *more,
    ]


def with_learning_rate(rate: str, folder: Path) -> str:
    """mnist-mlp128 with another learning rate, as a user's own file."""
    text = (Path(catalog.__file__).parent / "mnist-mlp128.toml").read_text("utf-8")
    own = folder / "own.toml"
    own.write_text(re.sub(r"learning_rate = \S+", f"learning_rate = {rate}", text))
    return str(own)


@pytest.mark.parametrize("backend", [slow("numpy"), pytest.param("torch", marks=needs_torch)])
def test_every_style_learns_the_digits_with_the_threads_and_precision_asked_for(
    command: CommandLine, backend: str
) -> None:
    code, out, _ = command.run(
        *arguments(command, "mnist-mlp128", backend, "--epochs", "2", "--threads", "1")
    )
    assert code == 0
    records = command.records()
    assert {record.backend.style for record in records} == (
        {"idiomatic", "fast"} if backend == "torch" else {"idiomatic"}
    )
    for record in records:
        assert record.final.test_accuracy is not None and record.final.test_accuracy > 0.9
        assert Caveat.NOT_LEARNING not in record.caveats
        assert record.epochs[1].train_accuracy > record.epochs[0].train_accuracy  # type: ignore[operator]
        assert record.threads == 1 and record.backend.settings["threads"] == 1
        if backend == "torch":
            assert record.backend.settings["float32_matmul_precision"] == "highest"
    assert len({record.model.initial_weights_sha256 for record in records}) == 1
    assert "not-learning" not in out


@pytest.mark.parametrize("backend", ["numpy", slow("torch")])
def test_a_learning_rate_that_diverges_is_recorded_as_such(
    command: CommandLine, backend: str, tmp_path: Path
) -> None:
    code, _, err = command.run(
        *arguments(command, with_learning_rate("1e12", tmp_path), backend, "--steps", "50")
    )
    assert code == 1
    for record in command.records():
        assert record.outcome.status == "diverged"
        step = record.outcome.step
        assert step is not None and record.outcome.loss_before == record.step_losses[step - 1]
        assert Caveat.NOT_LEARNING in record.caveats
    assert "diverged, loss is" in err


@pytest.mark.parametrize("backend", ["numpy", slow("torch")])
def test_a_rate_too_small_to_learn_has_a_caveat(
    command: CommandLine, backend: str, tmp_path: Path
) -> None:
    code, out, _ = command.run(
        *arguments(command, with_learning_rate("1e-12", tmp_path), backend, "--steps", "50")
    )
    assert code == 0
    assert all(Caveat.NOT_LEARNING in record.caveats for record in command.records())
    assert "not-learning" in out and "faster" not in out


@pytest.mark.slow
@needs_torch
def test_training_goes_on_from_saved_weights(command: CommandLine) -> None:
    command.run(
        *arguments(
            command, "mnist-mlp128", "torch", "--epochs", "1", "--style", "fast", "--save-weights"
        )
    )
    (first,) = command.records()
    record = command.out / f"{first.id}.json"
    code, *_ = command.run(
        *arguments(
            command,
            "mnist-mlp128",
            "torch",
            "--steps",
            "20",
            "--style",
            "fast",
            "--weights-from",
            str(record),
        )
    )
    assert code == 0
    second = command.records()[1]
    assert second.step_losses[0] < 0.5 < 2 < first.step_losses[0]


def test_the_published_protocol_and_its_figures(command: CommandLine, data_dir: Path) -> None:
    """The training of mnist-mlp32 as it was published, run by the fake: everything but the learning
    is real."""
    code, *_ = command.run(
        "run",
        "mnist-mlp32",
        "--published",
        "--backend",
        "fake",
        "--style",
        "fast",
        "--device",
        "cpu",
        "--data-dir",
        str(data_dir),
        "--out",
        str(command.out),
        fake={"step_seconds": 1e-5},
    )
    assert code == 0
    records = command.records()
    assert [record.published_run for record in records[::10]] == [
        f"benchmark {number}" for number in (1, 2, 3, 4)
    ]
    assert [len(record.epochs) for record in records[::10]] == [10, 20, 50, 200]
    assert all(
        record.protocol == "continued" and Caveat.CONTINUED in record.caveats for record in records
    )
    code, out, _ = command.run("compare", str(command.out), "--published")
    assert code == 0
    assert "after 50 and 60 steps, not after 10" in " ".join(out.split())
    assert "differs" in out and "88.08 %" in out
