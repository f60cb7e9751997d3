"""One training on several processes, for real: gloo, torchrun's launcher, ranks that are killed."""

from __future__ import annotations

import json
import os
import signal
import time
from functools import cache
from pathlib import Path
from typing import Any

import psutil
import pytest

from tests.end_to_end.command import CommandLine, command_of, measured
from tests.slow import slow
from trainmark.analysis.scale import Agreement
from trainmark.analysis.scale_results import AGREEMENT_BOUND, results
from trainmark.backends.layout import Layout
from trainmark.data.locate import Located
from trainmark.execute.parent.plan import Run, ScheduledWorkload, Settings, Side, Spreading
from trainmark.execute.parent.probe import THIS, Seen, probe
from trainmark.execute.parent.scheduler import execute
from trainmark.execute.parent.task import Task
from trainmark.execute.protocol.answers import Answer, EpochEnded
from trainmark.record.record import Record
from trainmark.record.store import Store
from trainmark.workload import catalog

STEPS = 100
SUMS = '''
"""PyTorch whose copies add their gradients up instead of averaging them."""

import torch.distributed as dist

from trainmark.backends.torch.backend import TorchBackend


def add_up(_, bucket):
    reduced = dist.all_reduce(bucket.buffer(), async_op=True).get_future()
    return reduced.then(lambda done: done.value()[0])


class Sums(TorchBackend):
    def trainer(self, workload, model, data, options):
        trainer = super().trainer(workload, model, data, options)
        trainer._pass.forward.register_comm_hook(None, add_up)
        return trainer
'''


class Watching:
    """Calls ``seen`` with every message of a run."""

    def __init__(self, seen: Any = lambda _: None) -> None:
        self._seen = seen

    def answered(self, task: Any, answer: Any) -> None:
        self._seen(answer)

    def task_started(self, task: Any) -> None: ...
    def run_started(self, task: Any, run: Any, replayed: bool) -> None: ...
    def counted(self, task: Any, steps: int) -> None: ...
    def sampled(self, task: Any, rows: Any, gpu: int | None) -> None: ...
    def recorded(self, task: Any, record: Record) -> None: ...
    def task_ended(self, task: Any) -> None: ...


@cache
def asked(backend: str) -> Seen:
    return probe(THIS, backend)


@pytest.fixture
def train(drawn: Located, tmp_path: Path) -> Any:
    """Train on a layout, in float64 by default; returns the records of the ranks, and of the
    whole."""

    def train(
        layout: Layout,
        *,
        backend: str = "torch",
        seen: Seen | None = None,
        workload: str = "mnist-mlp128",
        steps: int = STEPS,
        watch: Any = lambda _: None,
    ) -> list[Record]:
        seen = seen or asked(backend)
        plain = catalog.find(workload).deterministic()
        scheduled = ScheduledWorkload(
            plain.with_schedule(steps=steps, steps_per_epoch=50, evaluate="end"), drawn, 1
        )
        side = Side(backend, "fast", "cpu", THIS, "fp64", seen.can.version if seen.can else None)
        spread = Spreading(layout, processes=backend != "jax")
        run = Run(scheduled, side, Settings(kind="scale", threads=1), 0, 0, "plan", "plan", spread)
        store = Store(tmp_path / layout.title)
        return execute([Task((run,))], {(backend, "default"): seen}, store, Watching(watch))

    return train


@pytest.fixture(scope="module")
def trained_alone() -> dict[str, Record]:
    """Filled by the first test that needs it."""
    return {}


@pytest.fixture
def one(train: Any, trained_alone: dict[str, Record]) -> Any:
    """The training on one device."""

    def one(backend: str = "torch") -> Record:
        if backend not in trained_alone:
            (trained_alone[backend],) = train(Layout(), backend=backend)
        return trained_alone[backend]

    return one


def agreement(*records: Record) -> Agreement:
    found = results(records)[-1].agreement
    assert found is not None and found.steps == STEPS
    return found


@pytest.mark.parametrize(
    "layout",
    [slow(Layout(2)), Layout(1, 2, 4), slow(Layout(2, 2, 5))],
    ids=lambda layout: layout.title,
)
def test_several_processes_compute_what_one_does(train: Any, one: Any, layout: Layout) -> None:
    *ranks, whole = train(layout)
    assert whole.outcome.status == "ok", whole.outcome
    assert agreement(one(), whole).passed
    assert [record.group.rank for record in ranks] == list(range(layout.ranks))
    assert all(record.step_losses == whole.step_losses for record in ranks)
    assert whole.final.test_accuracy == one().final.test_accuracy
    assert all(epoch.seconds > 0 and epoch.steps == 50 for epoch in whole.epochs)
    assert whole.threads == 1
    assert whole.backend.settings["collectives"] == "gloo"


def test_devices_of_one_process_compute_what_one_does(train: Any, one: Any) -> None:
    (whole,) = train(Layout(2), backend="jax")
    assert whole.outcome.status == "ok"
    assert whole.backend.settings["mesh"] == 2
    assert agreement(one("jax"), whole).passed


def test_gradients_that_are_summed_instead_of_averaged_are_caught(
    train: Any, one: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    plugin = tmp_path / "plugin"
    (plugin / "sums-1.0.dist-info").mkdir(parents=True)
    (plugin / "sums.py").write_text(SUMS)
    (plugin / "sums-1.0.dist-info" / "entry_points.txt").write_text(
        "[trainmark.backends]\nsums = sums:Sums\n"
    )
    (plugin / "sums-1.0.dist-info" / "METADATA").write_text(
        "Metadata-Version: 2.1\nName: sums\nVersion: 1.0\n"
    )
    monkeypatch.setenv(
        "PYTHONPATH", os.pathsep.join([str(plugin), os.environ.get("PYTHONPATH", "")])
    )
    whole = train(Layout(2), backend="sums", seen=asked("torch"))[-1]
    assert whole.outcome.status == "ok"
    found = agreement(one(), whole)
    assert not found.passed
    assert found.parts_at_step == 1  # the first loss is of weights that no gradient has touched


def ranks_of_this_process() -> list[psutil.Process]:
    return [
        process for process in measured(os.getpid(), deep=True) if "--rank" in command_of(process)
    ]


class Killer:
    """Kills rank 1 when the first epoch is over, once."""

    def __init__(self) -> None:
        self.killed_at: float | None = None

    def __call__(self, answer: Answer) -> None:
        if self.killed_at is None and isinstance(answer, EpochEnded):
            victim = next(
                process for process in ranks_of_this_process() if process.environ()["RANK"] == "1"
            )
            victim.send_signal(signal.SIGKILL)
            self.killed_at = time.monotonic()


def test_a_killed_rank_ends_the_run_with_its_last_words(train: Any) -> None:
    killer = Killer()
    first, second, whole = train(Layout(2), steps=10**6, watch=killer)
    assert killer.killed_at is not None
    assert time.monotonic() - killer.killed_at < 120
    assert whole.outcome.status == "failed"
    assert whole.outcome.reason.startswith("rank 1 was killed by SIGKILL")
    assert first.outcome.reason == "ended with rank 1, which failed first"
    assert second.outcome.reason == whole.outcome.reason
    assert whole.epochs  # earlier messages are kept
    assert not ranks_of_this_process()


@pytest.mark.slow
def test_the_rank_that_failed_is_distinguished_from_the_others(train: Any) -> None:
    # 50 examples can't be cut into 4 equal pieces, which the command line refuses
    *_, whole = train(Layout(2, 2, 4))
    assert whole.outcome.status == "failed"
    assert (
        "Expected input batch_size" in whole.outcome.reason
    )  # the reason is not that a connection was closed


def test_the_command_line(command: CommandLine) -> None:
    arguments = ["--dataset", "synthetic-digits", "--out", str(command.out), "--json"]
    code, out, err = command.run(
        "scale",
        "mnist-mlp128",
        "--backend",
        "torch",
        "--data-parallel",
        "2",
        "--repeats",
        "1",
        "--steps",
        "100",
        "--threads",
        "1",
        *arguments,
    )
    assert code == 0, err
    found = json.loads(out)
    one, two = found["layouts"]
    assert (one["ranks"], two["ranks"], found["threads"], found["mode"]) == (1, 2, 1, "strong")
    assert two["agreement"]["passed"] and two["agreement"]["steps"] == 100
    assert (
        0
        < two["agreement"]["largest_difference"]
        <= two["agreement"]["tolerance"]
        == AGREEMENT_BOUND
    )
    assert 0 < two["efficiency"]["value"] < 2
    assert -1 < two["communication"]["value"] < 1
    again, out, err = command.run(
        "scale",
        "mnist-mlp128",
        "--backend",
        "torch",
        "--data-parallel",
        "2",
        "--repeats",
        "1",
        "--steps",
        "100",
        "--threads",
        "1",
        "--resume",
        *arguments,
    )
    # nothing was left to do
    assert (again, json.loads(out)["layouts"]) == (0, found["layouts"]), err


@pytest.mark.parametrize(
    ("arguments", "text"),
    [
        (["--data-parallel", "100"], "100 ranks of 1 thread need 100 cores"),
        (["--data-parallel", "3", "--oversubscribe"], "a batch of 100 can't be shared by 3 copies"),
        (["--data-parallel", "2,x"], "expected whole numbers above 0 such as 1,2,4"),
        (["--nnodes", "2"], "2 machines need a rendezvous address"),
        (
            ["--nnodes", "2", "--rdzv-endpoint", "no.such.host.invalid:1"],
            "can't be reached from here",
        ),
        (
            ["--backend", "numpy"],
            "numpy does not spread a training over several devices: expected torch or jax",
        ),
        (
            ["--backend", "numpy", "--style", "idiomatic"],
            "numpy does not spread a training over several devices",
        ),
        (
            ["--backend", "jax", "--pipeline", "2", "--oversubscribe"],
            "jax can only spread copies over the devices",
        ),
        (
            ["--rdzv-endpoint", "here:1"],
            "--rdzv-endpoint has no effect here: expected --nnodes N as well",
        ),
        (["--size", "depth=1"], "--size depth doesn't apply to mnist-mlp128"),
        (["--microbatches", "2"], "--microbatches has no effect here"),
        (["--data-parallel", "1", "--device", "cuda:0"], "does not see the device 'cuda:0'"),
    ],
    ids=lambda value: value if isinstance(value, str) else " ".join(value),
)
def test_bad_input(command: CommandLine, arguments: list[str], text: str) -> None:
    if not any(word == "--backend" for word in arguments):
        arguments = ["--backend", "torch", *arguments]
    code, _, err = command.run(
        "scale",
        "mnist-mlp128",
        "--dataset",
        "synthetic-digits",
        "--out",
        str(command.out),
        *arguments,
    )
    assert code == 2
    assert text in err
