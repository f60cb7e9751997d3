"""Sides of a round are alive together and take turns."""

from __future__ import annotations

import itertools
import json
import time
from pathlib import Path

import pytest

from tests.end_to_end.command import CommandLine, measured, wait_until
from tests.slow import slow
from trainmark.analysis.slices import FEWEST_BLOCKS, MOST_BLOCKS
from trainmark.record.caveats import Caveat
from trainmark.record.record import Record, Window

TWO = ("--device", "cpu,cuda:0")
LONG = {"step_seconds": 0.004, "speedup": 1.25}
"""Steps of the fake: 1,200 take 4.8 s on the one device, and 3.8 s on the other."""


def computing(record: Record) -> list[tuple[float, float]]:
    """Return when it trained, from the creation of its process on."""
    windows = [
        window
        for epoch in record.epochs
        for window in epoch.windows or [Window(epoch.start_seconds, epoch.seconds)]
    ]
    return [(each.start_seconds, each.start_seconds + each.seconds) for each in windows]


def waited(record: Record) -> float:
    """Return how many seconds it waited between its first and its last step."""
    return sum(start - end for (_, end), (start, _) in itertools.pairwise(computing(record)))


def trained(record: Record) -> float:
    """Return how many seconds it trained."""
    return sum(end - start for start, end in computing(record))


def takes_turns(record: Record) -> bool:
    """Whether it waited for other sides, whose slices may be a fifth as long. A busy system causes
    shorter waits."""
    return waited(record) > 0.1 * trained(record)


def test_both_are_alive_and_one_of_them_computes(command: CommandLine) -> None:
    process = command.start(
        *command.train_arguments("--repeats", "1", *TWO, "--steps", "1200"), fake=LONG
    )
    wait_until(lambda: len(measured(process.pid)) == 2)
    process.communicate(timeout=200)
    assert process.returncode == 0
    one, other = command.records()
    assert one.epochs[0].steps == other.epochs[0].steps
    assert waited(one) + waited(other) > 0.5 * (trained(one) + trained(other))
    for record in (one, other):
        assert len(record.slices) >= 2
        windows = computing(record)
        assert takes_turns(record)
        assert trained(record) == pytest.approx(record.final.training_seconds, rel=0.1), (
            "but for what goes on at edges"
        )
        for each in record.slices:
            assert 0 < each.timed_steps < each.steps
            assert (
                each.seconds >= (0.1 if record.device.id == "cpu" else 0.5)
                or each is record.slices[-1]
            )
            assert any(start <= each.start_seconds + 0.001 < end for start, end in windows)
    orders = sorted((each.order, each.block) for record in (one, other) for each in record.slices)
    assert len({order for order, _ in orders}) == len(orders), "no two had the same turn"
    assert [block for _, block in orders] == sorted(block for _, block in orders)


def test_rounds_of_slices_alone_follow_within_the_budget(command: CommandLine) -> None:
    few = ("--steps", "16")
    fake = {"step_seconds": 0.01, "speedup": 1.25}
    code, _, err = command.train("--repeats", "1", *TWO, *few, "--budget", "20", fake=fake)
    assert code == 0, err
    assert "the budget of 20.0 s" in err or "the verdict is decided" in err
    rounds: dict[int, list[Record]] = {}
    for record in command.records():
        rounds.setdefault(record.round, []).append(record)
    assert len(rounds) > 1
    assert all(record.epochs and record.slices for record in rounds.pop(0)), (
        "an opening, and then the training"
    )
    for number, records in rounds.items():
        # the budget may cut the last round short
        fewest = 1 if number == max(rounds) else FEWEST_BLOCKS
        for record in records:
            assert not record.epochs
            numbers = [each.block for each in sorted(record.slices, key=lambda each: each.order)]
            assert numbers == [block for block in range(len(numbers) // 2) for _ in range(2)]
            assert fewest <= len(numbers) // 2 <= 2 * MOST_BLOCKS, "a disturbed one is repeated"
            assert Caveat.NOT_LEARNING not in record.caveats
        paces = [each.seconds / each.timed_steps for record in records for each in record.slices]
        assert 0.007 < min(paces) < 0.01
        assert max(paces) >= 0.01
    code, out, err = command.run("compare", str(command.out), "--json")
    assert code == 0, err
    gpu = next(group for group in json.loads(out)["groups"] if group["key"]["device"] == "cuda:0")
    assert 1 < gpu["speedup"]["ratio"] < 1.6, "the GPU of the fake is 1.25 times as fast"
    again, _, err = command.train("--repeats", "2", *TWO, *few, "--resume", fake=fake)
    assert again == 0, err
    complete = [record for record in command.records() if record.epochs]
    assert len(complete) == 4, "rounds of slices alone stand for no planned run"


@pytest.mark.parametrize("fail", ["kill", "hang", slow("nan"), slow("memory")])
def test_a_side_that_is_lost_while_the_other_waits_keeps_it_from_nothing(
    command: CommandLine, fail: str
) -> None:
    fake = {**LONG, "fail": fail, "at_step": 900, "only_on": "cuda:0"}
    timeout = "15" if fail == "hang" else "200"
    code, out, err = command.train(
        "--repeats", "1", *TWO, "--steps", "1200", "--timeout", timeout, fake=fake
    )
    assert code == 1, err
    assert ("did not learn" if fail == "nan" else "failed-runs") in out
    by_device = {record.device.id: record for record in command.records()}
    assert by_device["cpu"].outcome.status == "ok"
    assert sum(epoch.steps or 0 for epoch in by_device["cpu"].epochs) == 1200
    assert by_device["cuda:0"].outcome.status == {"hang": "timeout", "nan": "diverged"}.get(
        fail, "failed"
    )
    if fail != "nan":
        assert by_device["cuda:0"].slices, "what it had measured is kept"


@pytest.mark.parametrize(
    "options", [("--repeats", "3"), slow(("--repeats", "1", "--budget", "120"))]
)
def test_sides_that_do_not_fit_together_take_no_turns(
    command: CommandLine, tmp_path: Path, options: tuple[str, ...]
) -> None:
    fake = {"step_seconds": 0.004, "speedup": 1.25, "needs_all_of": str(tmp_path / "memory")}
    code, out, err = command.train(*options, *TWO, "--steps", "700", fake=fake)
    assert code == 0, err
    records = command.records()
    rounds = {record.round for record in records}
    assert len(rounds) >= 3
    assert {record.outcome.status for record in records} == {"ok"}, (
        "the one that found no room was trained again"
    )
    late = [record for record in records if record.round != records[0].round]
    assert all(Caveat.ONE_AFTER_THE_OTHER in record.caveats for record in late)
    for number in {record.round for record in late}:
        both = [record for record in late if record.round == number]
        order = [record.device.id for record in both]
        assert order == (["cuda:0", "cpu"] if number % 2 else ["cpu", "cuda:0"])
        assert sum(map(waited, both)) <= 0.5 * sum(map(trained, both)), (
            "taking turns, each would wait as long as the other trains"
        )
    for record in late:
        assert len({each.block for each in record.slices}) >= 2
    assert "did not fit into memory" in " ".join(out.split())


@pytest.mark.slow
def test_pauses_do_not_count_for_the_timeout(command: CommandLine) -> None:
    started = time.monotonic()
    code, _, err = command.train(
        "--repeats",
        "1",
        "--device",
        "cpu,cuda:0",
        "--style",
        "fast,idiomatic",
        "--steps",
        "400",
        "--timeout",
        "15",
        fake={"step_seconds": 0.01, "speedup": 1.0},
    )
    assert code == 0, err
    assert time.monotonic() - started > 15, "all four together took longer than one of them may"


@pytest.mark.parametrize(
    ("sides", "backend", "style"),
    [
        (("numpy,torch", "idiomatic"), "numpy", "idiomatic"),
        slow(("torch", "idiomatic,fast"), "torch", "fast"),
        slow(("jax", "idiomatic,fast"), "jax", "fast"),
    ],
)
def test_losses_are_those_of_a_training_that_never_pauses(
    command: CommandLine, sides: tuple[str, str], backend: str, style: str
) -> None:
    options = (
        "--dataset",
        "synthetic-digits",
        "--steps",
        "1000",
        "--repeats",
        "1",
        "--budget",
        "0",
    )
    options += ("--device", "cpu", "--threads", "1")
    found = []
    for number, (backends, styles) in enumerate((sides, (backend, style))):
        out = command.out / str(number)
        words = ("--backend", backends, "--style", styles, "--out", str(out))
        code, _, err = command.run("run", "mnist-mlp128", *options, *words)
        assert code == 0, err
        records = CommandLine(command.data, command.cache_home, out).records()
        found += [
            each for each in records if (each.backend.name, each.backend.style) == (backend, style)
        ]
    together, lonely = found
    assert takes_turns(together)
    assert not any(epoch.windows for epoch in lonely.epochs)
    assert together.step_losses == lonely.step_losses
