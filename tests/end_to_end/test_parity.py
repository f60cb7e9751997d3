"""``trainmark parity`` as a person starts it: fresh processes, the exit code, and backends with
planted mistakes."""

from __future__ import annotations

import json
import os
import signal
from pathlib import Path
from typing import Any

import pytest

from tests.end_to_end.command import CommandLine, alive, measured, wait_until
from tests.slow import slow
from trainmark.record.checks import PARTS

MISTAKES = '''
"""PyTorch with one mistake each."""

import dataclasses

import torch

from trainmark.backends.torch import optimizers
from trainmark.backends.torch.backend import TorchBackend


class WrongScale(TorchBackend):
    """Pixels are divided by 256 instead of 255."""

    def trainer(self, workload, model, data, options):
        scaled = dataclasses.replace(workload.input, divide_by=256)
        return super().trainer(dataclasses.replace(workload, input=scaled), model, data, options)


class WrongRate(TorchBackend):
    """The learning rate is 1 % too high."""

    def trainer(self, workload, model, data, options):
        rate = 1.01 * workload.optimizer.learning_rate
        faster = dataclasses.replace(workload.optimizer, learning_rate=rate)
        workload = dataclasses.replace(workload, optimizer=faster)
        return super().trainer(workload, model, data, options)


class RootOfSum(torch.optim.Optimizer):
    """RMSprop that divides by the root of v + epsilon instead of the root of v, plus epsilon."""

    def __init__(self, spec, network, **_):
        super().__init__(network.parameters(), {"lr": spec.learning_rate})
        self.spec = spec

    @torch.no_grad()
    def step(self, closure=None):
        for weight in self.param_groups[0]["params"]:
            state = self.state[weight]
            state.setdefault("step", torch.zeros(())).add_(1)
            v = state.setdefault("square_avg", torch.zeros_like(weight))
            v.mul_(self.spec.rho).addcmul_(weight.grad, weight.grad, value=1 - self.spec.rho)
            weight.sub_(self.spec.learning_rate * weight.grad / (v + self.spec.epsilon).sqrt())


class WrongEpsilon(TorchBackend):
    """Its RMSprop has the epsilon inside the root."""

    def trainer(self, workload, model, data, options):
        optimizers.build = RootOfSum
        return super().trainer(workload, model, data, options)
'''


@pytest.fixture
def _torch() -> None:
    pytest.importorskip("torch", reason="torch is not installed")


@pytest.fixture
def mistaken(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, _torch: None) -> None:
    """An installed distribution with three backends that are wrong in one thing each."""
    (tmp_path / "mistakes.py").write_text(MISTAKES)
    folder = tmp_path / "mistakes-1.0.dist-info"
    folder.mkdir()
    (folder / "METADATA").write_text("Metadata-Version: 2.1\nName: mistakes\nVersion: 1.0\n")
    (folder / "entry_points.txt").write_text(
        "[trainmark.backends]\n"
        "wrong-scale = mistakes:WrongScale\n"
        "wrong-rate = mistakes:WrongRate\n"
        "wrong-epsilon = mistakes:WrongEpsilon\n"
    )
    monkeypatch.setenv(
        "PYTHONPATH",
        os.pathsep.join([str(tmp_path), *filter(None, [os.environ.get("PYTHONPATH")])]),
    )


def parity(*arguments: str, workload: str = "mnist-mlp128") -> list[str]:
    return ["parity", workload, "--dataset", "synthetic-digits", "--threads", "1", *arguments]


def in_process(command: CommandLine, *arguments: str) -> dict[str, Any]:
    """Return the results of a parity of real backends, with the time that a busy machine may
    need."""
    process = command.start(*arguments, "--json")
    try:
        out, err = process.communicate(timeout=280)
    finally:
        process.kill()
    assert process.returncode in (0, 1), err
    found: dict[str, Any] = json.loads(out)
    assert (process.returncode == 0) is all(side["passed"] for side in found["sides"])
    return found


def test_one_side_is_enough_and_leaves_nothing(command: CommandLine) -> None:
    code, out, err = command.run(*parity("--backend", "numpy"))
    assert code == 0, err
    assert "PASS: 1 side computes the same as the reference." in out
    assert "numpy idiomatic cpu" in out and "Losses of a free training" in out
    assert not command.out.exists()


def test_json_alone_on_stdout_with_every_key(command: CommandLine) -> None:
    arguments = parity("--backend", "numpy,fake", "--steps", "8", "--seed", "3", "--json")
    code, out, _ = command.run(*arguments, fake={"noise": "hello\n"})
    assert code == 1, "the fake computes nothing"
    found = json.loads(out)
    assert {
        key: found[key] for key in ("workload", "dataset", "precision", "seed", "left_out")
    } == {
        "workload": "mnist-mlp128",
        "dataset": "synthetic-digits",
        "precision": "fp32",
        "seed": 3,
        "left_out": [],
    }
    assert found["pairs"] == [{"a": "numpy idiomatic cpu", "b": "fake fast cpu", "passed": False}]
    real, fake = found["sides"]
    assert real["title"] == "numpy idiomatic cpu"
    assert (
        real["passed"]
        and real["mistake"] is None
        and real["trouble"] is None
        and real["notes"] == []
    )
    assert real["shares"].keys() == set(PARTS) - {"dropout"}, "it has none"
    assert all(0 <= share <= 1 for share in real["shares"].values())
    assert [step["step"] for step in real["steps"]] == [*range(10), None, None]
    assert len(real["losses"]) == 8
    assert not fake["passed"] and fake["shares"].keys() == {"loss", "order"}
    assert "can't set and read its state" in fake["notes"][0]
    mistake = fake["mistake"]
    assert (mistake["part"], mistake["step"]) == ("loss", 0)
    assert mistake["check"]["error"] > mistake["check"]["bound"] > 0
    assert mistake["suspects"]


def test_styles_and_devices_multiply_and_what_is_not_there_is_left_out(
    command: CommandLine,
) -> None:
    sides = ("--backend", "numpy,fake", "--style", "fast,idiomatic", "--device", "cpu,cuda:0")
    code, out, err = command.run(*parity(*sides, "--json"), fake={"step_seconds": 0.0})
    assert code == 1, err
    found = json.loads(out)
    assert len(found["sides"]) == 1 + 4 and len(found["pairs"]) == 10
    assert any("numpy" in sentence for sentence in found["left_out"])


@pytest.mark.parametrize(
    ("fake", "said"),
    [
        ({"fail": "raise"}, "RuntimeError: the fake was asked to fail"),
        slow({"fail": "kill"}, "the process was killed by SIGKILL"),
        slow({"fail": "hang"}, "exceeded --timeout"),
    ],
    ids=["raise", "kill", "hang"],
)
def test_a_side_that_fails_leaves_the_others_checked(
    command: CommandLine, fake: dict[str, Any], said: str
) -> None:
    code, out, _ = command.run(
        *parity("--backend", "fake,numpy", "--timeout", "60", "--json"), fake=fake
    )
    assert code == 1
    failed, checked = json.loads(out)["sides"]
    assert not failed["passed"] and said in failed["trouble"]
    assert checked["passed"] and checked["shares"]


def test_a_loss_that_is_not_finite_is_a_mistake(command: CommandLine) -> None:
    code, out, _ = command.run(*parity("--backend", "fake", "--json"), fake={"fail": "nan"})
    assert code == 1
    (side,) = json.loads(out)["sides"]
    assert (side["mistake"]["part"], side["mistake"]["check"]["error"]) == ("loss", "inf")
    assert side["steps"][0]["loss"] == side["losses"][0] == "nan", "the NaN itself is kept"


def test_ctrl_c_leaves_no_process(command: CommandLine, tmp_path: Path) -> None:
    trains = tmp_path / "trains"
    process = command.start(
        *parity("--backend", "fake"), fake={"step_seconds": 1.0, "needs_all_of": str(trains)}
    )
    wait_until(trains.exists)
    children = wait_until(lambda: measured(process.pid))
    process.send_signal(signal.SIGINT)
    out, err = process.communicate(timeout=120)
    assert process.returncode == 130, err
    assert out == "" and "Traceback" not in err
    assert not alive(children)


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["--backend", "numpy", "--style", "fast"], "numpy on cpu does not have the style 'fast'"),
        (["--backend", "fake,nunpy"], "Did you mean numpy"),
        (["--backend", "fake", "--style", "fast,idomatic"], "Did you mean idiomatic"),
        (["--backend", "fake", "--device", "cpu,cuda:7"], "does not see the device 'cuda:7'"),
        (
            ["--backend", "fake", "--device", "cpu,cuda:0", "--precision", "fp46"],
            "unknown precision",
        ),
        (["--backend", "fake,fake@old"], "unknown interpreter label 'old'"),
        (["--backend", "fake", "--steps", "0"], "--steps"),
        (["--backend", "fake", "--out", "records"], "unknown option '--out'"),
    ],
    ids=lambda value: " ".join(value[1:]) if isinstance(value, list) else "",
)
def test_wrong_usage_is_exit_2_and_says_what_to_do(
    command: CommandLine, arguments: list[str], said: str
) -> None:
    code, out, err = command.run(*parity(*arguments))
    assert code == 2, err
    assert said in err and "Traceback" not in err and out == ""


def test_an_unknown_workload(command: CommandLine) -> None:
    code, _, err = command.run("parity", "mnist-mlp51", "--backend", "torch,numpy")
    assert code == 2 and "Did you mean mnist-mlp512" in err


@pytest.mark.parametrize(
    ("mistake", "part", "suspects"),
    [
        slow(
            "wrong-scale",
            "input",
            "the divisor of the pixels: the values are 0.996094 times the reference's",
        ),
        slow(
            "wrong-rate", "update", "the learning rate: the values are 1.01 times the reference's"
        ),
        ("wrong-epsilon", "update", "epsilon inside the root"),
    ],
)
@pytest.mark.usefixtures("mistaken")
def test_a_planted_mistake_is_named_and_the_real_backend_passes(
    command: CommandLine, mistake: str, part: str, suspects: str
) -> None:
    sides = ("--backend", f"torch,{mistake}")
    right, wrong = in_process(command, *parity(*sides, workload="mnist-mlp512"))["sides"]
    assert right["passed"] and right["mistake"] is None and right["trouble"] is None
    assert not wrong["passed"] and wrong["trouble"] is None
    assert wrong["mistake"]["part"] == part
    assert suspects in wrong["mistake"]["suspects"]


@pytest.mark.slow
@pytest.mark.parametrize("workload", ["mnist-mlp128", "mnist-mlp512", "mnist-mlp32"])
@pytest.mark.usefixtures("_torch")
def test_real_backends_pass_on_real_data(
    command: CommandLine, data_dir: Path, workload: str
) -> None:
    found = in_process(
        command,
        "parity",
        workload,
        "--backend",
        "torch,numpy",
        "--threads",
        "1",
        "--data-dir",
        str(data_dir),
    )
    assert [side["mistake"] for side in found["sides"]] == [None, None]
    assert all(side["passed"] for side in found["sides"])


@pytest.mark.slow
@pytest.mark.usefixtures("_torch")
def test_in_float64_the_bounds_are_those_of_float64(command: CommandLine) -> None:
    found = in_process(
        command, *parity("--backend", "torch,numpy", "--precision", "fp64", workload="mnist-mlp512")
    )
    assert all(side["passed"] for side in found["sides"])
    checks = [
        check for side in found["sides"] for step in side["steps"] for check in step["checks"]
    ]
    assert max(check["bound"] for check in checks if check["part"] != "dropout") < 1e-11, (
        "its share is random"
    )
