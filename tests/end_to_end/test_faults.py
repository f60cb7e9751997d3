"""Every fault leaves a record that names it, and nothing else is lost."""

from __future__ import annotations

import signal
import time
from pathlib import Path
from typing import Any

import psutil
import pytest

from tests.end_to_end.command import CommandLine, alive, measured, wait_until
from tests.slow import slow
from trainmark.record import folder_lock


@pytest.mark.parametrize(
    ("fake", "status", "reason", "tail"),
    [
        ({"fail": "raise"}, "failed", "RuntimeError: the fake was asked to fail", "Traceback"),
        ({"fail": "kill"}, "failed", "killed by SIGKILL", None),
        slow({"fail": "crash"}, "failed", "killed by SIGSEGV", None),
        slow({"fail": "exit"}, "failed", "exit code 7", "last words"),
        slow({"fail": "memory"}, "failed", "out of memory", "MemoryError"),
        ({"fail": "nan", "at_step": 13}, "diverged", "loss is NaN at step 13", None),
    ],
    ids=lambda value: value.get("fail") if isinstance(value, dict) else "",
)
def test_a_failing_run_is_recorded_and_the_others_go_on(
    command: CommandLine, fake: dict[str, Any], status: str, reason: str, tail: str | None
) -> None:
    code, _, err = command.train(
        "--repeats", "1", "--device", "cuda:0,cpu", fake={"only_on": "cuda:0", **fake}
    )
    assert code == 1
    by_device = {record.device.id: record for record in command.records()}
    assert (by_device["cuda:0"].outcome.status, by_device["cpu"].outcome.status) == (status, "ok")
    record = by_device["cuda:0"]
    assert reason in (record.outcome.reason or "") and reason in err
    if tail:
        assert tail in (record.outcome.stderr_tail or "")
    if status == "diverged":
        assert record.outcome.step == 13
        assert record.outcome.loss_before == pytest.approx(record.step_losses[12])
        assert record.step_losses[13] != record.step_losses[13], "the NaN itself is kept"


def test_a_hung_run_ends_by_its_timeout(command: CommandLine) -> None:
    started = time.monotonic()
    code, *_ = command.train(
        "--repeats",
        "1",
        "--device",
        "cuda:0,cpu",
        "--timeout",
        "12",
        fake={"fail": "hang", "only_on": "cuda:0"},
    )
    assert code == 1
    assert sorted(command.outcomes()) == ["ok", "timeout"]
    assert time.monotonic() - started < 120


def test_ctrl_c_keeps_what_is_finished_and_resume_does_the_rest(command: CommandLine) -> None:
    arguments = command.train_arguments("--repeats", "2", "--device", "cpu")
    process = command.start(*arguments, fake={"step_seconds": 0.05})
    earlier: set[int] = set()

    def first_is_done() -> bool:
        now = {child.pid for child in measured(process.pid)}
        if "ok" in command.outcomes():
            return True
        # none of them is the second: they existed before the first was recorded
        earlier.update(now)
        return False

    wait_until(first_is_done)
    children = wait_until(
        lambda: [child for child in measured(process.pid) if child.pid not in earlier]
    )
    process.send_signal(signal.SIGINT)
    _, err = process.communicate(timeout=120)
    assert process.returncode == 130, err
    assert "Finished runs are in" in err and "--resume" in err and "Traceback" not in err
    assert command.outcomes() == ["ok", "interrupted"]
    assert not alive(children)
    first = command.records()[0].id
    assert command.train("--repeats", "2", "--device", "cpu", "--resume")[0] == 0
    finished = [record for record in command.records() if record.outcome.status == "ok"]
    assert [record.round for record in finished] == [0, 1]
    assert finished[0].id == first


def sleeps(process: psutil.Process) -> bool:
    before = process.cpu_times()
    time.sleep(0.5)
    return bool(process.memory_info().rss > 75e6 and process.cpu_times() == before)


def test_children_die_with_a_killed_parent(command: CommandLine) -> None:
    process = command.start(
        *command.train_arguments("--repeats", "1", "--device", "cpu"), fake={"step_seconds": 1.0}
    )
    # the processes of the probes have ended
    lock = folder_lock.path_of(command.out)
    wait_until(lambda: lock.exists() and lock.read_text())
    (child,) = wait_until(lambda: measured(process.pid))
    # the fake does this while it 'trains'; otherwise it would send something and notice
    wait_until(lambda: sleeps(child))
    process.kill()
    process.communicate()
    # Unless killed, it would train for almost 40 s more.
    wait_until(lambda: not alive([child]), seconds=20.0)


def test_two_runs_into_one_folder(command: CommandLine) -> None:
    process = command.start(
        *command.train_arguments("--repeats", "1", "--device", "cpu"), fake={"step_seconds": 0.2}
    )
    lock = folder_lock.path_of(command.out)
    wait_until(lambda: lock.exists() and lock.read_text())
    code, _, err = command.train("--repeats", "1", "--device", "cpu")
    assert code == 2
    assert "another trainmark is running into" in err and str(process.pid) in err
    process.communicate(timeout=120)
    assert process.returncode == 0
    assert command.outcomes() == ["ok"], "the first one is undisturbed"


def test_a_folder_that_cannot_be_written(command: CommandLine, tmp_path: Path) -> None:
    command.out = tmp_path / "file"
    command.out.write_text("a file, not a folder")
    code, _, err = command.train("--repeats", "1")
    assert code == 2
    assert "can't write to" in err and "--out" in err
    assert command.out.read_text() == "a file, not a folder"


FAKE = ("--backend", "fake", "--dataset", "synthetic-digits")
NUMPY = ("--backend", "numpy", "--dataset", "synthetic-digits")


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["run", "mnist-mlp51"], "Did you mean mnist-mlp512"),
        (["run", "--backend", "troch"], "Did you mean torch"),
        (["run", *FAKE, "--device", "cuda:7"], "does not see the device 'cuda:7'"),
        (["run", *FAKE, "--style", "fats"], "Did you mean fast"),
        (["run", *FAKE, "--precision", "fp46"], "unknown precision"),
        (["run", *NUMPY, "--precision", "bf16"], "does not have the precision"),
        (["run", *NUMPY, "--style", "fast"], "does not have the style"),
        (["run", *FAKE, "--device", "cpu", "--memory-fraction", "0.5"], "no meaning on a CPU"),
        (["run", *FAKE, "--weights-from", "/no/such.json"], "no record at /no/such.json"),
        (["run", "--backend", "fake", "--dataset", "mnits"], "Did you mean mnist"),
        (["run", "cifar10-cnn", *FAKE], "expected images of 28 × 28 × 1"),
        (["run", "--backend", "fake@old"], "unknown interpreter label 'old'"),
        (
            ["run", *FAKE, "--backend", "fake@old", "--python", "old=/no/such/python"],
            "can't be started",
        ),
        (["run", *FAKE, "--python", "old=/bin/true"], "is not used"),
        (["run", "--python", "nonsense"], "expected LABEL="),
        (["run", "--published", "--epochs", "3"], "can't be combined with --published"),
        (["run", "--epochs", "3", "--steps", "3"], "can't be combined"),
        (["run", "--data-dir", "/no/such/folder"], "expected a folder, found nothing"),
        (["run", "--epochs", "0"], "--epochs"),
        (["run", "--steps", "9" * 40], "steps: expected at most 10,000,000"),
        (["run", "--dataset-repeats", "9" * 40], "dataset_repeats: expected at most 10,000,000"),
        (["run", "--seed", "9" * 40], "is not in the range"),
        (["run", "--threads", "9" * 40], "is not in the range"),
        (["run", "--repeats", "9" * 40], "is not in the range"),
        (["run", "mnist-cnn", "--backend", "fake", "--style", "fats"], "Did you mean fast"),
        (
            ["run", "mnist-cnn", "--backend", "fake", "--device", "cuda:7"],
            "does not see the device",
        ),
        (["run", "no-such.toml"], "no-such.toml can't be read: found No such file"),
        (["frobnicate"], "unknown command"),
    ],
    ids=lambda value: " ".join(value[1:]) if isinstance(value, list) else "",
)
def test_wrong_usage_is_exit_2_and_says_what_to_do(
    command: CommandLine, arguments: list[str], said: str
) -> None:
    out = ["--out", str(command.out)] if arguments[0] == "run" else []
    code, stdout, err = command.run(*arguments, *out)
    assert code == 2, err
    assert said in err
    assert "Traceback" not in err and stdout == ""
    assert command.records() == []


def test_a_child_that_is_no_python(command: CommandLine) -> None:
    code, _, err = command.run(
        "run",
        "--backend",
        "fake@odd",
        "--python",
        "odd=/bin/ls",
        "--dataset",
        "synthetic-digits",
        "--out",
        str(command.out),
    )
    assert code == 2
    assert "does not work in /bin/ls" in err


def test_a_damaged_file_in_a_named_folder_is_an_error(
    command: CommandLine, tmp_path: Path, data_dir: Path
) -> None:
    folder = tmp_path / "mnist"
    folder.mkdir()
    for file in (data_dir / "mnist").iterdir():
        content = file.read_bytes()
        (folder / file.name).write_bytes(
            content[: len(content) // 2] if "train-labels" in file.name else content
        )
    code, _, err = command.run(
        "run",
        "mnist-mlp128",
        "--backend",
        "fake",
        "--data-dir",
        str(tmp_path),
        "--out",
        str(command.out),
    )
    assert code == 1
    assert "train-labels" in err and "expected" in err
    assert command.records() == []


def test_resume_into_an_empty_folder_is_a_plain_run(command: CommandLine) -> None:
    code, *_ = command.train("--repeats", "1", "--device", "cpu", "--resume")
    assert code == 0
    assert command.outcomes() == ["ok"]


def test_a_continued_training_that_diverged_is_not_trained_again(command: CommandLine) -> None:
    arguments = ("--protocol", "continued", "--repeats", "3", "--device", "cpu")
    code, *_ = command.train(*arguments, fake={"fail": "nan", "at_step": 13})
    assert code == 1
    assert command.outcomes() == ["diverged"]
    code, out, _ = command.train(*arguments, "--resume")
    assert code == 0 and "Nothing to do" in out
    assert command.outcomes() == ["diverged"]


def test_every_finished_repeat_is_heard_before_the_end(command: CommandLine) -> None:
    """Twenty repeats end within a moment, faster than their records can be written."""
    arguments = ("--protocol", "continued", "--repeats", "20", "--device", "cpu", "--steps", "1")
    code, *_ = command.train(*arguments, fake={"step_seconds": 0.0})
    assert code == 0
    assert command.outcomes() == ["ok"] * 20


def test_foreign_json_in_the_folder_stops_resume_and_nothing_is_lost(command: CommandLine) -> None:
    command.train("--repeats", "1", "--device", "cpu")
    (command.out / "notes.json").write_text("{}")
    code, _, err = command.train("--repeats", "2", "--device", "cpu", "--resume")
    assert code == 1
    assert "notes.json is not a trainmark record" in err
    (command.out / "notes.json").unlink()
    assert command.outcomes() == ["ok"]


def test_a_network_too_narrow_for_the_classes(command: CommandLine, tmp_path: Path) -> None:
    from trainmark.workload import catalog

    own = tmp_path / "narrow.toml"
    own.write_text(
        (Path(catalog.__file__).parent / "mnist-mlp128.toml")
        .read_text()
        .replace("units = 10\n", "units = 5\n")
    )
    code, _, err = command.run("run", str(own), *FAKE, "--out", str(command.out))
    assert code == 2
    assert "expected one value for each of the 10 classes" in err


def test_a_name_longer_than_a_file_name_and_full_of_markup(
    command: CommandLine, tmp_path: Path
) -> None:
    from trainmark.workload import catalog

    text = (Path(catalog.__file__).parent / "mnist-mlp128.toml").read_text()
    own = tmp_path / "long.toml"
    own.write_text(text.replace('name = "mnist-mlp128"', f'name = "[/bold]../{"x" * 400}"'))
    code, _, err = command.run(
        "run",
        str(own),
        *FAKE,
        "--style",
        "fast",
        "--device",
        "cpu",
        "--steps",
        "3",
        "--repeats",
        "1",
        "--out",
        str(command.out),
    )
    assert code == 0, err
    assert command.outcomes() == ["ok"]
    assert [path.parent for path in tmp_path.rglob("*.json")] == [command.out], (
        "names can't leave --out"
    )
