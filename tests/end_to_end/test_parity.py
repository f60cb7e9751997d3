"""``trainmark parity`` as a person starts it: fresh processes, the exit code, and backends with planted mistakes."""

from __future__ import annotations

import json
import os
import signal
from pathlib import Path
from typing import Any

import pytest

from tests.end_to_end.command import CommandLine, alive, measured, wait_until
from tests.slow import slow
from trainmark.analysis.parity import NUDGES
from trainmark.record.store import load

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
        return super().trainer(dataclasses.replace(workload, optimizer=faster), model, data, options)


class RootOfSum(torch.optim.Optimizer):
    """RMSprop that divides by the root of v + epsilon instead of the root of v, plus epsilon."""

    def __init__(self, spec, network, **_):
        super().__init__(network.parameters(), {"lr": spec.learning_rate})
        self.spec = spec

    @torch.no_grad()
    def step(self, closure=None):
        for weight in self.param_groups[0]["params"]:
            v = self.state[weight].setdefault("v", torch.zeros_like(weight))
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
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join([str(tmp_path), *filter(None, [os.environ.get("PYTHONPATH")])]))


def fakes(command: CommandLine, *arguments: str, steps: int = 20, devices: str = "cpu,cuda:0") -> list[str]:
    return [
        "parity", "mnist-mlp128", "--backend", "fake", "--device", devices, "--dataset", "synthetic-digits",
        "--steps", str(steps), "--out", str(command.out), *arguments,
    ]  # fmt: skip


def train(command: CommandLine, *arguments: str) -> tuple[int, str, str]:
    """Real trainings, with the time that a busy machine may need."""
    process = command.start("parity", *arguments, "--threads", "1", "--out", str(command.out), "--json")
    try:
        out, err = process.communicate(timeout=280)
    finally:
        process.kill()
    return process.returncode, out, err


def pairs_of(out: str) -> list[dict[str, Any]]:
    pairs: list[dict[str, Any]] = json.loads(out)["pairs"]
    return pairs


def test_two_equal_sides_pass_and_every_run_leaves_a_record(command: CommandLine) -> None:
    code, out, err = command.run(*fakes(command))
    assert code == 0, err
    assert "PASS" in out and "FAIL" not in out
    assert "8 runs" in err
    assert command.records() == [], "none where a comparison looks"
    records = load([command.out / "parity"])
    assert len(records) == 2 * (1 + NUDGES)
    assert {record.group.kind for record in records} == {"parity"}
    assert [record.group.trial for record in records] == [None, None, 1, 1, 2, 2, 3, 3]
    weights = {(record.group.trial, record.model.initial_weights_sha256) for record in records}
    assert len(weights) == len({sha for _, sha in weights}) == 1 + NUDGES, "both sides start alike, each nudge apart"
    assert {record.seed for record in records} == {1}


def test_json_alone_on_stdout_with_every_key(command: CommandLine) -> None:
    code, out, _ = command.run(*fakes(command, "--json"), fake={"noise": "hello\n"})
    assert code == 0
    (pair,) = pairs_of(out)
    assert (pair["a"], pair["b"]) == ("fake fast cpu", "fake fast cuda:0")
    assert pair["steps"] == len(pair["losses_a"]) == len(pair["losses_b"]) == len(pair["tolerances"]) == 20
    assert pair["passed"] is True and pair["parts_at_step"] is None and pair["reason"] is None
    assert pair["largest_difference"] == 0 < pair["tolerance"]


@pytest.mark.slow  # 16 runs
def test_styles_and_devices_multiply_and_every_two_are_a_pair(command: CommandLine) -> None:
    code, out, _ = command.run(*fakes(command, "--style", "fast,idiomatic", "--json", steps=2))
    assert code == 0
    assert len(pairs_of(out)) == 6


@pytest.mark.slow  # 24 runs
def test_more_steps_than_an_epoch_has(command: CommandLine) -> None:
    code, out, _ = command.run(*fakes(command, "--json", steps=1_300), fake={"step_seconds": 0.0})
    assert code == 0
    assert pairs_of(out)[0]["steps"] == 1_300, "an epoch has 600"


@pytest.mark.parametrize(
    ("fake", "said"),
    [
        ({"fail": "nan", "at_step": 13, "only_on": "cuda:0"}, "fake fast cuda:0: diverged, loss is NaN at step 13"),
        slow({"fail": "nan", "at_step": 13}, "both reach a loss that is not finite at step 13 and agree until then"),
        slow(
            {"fail": "raise", "only_on": "cuda:0"}, "fake fast cuda:0: failed, RuntimeError: the fake was asked to fail"
        ),
        slow({"fail": "kill", "only_on": "cuda:0"}, "fake fast cuda:0: failed, the process was killed by SIGKILL"),
    ],
    ids=["nan", "nan on both", "raise", "kill"],
)
def test_a_side_that_fails_is_no_agreement(command: CommandLine, fake: dict[str, Any], said: str) -> None:
    code, out, _ = command.run(*fakes(command, "--json"), fake=fake)
    assert code == 1
    (pair,) = pairs_of(out)
    assert pair["passed"] is False and said in pair["reason"]
    if fake["fail"] == "nan":
        assert pair["steps"] == 13 and pair["parts_at_step"] is None
        assert pair["losses_b"][13] == "nan", "the NaN itself is kept"


@pytest.mark.slow
def test_a_hung_side_ends_by_its_timeout(command: CommandLine) -> None:
    arguments = fakes(command, "--timeout", "4")
    code, out, _ = command.run(*arguments, fake={"fail": "hang", "only_on": "cuda:0"})
    assert code == 1
    assert "FAIL" in out
    assert "fake fast cuda:0: timeout, exceeded --timeout" in out


def test_ctrl_c_leaves_no_process(command: CommandLine) -> None:
    process = command.start(*fakes(command), fake={"step_seconds": 1.0})
    wait_until(lambda: (command.out / "parity").is_dir())  # so the backend has been asked, and a run begins
    children = wait_until(lambda: measured(process.pid))
    process.send_signal(signal.SIGINT)
    out, err = process.communicate(timeout=20)
    assert process.returncode == 130, err
    assert out == "" and "Traceback" not in err
    assert not alive(children)


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["--backend", "fake"], "parity needs two sides"),
        (["--backend", "numpy,torch", "--style", "fast"], "numpy on cpu does not have the style 'fast'"),
        (["--backend", "fake,nunpy"], "Did you mean numpy"),
        (["--backend", "fake", "--style", "fast,idomatic"], "Did you mean idiomatic"),
        (["--backend", "fake", "--device", "cpu,cuda:7"], "does not see the device 'cuda:7'"),
        (["--backend", "fake", "--device", "cpu,cuda:0", "--precision", "fp46"], "unknown precision"),
        (["--backend", "fake,fake@old"], "unknown interpreter label 'old'"),
        (["--backend", "fake", "--steps", "0"], "--steps"),
    ],
    ids=lambda value: " ".join(value[1:]) if isinstance(value, list) else "",
)
def test_wrong_usage_is_exit_2_and_says_what_to_do(command: CommandLine, arguments: list[str], said: str) -> None:
    code, out, err = command.run(
        "parity", "mnist-mlp128", "--dataset", "synthetic-digits", "--out", str(command.out), *arguments
    )
    assert code == 2, err
    assert said in err and "Traceback" not in err and out == ""
    assert not command.out.exists()


def test_an_unknown_workload(command: CommandLine) -> None:
    code, _, err = command.run("parity", "mnist-mlp51", "--backend", "torch,numpy")
    assert code == 2 and "Did you mean mnist-mlp512" in err


@pytest.mark.parametrize(
    ("mistake", "parts_at"),
    [
        slow("wrong-scale", 0),  # the very first loss has another input
        slow("wrong-rate", 1),  # the first update shows in the second loss
        ("wrong-epsilon", 1),
    ],
)
@pytest.mark.usefixtures("mistaken")
def test_a_planted_mistake_is_caught_in_the_first_steps_and_the_real_backend_agrees(
    command: CommandLine, mistake: str, parts_at: int
) -> None:
    code, out, err = train(
        command, "mnist-mlp512", "--backend", f"numpy,torch,{mistake}", "--steps", "12", "--dataset", "synthetic-digits"
    )
    assert code == 1, err
    good, pair, _ = pairs_of(out)
    assert (good["passed"], good["steps"]) == (True, 12)
    assert good["largest_difference"] <= good["tolerance"]
    assert (pair["passed"], pair["parts_at_step"]) == (False, parts_at)
    assert pair["largest_difference"] > pair["tolerance"] == pair["tolerances"][parts_at]
    assert f"they differ from step {parts_at} on" in pair["reason"]


@pytest.mark.slow
@pytest.mark.parametrize(("workload", "steps"), [("mnist-mlp128", 100), ("mnist-mlp512", 100), ("mnist-mlp32", 5)])
@pytest.mark.usefixtures("_torch")
def test_real_backends_agree_on_real_data(command: CommandLine, data_dir: Path, workload: str, steps: int) -> None:
    data = ("--data-dir", str(data_dir))
    code, out, err = train(command, workload, "--backend", "torch,numpy", "--steps", str(steps), *data)
    assert code == 0, out + err
    (pair,) = pairs_of(out)
    assert pair["largest_difference"] <= pair["tolerance"]


@pytest.mark.slow
@pytest.mark.usefixtures("_torch")
def test_in_float64_the_tolerance_is_that_of_float64(command: CommandLine) -> None:
    code, out, err = train(
        command, "mnist-mlp512", "--backend", "torch,numpy", "--steps", "20", "--dataset", "synthetic-digits",
        "--precision", "fp64",
    )  # fmt: skip
    assert code == 0, err
    (pair,) = pairs_of(out)
    assert pair["largest_difference"] < pair["tolerance"] < 1e-9
