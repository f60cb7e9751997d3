"""``trainmark measure`` as a person starts it, on real commands: good ones, and all kinds of bad
ones."""

from __future__ import annotations

import json
import os
import re
import shutil
import signal
import subprocess
import sys
from pathlib import Path
from statistics import median
from typing import Any

import psutil
import pytest

from tests.end_to_end.command import CommandLine, children, command_of, descendants, wait_until
from tests.slow import slow
from trainmark import __version__, units
from trainmark.execute.parent.turns import SLICE_SECONDS
from trainmark.hook import VARIABLE
from trainmark.record.caveats import Caveat
from trainmark.record.growth import growth_of, memory_growth_of
from trainmark.record.record import Record

ROOT = Path(__file__).parents[2]
TRAIN = """
import argparse, time
from trainmark import hook
parser = argparse.ArgumentParser()
parser.add_argument("--device"); parser.add_argument("--pause", type=float, default=0.05)
parser.add_argument("--seed", type=int); parser.add_argument("--epochs", type=int, default=3)
options = parser.parse_args()
for epoch in range(options.epochs):
    time.sleep(options.pause)
    hook.epoch(loss=2.0 / (1 + epoch), accuracy=0.5 + 0.1 * epoch, examples=600, steps=6)
    hook.test(accuracy=0.5 + 0.1 * epoch)
"""


def measured(
    command: CommandLine, *words: str, options: tuple[str, ...] = ()
) -> tuple[int, str, list[Record]]:
    """Return the exit code, stderr and the records."""
    code, _, err = command.run(
        "measure", "--out", str(command.out), "--repeats", "1", *options, "--", *words
    )
    return code, err, command.records()


@pytest.fixture
def script(tmp_path: Path) -> str:
    path = tmp_path / "train.py"
    path.write_text(TRAIN)
    return str(path)


def test_a_script_that_reports_is_measured_by_its_epochs(command: CommandLine, script: str) -> None:
    code, err, records = measured(
        command, sys.executable, script, "--device", "{device}", "--seed", "{seed}",
        options=("--device", "cpu,other", "--repeats", "2", "--seed", "3"),
    )  # fmt: skip
    assert code == 0, err
    assert sorted((record.seed, record.device.id) for record in records) == [
        (3, "cpu"), (3, "other"), (4, "cpu"), (4, "other")
    ]  # fmt: skip
    first = records[0]
    assert (first.workload.name, first.backend.style, first.outcome.status) == (
        "train.py",
        None,
        "ok",
    )
    assert (first.dataset, first.model, first.metrics, first.backend.precision) == (
        None,
        None,
        None,
        None,
    )
    assert [epoch.examples for epoch in first.epochs] == [600] * 3
    assert [epoch.train_loss for epoch in first.epochs] == [2.0, 1.0, pytest.approx(2 / 3)]
    assert first.final.test_accuracy == pytest.approx(0.7)
    assert all(0.05 <= epoch.seconds < 20 for epoch in first.epochs)
    assert first.process is not None and first.process.seconds is not None
    assert first.process.seconds > sum(epoch.seconds for epoch in first.epochs)
    assert first.process.language is not None and first.process.language.startswith("Python 3")
    assert first.trainmark == __version__
    assert first.memory.host_peak_bytes is None, (
        "a small script's peak is hidden by that of the process before it"
    )
    assert Caveat.NO_EPOCHS not in first.caveats


STEPS = """
import sys, time
from trainmark import hook
for epoch in range(3):
    for batch in hook.batches(range(40)):
        time.sleep(float(sys.argv[1]))
    hook.epoch(loss=1.0 - epoch / 10, examples=1000)
"""


def test_scripts_that_report_take_turns(command: CommandLine, tmp_path: Path) -> None:
    script = tmp_path / "steps.py"
    script.write_text(STEPS)
    code, err, records = measured(
        command,
        sys.executable,
        str(script),
        "{wait}",
        options=("--vary", "wait=0.02,0.06", "--repeats", "2"),
    )
    assert code == 0, err
    paces: dict[str, list[float]] = {"0.02": [], "0.06": []}
    for record in records:
        assert len(record.slices) >= 4
        paces[record.process.argv[-1]].append(
            median(each.seconds / each.examples for each in record.slices)
        )
        assert all(
            each.seconds >= SLICE_SECONDS and each.timed_steps >= 2 for each in record.slices
        )
        trained = sum(epoch.seconds for epoch in record.epochs)
        began = record.epochs[0].start_seconds
        last = (record.epochs[-1].windows or record.epochs)[-1]
        paused = last.start_seconds + last.seconds - began - trained
        apart = record.process.seconds - trained - (began - record.process.start_seconds)
        assert 0 <= apart < 0.5 * paused, "pauses are part of neither"
        assert sum(len(epoch.windows) > 1 for epoch in record.epochs) >= 1
    assert all(
        short < 0.75 * long for short, long in zip(paces["0.02"], paces["0.06"], strict=True)
    )
    code, out, _ = command.run("compare", str(command.out), "--format", "json")
    assert code == 0
    second = json.loads(out)["groups"][1]["speedup"]
    assert second["of"] == "slice"
    assert second["ratio"] == pytest.approx(median(paces["0.02"]) / median(paces["0.06"]), rel=0.25)


BUSY = """
import os, subprocess, sys, time
from trainmark import hook
helper = subprocess.Popen([sys.executable, "-c", "while True: pass"])
for batch in hook.batches(range(150)):
    time.sleep(0.01)
hook.epoch(loss=1.0)
helper.kill()
helper.wait()
open(sys.argv[1], "w").write(str(os.times().children_user))
"""


def test_while_one_has_its_turn_all_processes_of_the_others_rest(
    command: CommandLine, tmp_path: Path
) -> None:
    script = tmp_path / "busy.py"
    script.write_text(BUSY)
    used = [str(tmp_path / name) for name in "ab"]
    code, err, records = measured(
        command,
        sys.executable,
        str(script),
        "{file}",
        options=("--in-place", "--vary", f"file={','.join(used)}"),
    )
    assert code == 0, err
    for record, file in zip(records, used, strict=True):
        assert record.slices
        assert record.process is not None and record.process.argv[-1] == file
        assert float(Path(file).read_text()) < 1.5 * record.process.seconds + 0.2, (
            "its helper computed in pauses"
        )


def test_a_script_that_is_killed_while_the_other_waits_keeps_it_from_nothing(
    command: CommandLine, tmp_path: Path
) -> None:
    script = tmp_path / "steps.py"
    script.write_text(
        STEPS + "    if sys.argv[2] == 'dies' and epoch == 1: import os; os.kill(os.getpid(), 9)\n"
    )
    code, err, records = measured(
        command, sys.executable, str(script), "0.02", "{how}", options=("--vary", "how=dies,lives")
    )
    assert code == 1, err
    assert {record.process.argv[-1]: record.outcome.status for record in records} == {
        "dies": "failed",
        "lives": "ok",
    }
    assert all(record.slices for record in records), "what was measured is kept"


@pytest.mark.slow
def test_a_script_that_does_not_is_measured_as_a_whole(command: CommandLine) -> None:
    code, err, records = measured(
        command, sys.executable, "-c", "import time; time.sleep({pause})",
        options=("--vary", "pause=0.1,1.0", "--repeats", "4"),
    )  # fmt: skip
    assert code == 0, err
    assert all(Caveat.NO_EPOCHS in record.caveats for record in records)
    code, out, _ = command.run(
        "compare", str(command.out), "--baseline", "style=pause=1.0", "--json"
    )
    assert code == 0
    quick = next(
        group for group in json.loads(out)["groups"] if group["key"]["style"] == "pause=0.1"
    )
    assert quick["speedup"]["of"] == "process"
    assert quick["speedup"]["verdict"] == "faster"
    assert quick["epoch_seconds"]["median"] is None
    assert quick["process_seconds"]["median"] >= 0.1


def test_growing_list_comes_before_everything_else(command: CommandLine) -> None:
    pytest.importorskip("torch")
    script = Path(__file__).parent / "own_scripts" / "growing_list.py"
    words = ("--repeats", "1", "--out", str(command.out), "--steps", "1000")
    code, out, err = command.run("measure", *words, "--", sys.executable, str(script), "3000")
    assert code == 0, err
    (record,) = command.records()
    assert record.observed is not None
    first = out.lstrip().splitlines()[0]
    assert first.startswith("On average, each step takes "), str(record.observed.step_times)
    assert " longer than the one before: " in first
    found = growth_of(record.observed)
    assert found is not None
    longer = units.seconds(found.at(10 * found.last_step))
    assert f"and about {longer} after {10 * found.last_step:,.0f}, if this goes on" in first
    assert found.at(found.last_step) > 1.3 * found.first


def test_memory_growth_is_continued_to_the_end_of_an_earlier_run(
    command: CommandLine,
) -> None:
    pytest.importorskip("torch")
    script = Path(__file__).parent / "own_scripts" / "leaks.py"
    words = ("--repeats", "1", "--out", str(command.out))
    training = ("--", sys.executable, str(script), "450")
    code, out, err = command.run("measure", *words, *training)
    assert code == 0, err
    assert "The private memory of the training process grows by" in out
    assert "in the last step" not in out
    code, out, err = command.run("measure", *words, "--steps", "350", *training)
    assert code == 0, err
    assert "in the last step, number 450, if this goes on." in out
    longest = max(command.records(), key=lambda each: each.observed.steps if each.observed else 0)
    assert longest.observed is not None
    found = memory_growth_of(longest.observed)["process"]
    assert 400_000 < found.each < 1_000_000


@pytest.mark.slow  # the workflow's commands find one, too
def test_a_planted_slowdown_is_found_and_fails_the_bar(command: CommandLine, script: str) -> None:
    code, err, _ = measured(
        command, sys.executable, script, "--pause", "{pause}", "--epochs", "5",
        options=("--vary", "pause=0.1,0.2", "--repeats", "4"),
    )  # fmt: skip
    assert code == 0, err
    folder = str(command.out)
    code, out, _ = command.run("compare", folder, "--json")
    reference, slow = json.loads(out)["groups"]
    assert slow["speedup"]["verdict"] == "slower"
    assert slow["learning"]["verdict"] == "same"
    planted = slow["epoch_seconds"]["median"] - reference["epoch_seconds"]["median"]
    assert planted == pytest.approx(0.1, rel=0.3)
    assert command.run("compare", folder, "--fail-below", "0.9")[0] == 3


def test_the_page_table_export_and_show_take_such_records(
    command: CommandLine, script: str, tmp_path: Path
) -> None:
    assert (
        measured(
            command, sys.executable, script, "--pause", "{p}", options=("--vary", "p=0.02,0.03")
        )[0]
        == 0
    )
    code, out, err = command.run("compare", str(command.out), "--format", "markdown")
    assert code == 0, err
    assert "process" in out and "p=0.03" in out
    path = str(next(command.out.glob("*.json")))
    code, out, err = command.run("show", path)
    assert code == 0, err
    assert "not known of a command" in out
    code, out, err = command.run("explain", path, "--json")
    assert code == 0, err
    assert "start-up" in {each["what"] for each in json.loads(out)["observations"]}
    code, _, err = command.run(
        "export", str(command.out), "--to", "csv", "-o", str(tmp_path / "export")
    )
    assert code == 0, err
    code, _, err = command.run("predict", path)
    assert code in (1, 2) and "of a command" in err
    pytest.importorskip("vl_convert", reason="trainmark[report] is not installed")
    code, _, err = command.run("report", str(command.out), "-o", str(tmp_path / "page.html"))
    assert code == 0, err
    assert "published" not in err
    assert "train.py" in (tmp_path / "page.html").read_text()


def test_what_is_missing_is_done_by_resume_and_nothing_twice(
    command: CommandLine, script: str
) -> None:
    words = (sys.executable, script, "--pause", "{p}")
    assert measured(command, *words, options=("--vary", "p=0.01"))[0] == 0
    code, err, records = measured(
        command, *words, options=("--vary", "p=0.01,0.02", "--repeats", "2", "--resume")
    )
    assert code == 0, err
    assert sorted((record.backend.style, record.round) for record in records) == [
        ("p=0.01", 0), ("p=0.01", 1), ("p=0.02", 0), ("p=0.02", 1),
    ]  # fmt: skip


def test_rounds_are_added_only_where_a_budget_is_given(
    command: CommandLine, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)  # each run takes a copy of the working folder; this one is empty
    # These start sooner than Python, so three rounds fit on a slow machine, too
    script = ("sh", "-c", "sleep 0.2", "{which}")
    for budget, least, most in ((), 2, 2), (("--budget", "25"), 3, 100):
        options = ("--vary", "which=a,b", "--repeats", "2", *budget)
        code, err, records = measured(command, *script, options=options)
        assert code == 0, err
        assert least <= len({record.round for record in records}) <= most
        for record in records:
            Path(command.out, f"{record.id}.json").unlink()


BAD = {
    "is no program": (("./no-program",), "failed", "can't be started"),
    "ends with an exit code": (
        (sys.executable, "-c", "import sys; print('last words'); sys.exit(3)"),
        "failed",
        "exit code 3",
    ),
    "is killed": (
        (sys.executable, "-c", "import os; os.kill(os.getpid(), 9)"),
        "failed",
        "SIGKILL",
    ),
    "hangs": ((sys.executable, "-c", "import time; time.sleep(60)"), "timeout", "--timeout"),
    "asks for input": ((sys.executable, "-c", "input()"), "failed", "exit code 1"),
}


FAILS_EARLY = "if side == 'bad': sys.exit('no such weights')\n"
FAILS_LATE = "if side == 'bad' and step == 30: sys.exit('no such weights')\n"


@pytest.mark.parametrize("fails", ["early", slow("late")])
def test_a_failed_command_is_not_run_again_within_a_budget(
    command: CommandLine, tmp_path: Path, fails: str
) -> None:
    """The first two rounds start together; the second one is given up, without a record."""
    pytest.importorskip("torch", reason="torch is not installed")
    script = tmp_path / "own.py"
    script.write_text(
        "import sys\nside = sys.argv[1]\n"
        + (FAILS_EARLY if fails == "early" else "")
        + "import torch\nmodel = torch.nn.Linear(4, 4)\n"
        "optimizer = torch.optim.SGD(model.parameters(), 0.01)\n"
        "for step in range(200):\n"
        "    optimizer.zero_grad()\n    model(torch.randn(8, 4)).square().mean().backward()\n    "
        "optimizer.step()\n" + ("    " + FAILS_LATE if fails == "late" else "")
    )
    options = ("--vary", "side=bad,good", "--repeats", "2", "--budget", "120")
    code, err, records = measured(command, sys.executable, str(script), "{side}", options=options)
    assert code == 1, err
    assert [(record.round, record.outcome.status) for record in records] == [
        (0, "failed"),
        (0, "ok"),
    ]
    assert "no such weights" in err
    assert "the other rounds were skipped; --ignore-failure" in err
    assert not children(os.getpid())


@pytest.mark.parametrize("kind", BAD)
def test_a_bad_command_leaves_a_record_that_says_so_and_the_other_side_is_measured(
    command: CommandLine, kind: str, tmp_path: Path
) -> None:
    words, status, reason = BAD[kind]
    chooser = tmp_path / "choose.py"
    chooser.write_text(
        f"import os, sys\nif sys.argv[1] == 'bad': os.execv({words[0]!r}, {list(words)!r})\n"
    )
    whole = (sys.executable, str(chooser), "{side}")
    side = "side=bad,good"
    # its interpreter is missing, which only an attempt to start it shows
    if kind == "is no program":
        program = tmp_path / words[0]
        program.write_text("#!/no/such/interpreter\n")
        program.chmod(0o755)
        whole = ("{side}",)
        side = f"side={program},/bin/true"
    timeout = "10" if kind == "hangs" else "100"
    code, err, records = measured(command, *whole, options=("--vary", side, "--timeout", timeout))
    assert code == 1, err
    bad, good = records
    assert (bad.outcome.status, good.outcome.status) == (status, "ok")
    assert reason in (bad.outcome.reason or "")
    if kind == "ends with an exit code":
        assert "it said: last words" in err
        assert "last words" in (bad.outcome.stderr_tail or "")


def test_the_peak_of_a_large_process_is_reported(command: CommandLine) -> None:
    # It is started by a small process, since the peak of its parent hides a smaller one.
    words = ("--", sys.executable, "-c", "x = bytearray(400 << 20)")
    assert command.run_alone("measure", "--out", str(command.out), "--repeats", "1", *words)[0] == 0
    (record,) = command.records()
    assert 400 << 20 < (record.memory.host_peak_bytes or 0) < 800 << 20


def test_a_command_that_floods_the_pipe_is_measured_all_the_same(command: CommandLine) -> None:
    flood = f'(yes > "${VARIABLE}" &) ; sleep 1'
    code, err, (record,) = measured(command, "sh", "-c", flood)
    assert code == 0, err
    assert {Caveat.ODD_REPORTS, Caveat.LEFT_PROCESSES} <= set(record.caveats)
    assert record.process is not None and 0.9 < (record.process.seconds or 0) < 60


def test_processes_that_a_script_starts_do_not_move_its_epochs(
    command: CommandLine, tmp_path: Path
) -> None:
    path = tmp_path / "spawning.py"
    path.write_text(
        "import multiprocessing, time\nfrom trainmark import hook\n"
        "def work(): pass\n"
        "if __name__ == '__main__':\n"
        "    for loss in (2.0, 1.0):\n"
        "        time.sleep(0.3)\n"
        "        child = multiprocessing.get_context('spawn').Process(target=work)\n"
        "        child.start(); child.join()\n"
        "        hook.epoch(loss=loss)\n"
    )
    code, err, (record,) = measured(command, sys.executable, str(path))
    assert code == 0, err
    assert all(epoch.seconds > 0.3 for epoch in record.epochs)
    assert Caveat.ODD_REPORTS not in record.caveats


def test_garbage_on_the_protocol_is_counted_and_left_out(command: CommandLine) -> None:
    code_of_script = (
        f"import json, os, time; out = os.open(os.environ['{VARIABLE}'], os.O_WRONLY)\n"
        "def say(**more):\n"
        "    line = json.dumps({'trainmark': 1, 't': time.perf_counter(), **more})\n"
        "    os.write(out, line.encode() + b'\\n')\n"
        "os.write(out, b'\\xff garbage\\n'); say(event='epoch', loss=1.0)\n"
        "say(event='epoch', index=5); say(event='epoch', t=1.0); say(event='epoch', loss=0.5)"
    )
    code, err, (record,) = measured(command, sys.executable, "-c", code_of_script)
    assert code == 0, err
    assert len(record.epochs) == 2
    assert Caveat.ODD_REPORTS in record.caveats
    assert record.process is not None and record.process.left_out == 3


@pytest.mark.parametrize("losses", ["[1.0, float('nan')]", "[1.0, 1.5]"])
def test_a_training_that_learns_nothing_is_never_called_faster(
    command: CommandLine, losses: str
) -> None:
    code_of_script = f"from trainmark import hook\nfor loss in {losses}: hook.epoch(loss=loss)"
    code, err, (record,) = measured(command, sys.executable, "-c", code_of_script)
    diverged = "nan" in losses
    assert code == (1 if diverged else 0), err
    assert record.outcome.status == ("diverged" if diverged else "ok")
    assert Caveat.NOT_LEARNING in record.caveats


THIRD = """
import pathlib, sys, time
from trainmark import hook
for epoch in range(3):
    if epoch == 2:
        pathlib.Path(sys.argv[1]).touch()
        time.sleep(300)
    hook.epoch(loss=1.0 - epoch / 10)
"""


def test_a_script_killed_in_the_middle_of_an_epoch_leaves_the_epochs_it_had(
    command: CommandLine, tmp_path: Path
) -> None:
    begun = tmp_path / "begun"
    words = [sys.executable, "-c", THIRD, str(begun)]
    process = command.start("measure", "--out", str(command.out), "--repeats", "1", "--", *words)
    wait_until(begun.exists)
    (child,) = (each for each in descendants(process.pid) if command_of(each) == " ".join(words))
    child.send_signal(signal.SIGKILL)
    _, err = process.communicate(timeout=120)
    assert process.returncode == 1, err
    (record,) = command.records()
    assert record.outcome.status == "failed"
    assert "SIGKILL" in (record.outcome.reason or "")
    assert len(record.epochs) == 2


DAEMON = """
import os, sys, time
if os.fork() == 0:
    os.setsid()
    if os.fork() == 0:
        open(sys.argv[1], "w").write(str(os.getpid()))
        time.sleep(300)
    os._exit(0)
os.wait()
while not (os.path.exists(sys.argv[1]) and open(sys.argv[1]).read()):
    time.sleep(0.01)
time.sleep(float(sys.argv[2]))
"""


def _is_gone(pid: int) -> bool:
    try:
        return bool(psutil.Process(pid).status() == psutil.STATUS_ZOMBIE)
    except psutil.NoSuchProcess:
        return True


@pytest.mark.skipif(
    sys.platform != "linux", reason="only there can what leaves its process group be found"
)
@pytest.mark.parametrize("end", ["by itself", slow("timeout"), "ctrl-c", "kill -9 of trainmark"])
def test_a_daemon_does_not_outlive_the_command(
    command: CommandLine, tmp_path: Path, end: str
) -> None:
    pid_file = tmp_path / "pid"
    options = ("--timeout", "10") if end == "timeout" else ()
    process = command.start(
        "measure", "--out", str(command.out), "--repeats", "1", *options, "--",
        sys.executable, "-c", DAEMON, str(pid_file), "0" if end == "by itself" else "60",
    )  # fmt: skip
    wait_until(lambda: pid_file.exists() and pid_file.read_text() != "")
    daemon = int(pid_file.read_text())
    if end == "ctrl-c":
        process.send_signal(signal.SIGINT)
    elif end == "kill -9 of trainmark":
        process.kill()
    process.communicate(timeout=120)
    wait_until(lambda: _is_gone(daemon))
    if end == "by itself":
        (record,) = command.records()
        assert record.outcome.status == "ok"
        assert Caveat.LEFT_PROCESSES in record.caveats


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("--", "x", "{device}"), "unknown placeholder 'device'"),
        (("--device", "cpu", "--", "x"), "does not contain {device}"),
        (("--", "no-such-program"), "there is no executable 'no-such-program'"),
        (("--", "no-such-folder/program"), "or its path from /"),
        (("--", "echo 5"), "Remove the quotes"),
        (
            ("--vary", "a=true,no-such-program", "--", "{a}"),
            "there is no executable 'no-such-program'",
        ),
        (("--vary", "a", "--", "x", "{a}"), "can't be read"),
        (("--vary", "a=,true", "--", "{a}"), "there is no executable ''"),
        (("--vary", "a=", "--", "x", "{a}"), "can't be read"),
        (("--vary", "device=1", "--", "x", "{device}"), "can't be read"),
        ((), "missing argument"),
    ],
)
def test_what_makes_no_sense_is_refused_before_anything_runs(
    command: CommandLine, arguments: tuple[str, ...], said: str
) -> None:
    code, _, err = command.run("measure", "--out", str(command.out), *arguments)
    assert code == 2
    assert said in err
    assert not command.records()


def test_a_program_in_c_takes_part(command: CommandLine, tmp_path: Path) -> None:
    compiler = shutil.which("cc") or shutil.which("gcc")
    if compiler is None:
        pytest.skip("there is no C compiler here")
    program = tmp_path / "train-in-c"
    source = ROOT / "examples/other-language/train.c"
    subprocess.run(
        [compiler, "-O2", "-Wall", "-Werror", "-o", str(program), str(source), "-lm"], check=True
    )
    code, err, (record,) = measured(command, str(program), "4", "0.1")
    assert code == 0, err
    assert (record.workload.name, record.process and record.process.language) == ("train-in-c", "C")
    assert len(record.epochs) == 4
    losses = [epoch.train_loss for epoch in record.epochs]
    assert losses == sorted(losses, reverse=True)
    assert (record.epochs[-1].train_accuracy or 0) > 0.9
    plain = subprocess.run([str(program), "1"], check=True, capture_output=True, text=True)
    assert plain.stdout.startswith("epoch 1: loss")


def _workflow_commands() -> dict[str, str]:
    """Return the commands of the example workflow by the names of their steps."""
    commands = {}
    name = ""
    for line in (ROOT / "examples/ci/compare-training.yml").read_text().splitlines():
        key, _, value = line.strip().removeprefix("- ").partition(": ")
        if key == "name":
            name = value
        elif key == "run":
            commands[name] = value
    return commands


@pytest.mark.parametrize(("pause_after", "code"), [slow(0.1, 0), (0.3, 3)])
def test_the_commands_of_the_workflow_pass_a_pull_request_or_fail_it(
    command: CommandLine, tmp_path: Path, pause_after: float, code: int
) -> None:
    for version, pause in (("before", 0.1), ("after", pause_after)):
        (tmp_path / version).mkdir()
        (tmp_path / version / "train.py").write_text(
            TRAIN.replace("default=0.05", f"default={pause}")
        )
    tools = tmp_path / "bin"
    tools.mkdir()
    for name, words in (
        ("python", sys.executable),
        ("trainmark", f"{sys.executable} -m trainmark"),
    ):
        (tools / name).write_text(f'#!/bin/sh\nexec {words} "$@"\n')
        (tools / name).chmod(0o755)
    commands = _workflow_commands()
    environment = {**os.environ, "PATH": f"{tools}:{os.environ['PATH']}"}

    def run(name: str) -> subprocess.CompletedProcess[Any]:
        return subprocess.run(
            ["bash", "-ec", commands[name]], cwd=tmp_path, env=environment, capture_output=True
        )

    done = run("measure")
    assert done.returncode == 0, done.stderr.decode()
    # other tests disturb, which does not matter here
    for file in (tmp_path / "trainmark-results").glob("*.json"):
        file.write_text(
            re.sub(r'"others_share": ?[-+.e0-9]+', '"others_share": null', file.read_text())
        )
    judged = run("compare")
    assert judged.returncode == code, judged.stderr.decode()
    assert b"version=after" in run("report").stdout


WRITES = "echo new >> log; echo done > result; sleep 0.1"


def test_several_runs_leave_the_folder_as_it_is(
    command: CommandLine, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "log").write_text("old\n")
    monkeypatch.chdir(tmp_path / "mine")
    code, err, records = measured(command, "sh", "-c", WRITES, options=("--repeats", "2"))
    assert (code, len(records)) == (0, 2), err
    assert {path.name: path.read_text() for path in Path().iterdir()} == {"log": "old\n"}
    (kept,) = (command.out / "outputs").iterdir()
    assert f"what the first complete one wrote is in {kept}" in err
    assert (kept / "log").read_text() == "old\nnew\n", "each run starts from the same files"
    assert (kept / "result").read_text() == "done\n"


@pytest.mark.parametrize(
    ("options", "times"), [(("--repeats", "1"), 1), (("--repeats", "2", "--in-place"), 2)]
)
def test_runs_in_place_list_what_they_wrote(
    command: CommandLine,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    options: tuple[str, ...],
    times: int,
) -> None:
    (tmp_path / "mine").mkdir()
    monkeypatch.chdir(tmp_path / "mine")
    command.out = Path("mine")  # its records are not the command's
    code, err, _ = measured(command, "sh", "-c", WRITES, options=options)
    assert code == 0, err
    assert "new or changed in this folder since the start: log, result" in err
    assert Path("log").read_text() == "new\n" * times
