"""Placeholders make the sides of a comparison."""

from __future__ import annotations

import dataclasses
import platform
import sys
from pathlib import Path

import pytest
from msgspec import structs

from tests.records import a_command
from trainmark import landlock
from trainmark.errors import UsageError
from trainmark.execute.parent.command import (
    Command,
    CommandRun,
    CommandSide,
    name_of,
    program_of,
    require_small,
    sides,
)
from trainmark.execute.parent.command_record import CommandRecordBuilder
from trainmark.execute.parent.machine_state import read_machine_state
from trainmark.execute.parent.plan import Settings
from trainmark.execute.parent.task import command_in_rounds, remaining
from trainmark.record.record import Group, Process, WorkloadRef


def command(*words: str) -> Command:
    return Command("train.py", words, Path("/work"))


def test_each_combination_is_a_side_and_runs_once_in_each_round() -> None:
    measured = command(
        "python", "train.py", "--device={device}", "--workers", "{workers}", "--seed", "{seed}"
    )
    every = sides(measured, ("cpu", "cuda:0"), {"workers": ("0", "4")})
    assert [side.title for side in every] == [
        "device=cpu workers=0",
        "device=cpu workers=4",
        "device=cuda:0 workers=0",
        "device=cuda:0 workers=4",
    ]
    tasks = command_in_rounds(measured, every, 2, Settings(seed=5))
    assert len(tasks) == 8
    assert tasks[0].first.words == [
        "python",
        "train.py",
        "--device=cpu",
        "--workers",
        "0",
        "--seed",
        "5",
    ]
    assert tasks[-1].first.words[-1] == "6"
    assert [task.first.seed for task in tasks] == [5] * 4 + [6] * 4
    assert len({task.first.key for task in tasks}) == 8


def test_a_flag_can_be_varied_by_an_empty_value() -> None:
    measured = Command("train.py", ("python", "train.py", "{fix}", "", "--n={fix}"), Path("/work"))
    assert measured.words({"fix": ""}) == ["python", "train.py", "", "--n="]
    assert measured.words({"fix": "--fixed"})[2] == "--fixed"


def test_what_is_missing_completes_the_group_that_there_is() -> None:
    measured = Command("train.py", ("python", "train.py", "{x}"), Path("/work"))
    tasks = command_in_rounds(measured, sides(measured, (), {"x": ("1", "2")}), 1, Settings())
    done = a_command(
        process=Process(tasks[0].first.words, "/work"),
        workload=WorkloadRef("train.py", measured.fingerprint, measured.fingerprint, {}),
        machine=structs.replace(a_command().machine, name=platform.node()),
        group=Group("the first plan"),
    )
    (left,) = remaining(tasks, [done])
    assert left.first.words[-1] == "2"
    assert left.first.group_id == "the first plan"
    for elsewhere in (
        structs.replace(done, machine=structs.replace(done.machine, name="another")),
        structs.replace(done, process=Process(tasks[0].first.words, "/elsewhere")),
    ):
        assert remaining(tasks, [elsewhere]) == tasks


def test_an_edited_script_is_something_else(tmp_path: Path) -> None:
    script = tmp_path / "train.py"
    script.write_text("1")
    measured = Command("train.py", ("python", "train.py"), tmp_path)
    (task,) = command_in_rounds(measured, sides(measured, (), {}), 1, Settings())
    before = task.first.key
    assert task.first.key == before
    script.write_text("2")
    assert task.first.key != before
    script.unlink()
    assert task.first.program_sha256 is None


def test_braces_can_be_written() -> None:
    measured = command("echo", '{{"a": {x}}}', "{ }", "{1}")
    assert measured.words({"x": "3"}) == ["echo", '{"a": 3}', "{ }", "{1}"]


def test_braces_in_a_value_are_not_replaced() -> None:
    assert command("echo", "{a}").words({"a": "{b} {{"}) == ["echo", "{b} {{"]


def test_without_anything_varied_there_is_one_side() -> None:
    (only,) = sides(command("make", "train"), (), {})
    assert (only.style, only.device, only.title) == (None, None, "as is")


@pytest.mark.parametrize(
    ("words", "devices", "varied", "said"),
    [
        (("a", "{device}"), (), {}, "unknown placeholder 'device'"),
        (("a", "{wrokers}"), (), {"workers": ("1",)}, "Did you mean workers"),
        (("a", "{x}"), (), {}, "Give its values with --vary x=a,b"),
        (("a",), (), {"workers": ("1",)}, "does not contain {workers}"),
        (("a", "{workers}", "{wrokers}"), (), {"workers": ("1",)}, "Did you mean workers"),
        (("a",), ("cpu",), {}, "does not contain {device}"),
        (("a", "{seed}"), (), {"seed": ("1",)}, "changes with the round"),
    ],
)
def test_placeholders_and_their_values_must_match(
    words: tuple[str, ...], devices: tuple[str, ...], varied: dict[str, tuple[str, ...]], said: str
) -> None:
    with pytest.raises(UsageError, match=said.replace("{", r"\{")):
        sides(command(*words), devices, varied)


def test_fingerprints_depend_on_words_and_not_on_values() -> None:
    assert command("a", "{x}").fingerprint == command("a", "{x}").fingerprint
    assert command("a", "{x}").fingerprint != command("a", "{y}").fingerprint
    assert command("a b").fingerprint != command("a", "b").fingerprint


def test_a_limit_of_steps_changes_the_fingerprint() -> None:
    whole = command("a")
    prints = {
        dataclasses.replace(whole, most_steps=steps).fingerprint for steps in (None, 100, 200)
    }
    assert len(prints) == 3


@pytest.mark.parametrize(
    ("words", "name"),
    [
        (("python", "-u", "src/train.py", "--x"), "train.py"),
        (("./train-in-c", "10"), "train-in-c"),
        (("julia", "train.jl", "data.py"), "train.jl"),
        (("torchrun", "--nproc", "2", "{version}/main.py"), "main.py"),
    ],
)
def test_a_training_is_called_after_its_script(words: tuple[str, ...], name: str) -> None:
    assert name_of(words) == name


def test_a_side_names_what_it_varies() -> None:
    side = CommandSide({"device": "cpu", "rate": "0.1", "workers": "2"})
    assert (side.device, side.style) == ("cpu", "rate=0.1 workers=2")


@pytest.mark.parametrize(
    ("words", "program", "name"),
    [
        ("python3 train.py --lr 1", "python3", "train.py"),
        ("env A=1 nice -n 5 taskset 0x3 sh run.sh", "sh", "run.sh"),
        ("env -u A sh -c true", "sh", "sh"),
        ("nice ./missing", "nice", "nice"),
        ("env", "env", "env"),
        (
            f"timeout 60 {sys.executable} -m package.train",
            Path(sys.executable).name,
            "package.train",
        ),
        ("sh -m x", "sh", "sh"),
    ],
)
def test_launchers_are_not_the_program(words: str, program: str, name: str) -> None:
    assert (program_of(words.split()), name_of(words.split())) == (program, name)


def test_environment_variables_make_sides(tmp_path: Path) -> None:
    measured = Command("train.py", ("train.py", "{n}"), tmp_path)
    found = sides(measured, (), {"n": ("1", "2")}, {"A": ("x", "y")})
    assert [(side.title, side.environment) for side in found][1:3] == [
        ("n=1 A=y", {"A": "y"}),
        ("n=2 A=x", {"A": "x"}),
    ]
    runs = [CommandRun(measured, side, Settings(), 0, 0, "group", "session") for side in found[:2]]
    assert runs[0].key != runs[1].key
    assert runs[1].request(0.0, []).environment == {"A": "y"}


def test_a_folder_too_large_to_copy_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "data").mkdir()
    (tmp_path / "data" / "a").write_bytes(bytes(3 << 20))
    (tmp_path / "b").write_bytes(bytes(1 << 20))
    (tmp_path / ".git").mkdir()
    (tmp_path / ".git" / "pack").write_bytes(bytes(8 << 20))
    measured = dataclasses.replace(
        command("python", "train.py"), directory=tmp_path, most_copied=2 << 20
    )
    require_small(dataclasses.replace(measured, most_copied=5 << 20))
    monkeypatch.setenv(landlock.OFF_VARIABLE, "off")
    with pytest.raises(UsageError, match=r"found 4.00 MiB: data 3.00 MiB, b 1.00 MiB"):
        require_small(measured)


@pytest.mark.skipif(not landlock.is_sufficient(), reason="this kernel has no sufficient Landlock")
def test_a_confined_folder_may_be_large(tmp_path: Path) -> None:
    (tmp_path / "data").write_bytes(bytes(2_000))
    measured = dataclasses.replace(
        command("python", "train.py"), directory=tmp_path, most_copied=1_000
    )
    require_small(measured)


@pytest.mark.parametrize("is_sufficient", [True, False])
def test_a_copy_is_confined_where_the_kernel_can(
    monkeypatch: pytest.MonkeyPatch, is_sufficient: bool
) -> None:
    monkeypatch.setattr(landlock, "is_sufficient", lambda: is_sufficient)
    measured = dataclasses.replace(command("python", "train.py"), scratch=True)
    run = CommandRun(measured, CommandSide({}), Settings(), 0, 0, "group", "session")
    assert run.request(0.0, []).confined is is_sufficient
    in_place = CommandRun(
        command("python", "train.py"), CommandSide({}), Settings(), 0, 0, "group", "session"
    )
    assert not in_place.request(0.0, []).confined


def test_the_id_of_a_record_is_short_enough_for_a_file_name() -> None:
    measured = Command(
        "train.py",
        ("python", "train.py", *(f"{{v{number}}}" for number in range(6))),
        Path("/work"),
    )
    values = {f"v{number}": (f"/{number}" + "x" * 90,) for number in range(6)}
    (task,) = command_in_rounds(measured, sides(measured, (), values), 1, Settings())
    assert len(CommandRecordBuilder(task.first, read_machine_state({}), "01234567").id) <= 210


def test_the_notebook_that_exists_names_a_command_and_not_the_one_that_it_writes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    words = ("python", "-m", "nbconvert", "--execute", "--output", "made.ipynb", "train.ipynb")
    assert name_of(words) == "made.ipynb"
    (tmp_path / "train.ipynb").touch()
    assert name_of(words) == "train.ipynb"
