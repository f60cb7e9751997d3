"""What users of other tools type, and what they mistype: the answer names the right option or
value."""

from __future__ import annotations

import shlex
from pathlib import Path

import pytest

from trainmark.cli.main import run

MISTAKES = (
    ("rnu", "run"),
    ("bench", "Use run"),
    ("benchmark", "Use run"),
    ("train", "Use run"),
    ("time python train.py", "measure"),
    ("diff a b", "compare"),
    ("check", "doctor"),
    ("reprot", "report"),
    ("compair", "compare"),
    ("run --lr 0.1", "sweep WORKLOAD --grid learning_rate"),
    ("run --learning-rate 0.1", "learning_rate"),
    ("run --batch-size 64", "--grid batch_size"),
    ("run --bs 64", "batch_size"),
    ("run --optimizer adam", "TOML"),
    ("run --warmup 3", "Not needed"),
    ("measure --warmup 3 -- true", "Not needed"),
    ("run --min-runs 3", "--budget"),
    ("run --max-runs 3", "--budget"),
    ("run --gpu", "--device gpu"),
    ("run --cpu", "--device cpu"),
    ("run --gpus 2", "trainmark scale"),
    ("run --amp", "--precision"),
    ("run --fp16", "--precision"),
    ("run --framework torch", "--backend"),
    ("run --model mnist-cnn", "trainmark run mnist-cnn"),
    ("run --workload mnist-cnn", "trainmark run mnist-cnn"),
    ("run --backnd torch", "--backend"),
    ("run --devices cpu", "--device"),
    ("run --epoch 3", "--epochs"),
    ("run --thread 2", "--threads"),
    ("run --repeat 3", "--repeats"),
    ("run --steps ten", "integer"),
    ("run --runs 0", "1<=x"),
    ("run --margin inf", "inf is not a finite number"),
    ("predict x.json --temperature nan", "'--temperature': nan is not a finite number"),
    ("run mnist-mlp51", "mnist-mlp512"),
    ("run mnist_cnn", "mnist-cnn"),
    ("run --backend pytorh", "torch"),
    ("run --style fats --backend numpy", "fast"),
    ("run --until 0.98", "test_accuracy>=0.98"),
    ("run --price 2.49", "DEVICE=PER_HOUR"),
    ("measure --prepare make -- true", "sh -c"),
    ("measure -L n 1 -- true", "--vary"),
    ("measure", "COMMAND"),
    ("compare --fail-bellow 0.9", "--fail-below"),
    ("compare nothing-here", "no records at nothing-here"),
    ("compare --format jsn .", "json"),
    ("doctor --al", "--all"),
    ("show mnist-cn", "mnist-cnn"),
    ("help rnu", "run"),
    ("explain train.py", "trainmark measure -- python train.py"),
    ("explain python train.py", "trainmark explain -- python train.py"),
    ("explain .", "trainmark compare ."),
    ("show python-net.toml", "python-net.toml can't be read"),
    ("run resnet50 --size with=3", "Did you mean width?"),
    ("parity shakespeare-gpt --size width=64,crop=9", "a workload with text, not images"),
    (
        "run shakespeare-gpt --published --size width=64",
        "--size can't be combined with --published",
    ),
)


@pytest.mark.parametrize(("typed", "answer"), MISTAKES)
def test_the_answer_names_what_was_meant(
    typed: str,
    answer: str,
    capsys: pytest.CaptureFixture[str],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.chdir(tmp_path)
    assert run(shlex.split(typed)) == 2
    err = capsys.readouterr().err
    assert answer in err
    assert err.startswith("trainmark: "), "one style of error"
    assert err.count("\n") == 1, "one line"


def test_a_missing_value(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["explain", "--seconds", "--", "python", "train.py"]) == 2
    assert capsys.readouterr().err == "trainmark: option '--seconds' requires an argument\n"


@pytest.mark.parametrize("flag", ["--repeats", "-n", "--runs", "--rounds"])
def test_rounds_by_any_name(flag: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["config", "run", flag, "7"]) == 0
    line = next(line for line in capsys.readouterr().out.splitlines() if "--repeats" in line)
    assert line.split()[2:] == ["7", "command", "line"]


def test_version_and_help(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["-V"]) == run(["--version"]) == 0
    first, second = capsys.readouterr().out.splitlines()
    assert first == second
    assert run(["help", "run"]) == run(["run", "--help"]) == 0
    out = capsys.readouterr().out
    assert out[: len(out) // 2] == out[len(out) // 2 :]
