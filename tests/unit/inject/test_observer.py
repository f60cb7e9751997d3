"""The observer by itself: which optimiser leads, what an evaluation is, when an epoch ends, and
that it breaks nothing."""

from __future__ import annotations

import ast
import json
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

import trainmark.inject
from trainmark.inject import observer as module
from trainmark.inject import trainings
from trainmark.inject.leaving import leave
from trainmark.inject.observer import FOLDER, Observer
from trainmark.inject.overlay import ORIGINAL
from trainmark.inject.patch import time_reads
from trainmark.inject.places import line_of
from trainmark.inject.processes import STEPS

FILES = sorted(Path(trainmark.inject.__file__).parent.rglob("*.py"))


class Optimiser:
    """An object that allows weak references."""


@pytest.fixture
def pipe(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    path = tmp_path / "pipe"
    path.touch()
    monkeypatch.setenv("TRAINMARK_HOOK", str(path))
    monkeypatch.delitem(sys.modules, "trainmark.hook", raising=False)
    yield path
    sys.modules.pop("trainmark.hook", None)


@pytest.fixture
def observer(pipe: Path) -> Observer:
    return Observer(str(pipe.parent))


def said(pipe: Path, event: str) -> list[dict[str, Any]]:
    messages = [json.loads(text) for text in pipe.read_text().splitlines()]
    return [message for message in messages if message["event"] == event]


def step(observer: Observer, leader: object, loss: float = 1.0) -> None:
    observer.forward(training=True, grad=True, examples=8)
    observer.loss(loss)
    observer.stepping()
    observer.stepped(leader, "fake")


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.name)
def test_old_pythons_can_run_it(path: Path) -> None:
    tree = ast.parse(path.read_text(), feature_version=(3, 8))
    of_abc = {
        each.name
        for node in tree.body
        if isinstance(node, ast.ImportFrom) and node.module == "collections.abc"
        for each in node.names
    }
    aliases = [node.value for node in tree.body if isinstance(node, ast.Assign)]
    evaluated = {
        ast.unparse(part.value)
        for alias in aliases
        for part in ast.walk(alias)
        if isinstance(part, ast.Subscript)
    }
    assert not evaluated & of_abc  # Callable[[], None]: from 3.9
    calls = [
        node.func.value
        for node in ast.walk(tree)
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Subscript)
    ]
    assert not {ast.unparse(each) for each in calls} & {
        "list",
        "dict",
        "set",
        "weakref.WeakSet",
    }  # list[int](): from 3.9
    assert "functools.cache" not in {
        ast.unparse(node) for node in ast.walk(tree) if isinstance(node, ast.Attribute)
    }


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.name)
def test_what_is_wrapped_may_take_an_argument_named_real(path: Path) -> None:
    """``net(real=images)`` must not be taken for our own argument."""
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.FunctionDef) and node.args.kwarg is not None:
            assert "real" not in [each.arg for each in node.args.args], node.name


def test_of_two_optimisers_the_first_one_counts_until_it_stops(observer: Observer) -> None:
    first = Optimiser()
    second = Optimiser()
    for _ in range(3):
        step(observer, first)
        step(observer, second)
    assert observer.steps == 3
    for _ in range(trainings._NEW_LEADER + 4):
        step(observer, second)
    assert observer.steps > 3


class Value:
    """A tensor on a CPU."""

    device = SimpleNamespace(type="cpu")

    def item(self) -> int:
        return 1


def test_of_many_reads_a_sample_is_recorded(
    observer: Observer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Value, "item", Value.item)  # undone after the test
    time_reads(Value, ("item",), observer)
    step(observer, Optimiser())
    value = Value()
    places = sys._getframe().f_lineno
    for _ in range(800):
        value.item()
        value.item()
        value.item()
        eval("value.item()", {"value": value})
    reads = observer.figures()["syncs"].items()
    lines = {int(place.partition(" ")[0].rpartition(":")[2]): times for place, times in reads}
    found = {line: times for line, times in lines.items() if line > 1}
    assert found.keys() == {places + 2, places + 3, places + 4}
    assert sum(found.values()) == pytest.approx(2400, rel=0.1)
    assert max(found.values()) < 1.3 * min(found.values())


def test_reads_during_an_evaluation_are_a_part_of_it(observer: Observer) -> None:
    leader = Optimiser()
    frame = sys._getframe()
    for evaluates in (False, True):
        step(observer, leader)
        if evaluates:
            observer.forward(training=False, grad=False)
        observer.synchronised(".item()", 0.25, frame)
    step(observer, leader)
    assert observer.figures()["sync_seconds"] == 0.25
    assert sum(observer.figures()["syncs"].values()) == 2


def test_what_happens_outside_of_the_timed_steps_is_no_part_of_them(observer: Observer) -> None:
    """The first step's duration is unknown, and what follows the last one belongs to no step."""
    leader = Optimiser()
    frame = sys._getframe()
    for seconds in (5.0, 0.25, 0.5):
        observer.synchronised(".item()", seconds, frame)
        step(observer, leader)
    observer.saved(7.0, frame)
    figures = observer.figures()
    assert (figures["sync_seconds"], figures["saving_seconds"]) == (0.75, None)
    assert (sum(figures["syncs"].values()), figures["saves"]) == (3, 1)


def test_losses_and_a_partial_epoch_are_reported_at_the_end(observer: Observer, pipe: Path) -> None:
    leader = Optimiser()
    for number in range(400):
        step(observer, leader, float(number))
    observer._finish()
    assert [loss for message in said(pipe, "observed") for loss in message["losses"]] == [
        float(n) for n in range(400)
    ]
    assert all(len(text) < 4096 for text in pipe.read_text().splitlines())
    (epoch,) = said(pipe, "epoch")
    assert (epoch["steps"], epoch["examples"]) == (399, 399 * 8)


def test_losses_on_a_device_are_read_at_the_end_only(observer: Observer, pipe: Path) -> None:
    read: list[int] = []

    def read_losses(kept: list[Any]) -> list[float]:
        read.append(len(kept))
        return [float(each.numerator) for each in kept]

    observer.read_losses["fake"] = read_losses
    leader = Optimiser()
    for number in range(5):
        observer.loss(number)  # an int stands for a tensor on a device
        observer.stepped(leader, "fake")
        observer._report(reads=False)
    assert read == []
    observer._finish()
    assert read == [5]
    assert [loss for message in said(pipe, "observed") for loss in message["losses"]] == [
        0,
        1,
        2,
        3,
        4,
    ]
    assert said(pipe, "epoch")[0]["loss"] == 2.0


def test_an_epoch_that_is_read_ahead_ends_with_the_step_after(
    observer: Observer, pipe: Path
) -> None:
    leader = Optimiser()
    for _ in range(3):
        observer.opened(observer, module.clock())
        before = observer.steps
        for number in range(4):
            observer.fetched(module.clock(), 8)
            if number == 3:
                observer.read_out(before)
            step(observer, leader)
    observer._finish()
    assert [epoch["steps"] for epoch in said(pipe, "epoch")] == [3, 4, 4]


def test_a_rare_evaluation_is_apart_but_not_one_in_every_step(
    observer: Observer,
) -> None:
    leader = Optimiser()
    for number in range(60):
        if number % 20 == 0:
            observer.forward(training=False, grad=False)
        step(observer, leader)
    assert observer.figures()["evaluations"] == 2  # none before the first step
    assert observer._epoch.apart > 0
    apart = observer._epoch.apart
    for _ in range(20):
        observer.forward(training=False, grad=False)
        step(observer, leader)
    assert observer.figures()["evaluations"] == 22
    first = observer.figures()["evaluation_seconds"]
    assert observer._epoch.apart - apart < first - apart


@pytest.mark.parametrize(("every", "apart"), [(8, 1), (9, 5)])
def test_an_evaluation_every_8_steps_belongs_to_the_steps(
    observer: Observer, every: int, apart: int
) -> None:
    leader = Optimiser()
    seen = [0.0]
    for number in range(1, 5 * every + 2):
        step(observer, leader)
        if number % every == 0:
            observer.forward(training=False, grad=False)
        seen.append(observer._epoch.apart)
    assert len(set(seen)) - 1 == apart, "the first one follows none"


def test_training_in_evaluation_mode_is_not_an_evaluation(observer: Observer) -> None:
    leader = Optimiser()
    for _ in range(5):
        observer.forward(training=False, grad=True)
        observer.loss(1.0)
        observer.stepped(leader, "fake")
    observer._finish()
    assert observer.figures()["evaluations"] == 0


def test_an_older_copy_of_the_hook_reports_no_versions(
    observer: Observer, pipe: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    step(observer, Optimiser())
    monkeypatch.delattr(observer._hook, "_versions")
    observer._report()
    assert said(pipe, "observed")[-1]["packages"] == {}
    assert observer.speaks


def test_a_long_training_is_reported_less_and_less_often(
    observer: Observer, pipe: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    now = 0.0
    monkeypatch.setattr(module, "clock", lambda: now)
    leader = Optimiser()
    reported = []
    for now in (1.0, 1e6, 1e6 + 900, 1e6 + 1100):  # noqa: B007  the clock returns it
        step(observer, leader)
        reported.append(len(said(pipe, "observed")))
    first, second, third, fourth = reported
    assert first < second == third < fourth


def test_an_error_turns_the_observer_off_and_is_reported(observer: Observer, pipe: Path) -> None:
    leader = Optimiser()
    step(observer, leader)
    observer.guarded(observer.loss)()
    step(observer, leader)
    assert observer.steps == 1
    assert said(pipe, "observed")[-1]["injected"][-1].startswith("not loss: TypeError")
    observer.attempt("a patch", lambda: 1 / 0)
    assert observer.injected[-1] == "not a patch: ZeroDivisionError: division by zero"


def test_a_mistake_before_the_first_step_hides_no_step(observer: Observer, pipe: Path) -> None:
    for _ in range(2):
        observer.guarded(observer.loss)()
    step(observer, leader := Optimiser())
    step(observer, leader)
    observer._finish()
    (report,) = said(pipe, "observed")[-1:]
    assert (report["steps"], [what[:19] for what in report["injected"]]) == (
        2,
        ["not loss: TypeError"],
    )


def test_a_loader_without_a_step_was_an_evaluation(observer: Observer) -> None:
    for _ in range(3):
        step(observer, leader := Optimiser())
        step(observer, leader)
    observer.opened(object(), module.clock())
    observer.exhausted(observer.steps)
    assert observer.figures()["evaluations"] == 1


def test_a_pass_with_a_loss_but_without_a_step_is_none(observer: Observer) -> None:
    """Gradients are accumulated over the whole loader, or another optimiser steps."""
    leader = Optimiser()
    for _ in range(4):
        observer.opened(object(), module.clock())
        began = observer.steps
        observer.forward(training=True, grad=True, examples=8)
        observer.loss(1.0)
        observer.exhausted(began)
        step(observer, leader)
    assert observer.figures()["evaluations"] == 0


def test_an_evaluation_ends_with_its_loader_if_that_tells(observer: Observer) -> None:
    for _ in range(3):
        step(observer, leader := Optimiser())
        step(observer, leader)
    for ends, evaluates in ((False, True), (True, False)):
        observer.opened(object(), module.clock())
        observer.evaluating()
        observer.exhausted(observer.steps, ends)
        assert (observer.evaluates_since is not None) is evaluates


def test_a_failed_synchronization_does_not_stop_the_ending(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    ended: list[int] = []
    monkeypatch.setattr(os, "_exit", ended.append)
    leave(SimpleNamespace(_synchronize=lambda: 1 / 0))
    assert ended == [0]


def test_a_later_training_of_the_command_ends_as_well(observer: Observer, pipe: Path) -> None:
    ended = []
    for each in (observer, other := Observer(str(pipe.parent))):
        each.end = lambda each=each: ended.append(each)  # type: ignore[method-assign, misc]
    step(observer, Optimiser())
    observer._ask_to_end()
    leader = Optimiser()
    for _ in range(3):
        step(other, leader)
    assert ended[:2] == [observer, other]


def test_a_description_that_fails_stops_no_script(observer: Observer, pipe: Path) -> None:
    leader = Optimiser()
    observer.describe["fake"] = lambda: {"device": 1 / 0}
    guarded = observer.guarded(lambda: step(observer, leader))
    guarded()
    observer._report_at = 0.0
    guarded()
    assert "ZeroDivisionError" in said(pipe, "observed")[-1]["injected"][-1]
    assert not observer.speaks


def test_a_training_in_a_thread_can_be_ended(pipe: Path) -> None:
    code = (
        "import multiprocessing, threading\n"
        "from trainmark.inject.observer import Observer\n"
        f"observer = Observer({str(pipe.parent)!r})\n"
        "steps = observer.guarded(lambda: [observer.stepped(observer, 'fake') for _ in "
        "range(5)])\n"
        "thread = threading.Thread(target=steps)\n"
        "thread.start(), thread.join()\n"
        "print('it went on')\n"
    )
    words = [sys.executable, "-c", code]
    environment = {**os.environ, STEPS: "2"}
    assert (
        subprocess.run(words, env=environment, capture_output=True, text=True, check=True).stdout
        == ""
    )
    assert said(pipe, "observed")[-1]["steps"] == 2


def test_files_that_the_script_holds_open_are_written_at_the_end(pipe: Path) -> None:
    code = (
        "import csv, os\n"
        "from trainmark.inject.observer import Observer\n"
        f"observer = Observer({str(pipe.parent)!r})\n"
        "log, closed = open('log.csv', 'w'), open('closed', 'w')\n"
        "closed.close()\n"
        "_, full = os.pipe()\n"
        "os.write(full, bytes(1 << 16))\n"
        "stuck = os.fdopen(full, 'w')\n"
        "stuck.write('nothing reads it')\n"
        "for step in range(5):\n"
        "    csv.writer(log).writerow([step])\n"
        "    observer.stepped(observer, 'fake')\n"
    )
    words = [sys.executable, "-c", code]
    environment = {**os.environ, STEPS: "3"}
    subprocess.run(words, env=environment, cwd=pipe.parent, check=True, timeout=60)
    assert (pipe.parent / "log.csv").read_text().split() == ["0", "1", "2"]


def test_a_place_is_below_the_first_working_folder(observer: Observer, tmp_path: Path) -> None:
    before = observer.users_place(sys._getframe())
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(tmp_path)  # Hydra does this
        after = observer.users_place(sys._getframe())
    assert [str(place).rpartition(":")[0] for place in (before, after)] == 2 * [
        "tests/unit/inject/test_observer.py"
    ]


def test_an_instruction_without_a_line_is_at_the_nearest_line(observer: Observer) -> None:
    def compare(r: int) -> bool:
        return 0 <= r < 28

    code = compare.__code__
    without = [start for start, _, number in code.co_lines() if number is None]
    frame: Any = SimpleNamespace(f_code=code, f_lineno=None, f_back=None)
    for frame.f_lasti in [0, *without, len(code.co_code)]:
        line = line_of(frame)
        assert code.co_firstlineno <= line <= code.co_firstlineno + 4
        assert str(observer.users_place(frame)).endswith(f"test_observer.py:{line}")
        observer.synchronised(".item()", 0.1, frame)


def test_only_one_process_is_observed(
    observer: Observer, pipe: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    step(observer, Optimiser())
    other = Observer(str(pipe.parent))
    step(other, Optimiser())
    assert (observer.speaks, other.speaks, other.steps) == (True, False, 1)
    monkeypatch.setenv("RANK", "1")
    rank = Observer(str(pipe.parent))
    step(rank, Optimiser())
    assert (rank.speaks, rank.steps) == (False, 1)


def test_a_broken_observer_stops_only_a_confined_command(tmp_path: Path) -> None:
    site = Path(trainmark.inject.__file__).parent / "site"
    environment = {**os.environ, "PYTHONPATH": str(site), FOLDER: str(tmp_path / "missing")}
    words = [sys.executable, "-c", "import sys; print(sys.path)"]
    printed = subprocess.run(words, env=environment, capture_output=True, text=True, check=True)
    assert str(site) not in printed.stdout
    assert printed.stderr == ""
    experiment = subprocess.run(
        words, env={**environment, ORIGINAL: ""}, capture_output=True, text=True, check=False
    )
    assert (experiment.returncode, experiment.stdout) == (1, "")
    assert "trainmark can't protect your files in Python 3" in experiment.stderr


def test_a_report_is_sent_even_if_an_addition_to_it_fails(observer: Observer, pipe: Path) -> None:
    def fails(reads: bool) -> list[dict[str, Any]]:
        raise KeyError(reads)

    observer.also_report = fails
    leader = Optimiser()
    step(observer, leader)
    step(observer, leader)
    observer._report()
    *_, last = said(pipe, "observed")
    assert last["steps"] == 2
    assert last["injected"].count("not also_report: KeyError: True") == 1
