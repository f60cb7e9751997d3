"""Which runs on the CPU get their best number of threads."""

from __future__ import annotations

from pathlib import Path

import pytest
from msgspec import structs

from tests.records import a_record, as_planned
from trainmark.backends.base import Capabilities, Device
from trainmark.data.locate import Located
from trainmark.execute.parent.command import Command, sides
from trainmark.execute.parent.plan import ScheduledWorkload, Settings, Side
from trainmark.execute.parent.probe import THIS, Seen
from trainmark.execute.parent.task import command_in_rounds, in_rounds
from trainmark.record.record import Group, ThreadsSearch
from trainmark.study.run import known_threads, with_fair_cpu, with_fair_cpu_of_command
from trainmark.workload import catalog

DEVICES = (
    Device("cpu", "CPU", "cpu", None, ("fp32",)),
    Device("cuda:0", "GPU", "accelerator", None, ("fp32",)),
)


DATA = Located("mnist", Path("/nowhere"), "cache", "5f" * 32, True, 60_000, 10_000)
COURSE = ScheduledWorkload(catalog.find("mnist-mlp512"), DATA, 1)


def marked(devices: list[str], threads: int | None = None) -> list[bool]:
    """Return whether the run on each device is marked."""
    can = Capabilities("torch", "2.0", ("fast",), DEVICES, kinds=frozenset())
    sides = [Side("torch", "fast", device, THIS) for device in devices]
    tasks = in_rounds([(COURSE, sides)], Settings(threads=threads))
    found = with_fair_cpu(tasks, {("torch", THIS.label): Seen("torch", THIS, can)})
    return [task.first.next_to_accelerator for task in found]


def test_only_a_cpu_next_to_an_accelerator_is_marked() -> None:
    assert marked(["cpu", "cuda:0"]) == [True, False]


@pytest.mark.parametrize("devices", [["cpu"], ["cuda:0"]])
def test_one_kind_of_device_is_left_as_it_is(devices: list[str]) -> None:
    assert marked(devices) == [False]


def test_a_number_of_threads_that_was_asked_for_stays() -> None:
    assert marked(["cpu", "cuda:0"], threads=4) == [False, False]


def marked_of_command(devices: tuple[str, ...], threads: int | None = None) -> list[bool]:
    """Return whether the run of a command on each device is marked."""
    command = Command("train.py", ("python", "train.py", "{device}"), Path("/work"))
    tasks = command_in_rounds(command, sides(command, devices, {}), 1, Settings(threads=threads))
    return [task.first.next_to_accelerator for task in with_fair_cpu_of_command(tasks)]


def test_a_commands_cpu_is_marked_next_to_an_accelerator() -> None:
    assert marked_of_command(("cpu", "cuda:0")) == [True, False]


@pytest.mark.parametrize("devices", [("cpu",), ("cuda:0", "cuda:1")])
def test_a_command_on_one_kind_of_device_is_left_as_it_is(devices: tuple[str, ...]) -> None:
    assert not any(marked_of_command(devices))


def test_a_command_with_a_fixed_number_of_threads_keeps_it() -> None:
    assert marked_of_command(("cpu", "cuda:0"), threads=4) == [False, False]


def test_a_resumed_study_reuses_its_number_of_threads() -> None:
    task = in_rounds([(COURSE, [Side("numpy", "fast", "cpu", THIS)])], Settings())[0]
    search = ThreadsSearch(chosen=4, default=16, step_seconds={"4": 0.01, "16": 0.015})
    found = as_planned(a_record(threads_search=search, group=task.first.group_id), task.first)
    assert known_threads([task], [found]) == {task.first.title: search}
    assert known_threads([task], [structs.replace(found, group=Group("another"))]) == {}
