"""``trainmark measure`` sees the steps of unchanged scripts, and leaves them as they are."""

from __future__ import annotations

import re
import shutil
import socket
import subprocess
import sys
from pathlib import Path

import pytest

from tests.end_to_end.command import CommandLine
from tests.slow import slow
from trainmark.analysis.comparison import compare
from trainmark.record.caveats import Caveat
from trainmark.record.observed import Observed
from trainmark.record.record import Record
from trainmark.report.comparison_table import title_of

pytest.importorskip("torch")
SCRIPTS = Path(__file__).parent / "own_scripts"


def measured(
    command: CommandLine, *words: str, options: tuple[str, ...] = ()
) -> tuple[list[Record], str]:
    """Return the records, and the output on stderr."""
    _, _, err = command.run(
        "measure", "--out", str(command.out), "--repeats", "1", *options, "--", *words
    )
    return command.records(), err


def seen(
    command: CommandLine, script: str, *words: str, options: tuple[str, ...] = ()
) -> tuple[Record, Observed]:
    (record,), err = measured(
        command, sys.executable, str(SCRIPTS / script), *words, options=options
    )
    assert record.observed is not None, (err, record.outcome)
    assert not [what for what in record.observed.injected if what.startswith("not ")]
    return record, record.observed


def test_epochs_steps_and_places_of_a_classifier_and_the_same_losses_as_without(
    command: CommandLine,
) -> None:
    record, observed = seen(
        command, "classifier.py", "--save", str(command.out.parent / "weights.pt")
    )
    assert (observed.steps, observed.examples_per_step, observed.framework) == (40, 32, "torch")
    assert [(epoch.steps, epoch.examples) for epoch in record.epochs] == [
        (19, 608),
        (20, 640),
    ]  # the first step is not timed
    assert all(epoch.evaluation_seconds for epoch in record.epochs)
    assert (observed.evaluations, observed.saves) == (2, 1)
    places = {
        name: (SCRIPTS / "classifier.py").read_text().splitlines()[line(at) - 1]
        for name, at in observed.places.items()
    }
    assert {name: text.split("#")[0].strip().split("(")[0] for name, text in places.items()} == {
        "loader": "loader = DataLoader",
        "model": "model = Net",
        "optimizer": "optimizer = torch.optim.SGD",
        "forward": "loss = nn.functional.cross_entropy",
        "backward": "loss.backward",
        "evaluation": "total += nn.functional.cross_entropy",
        "save": "torch.save",
        "loading": "for index, ",
        "optimizer_step": "optimizer.step",
    }
    assert sorted(observed.syncs.values()) == [4, 8]
    assert observed.forward_seconds is not None and observed.backward_seconds is not None
    assert 0 < observed.forward_seconds + observed.backward_seconds < observed.seconds
    assert (record.backend.name, Caveat.NO_EPOCHS in record.caveats) == ("torch", False)
    plain = subprocess.run(
        [sys.executable, str(SCRIPTS / "classifier.py")], capture_output=True, text=True, check=True
    )
    printed = [float(found) for found in re.findall(r"^\d+ \d+ (\S+)$", plain.stdout, re.MULTILINE)]
    assert printed == observed.losses[::5]


def test_a_command_alone_learns_where_its_time_goes_and_what_to_try(command: CommandLine) -> None:
    words = (sys.executable, str(SCRIPTS / "classifier.py"))
    code, out, err = command.run("measure", "--out", str(command.out), "--repeats", "1", *words)
    assert code == 0, err
    told = " ".join(out.split())
    assert "Where the time goes: " in told
    assert re.search(r"backward \d+ % \(\S*classifier\.py:\d+\)", told)
    assert f"What would make it faster: trainmark explain -- {sys.executable} " in told


def line(place: str) -> int:
    """Return the number of a line in ``file:line``."""
    return int(place.rpartition(":")[2])


def test_accumulated_gradients_and_evaluations_in_between(command: CommandLine) -> None:
    record, observed = seen(command, "language_model.py", "25")
    assert (observed.steps, observed.examples_per_step, observed.tokens_per_step) == (25, 12, 192)
    # One of them comes before the first step, where saves don't count.
    assert (observed.evaluations, observed.saves) == (3, 2)
    assert observed.losses[-1] < observed.losses[0]
    assert observed.evaluation_seconds is not None
    (epoch,) = record.epochs
    assert epoch.seconds == pytest.approx(observed.seconds, rel=0.01)


def test_two_optimisers_make_one_step(command: CommandLine) -> None:
    record, observed = seen(command, "adversarial.py")
    assert (observed.steps, observed.examples_per_step) == (60, 20)
    assert [epoch.steps for epoch in record.epochs] == [19, 20, 20]


def test_the_examples_of_batches_of_any_size_are_counted(command: CommandLine) -> None:
    record, observed = seen(command, "loaders.py")
    assert (observed.steps, observed.evaluations) == (14, 3)
    assert [(epoch.steps, epoch.examples) for epoch in record.epochs] == [
        (4, 70 - 16),  # its first step is not timed
        (5, 140),
        (4, 40),
    ]


def test_a_sampler_is_not_asked_and_an_unseen_network_is_described_by_its_optimiser(
    command: CommandLine,
) -> None:
    script = SCRIPTS / "odd_loader.py"
    record, observed = seen(command, "odd_loader.py", "compile")
    assert (observed.steps, observed.evaluations, observed.examples_per_step) == (30, 3, 8)
    assert [(epoch.steps, epoch.examples) for epoch in record.epochs] == [
        (9, 72),
        (10, 80),
        (10, 80),
    ]
    assert (observed.device, observed.precision) == ("cpu", "float32")
    plain = subprocess.run(
        [sys.executable, str(script)], capture_output=True, text=True, check=True
    )
    assert [float(text.split()[1]) for text in plain.stdout.splitlines()] == observed.losses


def test_a_script_with_the_hook_reports_its_own_epochs(command: CommandLine) -> None:
    record, observed = seen(command, "with_hook.py")
    assert observed.steps == 45
    assert [(epoch.steps, epoch.examples) for epoch in record.epochs] == [(15, 300)] * 3


@pytest.mark.parametrize(
    ("script", "steps", "examples", "epochs"),
    [
        slow("lightning_script.py", 60, 10, [19, 20, 20]),
        slow("transformers_script.py", 16, 8, [7, 8]),
        ("accelerate_script.py", 20, 16, [9, 10]),
    ],
)
def test_trainers_of_libraries(
    command: CommandLine, script: str, steps: int, examples: int, epochs: list[int]
) -> None:
    pytest.importorskip(script.removesuffix("_script.py"))
    record, observed = seen(command, script)
    assert (observed.steps, observed.examples_per_step) == (steps, examples)
    assert [epoch.steps for epoch in record.epochs] == epochs


def test_a_script_that_does_everything_an_observer_may_trip_over(
    command: CommandLine, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = tmp_path / "read-only"
    folder.mkdir()
    folder.chmod(0o500)
    words = ("env", f"PYTHONPATH={SCRIPTS.parent}", "A=1", "nice", "-n", "1", sys.executable)
    # PYTHONPATH is set by the launcher, so the observer's folder is lost: the script is measured,
    # and nothing else.
    (record,), err = measured(command, *words, "-m", "own_scripts.rough", str(folder))
    assert (record.outcome.status, record.observed, record.process and record.process.attached) == (
        "ok",
        None,
        False,
    )
    assert "the observer saw no training" in err
    shutil.rmtree(command.out)
    monkeypatch.chdir(SCRIPTS.parents[2])  # the module is found from there
    words = (
        "nice",
        "-n",
        "1",
        sys.executable,
        "-m",
        "tests.end_to_end.own_scripts.rough",
        str(folder),
    )
    (record,), _ = measured(command, *words)
    assert record.outcome.status == "ok", record.outcome
    assert record.observed is not None
    assert (record.observed.steps, record.backend.name, record.workload.name) == (
        12,
        "torch",
        "tests.end_to_end.own_scripts.rough",
    )
    assert not list(folder.iterdir())


def test_a_crash_keeps_its_exit_code_its_output_and_the_steps_before(command: CommandLine) -> None:
    (record,), _ = measured(command, sys.executable, str(SCRIPTS / "crash.py"))
    assert record.process is not None and record.observed is not None
    assert (record.process.exit_code, record.observed.steps, record.outcome.status) == (
        7,
        3,
        "failed",
    )
    assert "the last words" in (record.outcome.stderr_tail or "")


def test_all_ranks_end_at_the_same_step(command: CommandLine) -> None:
    torchrun = shutil.which("torchrun", path=str(Path(sys.executable).parent))
    if torchrun is None:
        pytest.skip("torchrun is not next to this Python")
    with socket.create_server(("127.0.0.1", 0)) as free:
        # by default it is always the same one, which another training here may have
        port = free.getsockname()[1]
    words = (
        torchrun,
        "--nproc-per-node",
        "2",
        "--master-port",
        str(port),
        str(SCRIPTS / "ranks.py"),
    )
    (record,), _ = measured(command, *words, options=("--steps", "20"))
    assert record.observed is not None and record.process is not None
    assert (record.outcome.status, record.observed.steps, record.observed.ended_early) == (
        "ok",
        20,
        True,
    )
    assert (record.backend.name, record.observed.ranks) == ("torch", 2)
    assert Caveat.LEFT_PROCESSES not in record.caveats


@pytest.mark.parametrize(
    "option",
    [
        pytest.param(("--steps", "20"), id="--steps 20"),
        # by day, the slices of a pool end with a budget
        pytest.param(("--budget", "45"), id="--budget 45", marks=pytest.mark.slow),
    ],
)
def test_ranks_that_no_variable_tells_of_end_too(
    command: CommandLine, tmp_path: Path, option: tuple[str, str]
) -> None:
    words = sys.executable, str(SCRIPTS / "ranks.py"), str(tmp_path / "rendezvous")
    (record,), _ = measured(command, *words, options=option)
    assert record.observed is not None and record.process is not None
    assert (record.outcome.status, record.observed.ended_early) == ("ok", True)
    assert option[0] == "--budget" or record.observed.steps == 20
    assert record.observed.ranks == 2


POOL = SCRIPTS.parents[1] / "unit" / "inject" / "scripts" / "hostile" / "in_a_pool.py"


RARE_WAYS = (
    "forked",
    "forkserver",
    "one-by-one",
    "apply-async",
    "replaced-workers",
    "futures",
    "queue",
    "thread",
    "program",
    "torch-spawn",
    "daemon",
)
"""Further ways to wait for a training."""


@pytest.mark.parametrize(
    "how",
    [
        "pool",
        slow("executor"),  # by day without a limit
        "process",
        "short",
        *(pytest.param(way, marks=pytest.mark.slow) for way in RARE_WAYS),
    ],
)
def test_a_training_that_another_process_waits_for_ends_early(
    command: CommandLine, how: str
) -> None:
    words = (sys.executable, str(POOL), how, "1000000000")
    (record,), err = measured(command, *words, options=("--steps", "20"))
    assert record.observed is not None and record.process is not None, err
    assert (record.outcome.status, record.outcome.stderr_tail) == ("ok", None)
    assert record.observed.ended_early
    has_short_training = how in ("short", "replaced-workers")
    assert record.observed.steps == 20 or (has_short_training and record.observed.steps <= 5)
    assert Caveat.LEFT_PROCESSES not in record.caveats


def test_slices_of_a_pool_are_kept(command: CommandLine) -> None:
    words = (sys.executable, str(POOL), "pool", "1000000000")
    (record,), err = measured(command, *words, options=("--budget", "30"))
    assert record.observed is not None, err
    assert (record.outcome.status, record.observed.ended_early) == ("ok", True)
    assert len(record.slices) >= 4


def test_a_pool_without_a_limit_runs_to_its_end(command: CommandLine) -> None:
    (record,), err = measured(command, sys.executable, str(POOL), "executor", "30")
    assert record.observed is not None and record.process is not None, err
    assert (record.outcome.status, record.process.exit_code) == ("ok", 0)
    assert not record.observed.ended_early
    assert record.observed.steps >= 30


@pytest.mark.slow
def test_long_trainings_take_turns_and_end_with_the_budget(
    command: CommandLine, tmp_path: Path
) -> None:
    shutil.copy(SCRIPTS / "classifier.py", tmp_path)
    options = ("--vary-env", "OMP_NUM_THREADS=1,2", "--budget", "90")
    words = (
        sys.executable,
        "classifier.py",
        "--epochs",
        "1000000",
        "--workers",
        "1",
        "--save",
        "weights.pt",
    )
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(tmp_path)
        records, _ = measured(command, *words, options=options)
    assert [record.outcome.status for record in records] == ["ok"] * 4, "two rounds start together"
    assert {record.backend.style for record in records} == {
        "OMP_NUM_THREADS=1",
        "OMP_NUM_THREADS=2",
    }
    for record in records:
        assert record.observed is not None and record.process is not None
        assert record.observed.ended_early
        assert record.observed.threads == int(record.process.environment["OMP_NUM_THREADS"])
        assert len(record.slices) >= 4
        assert all(each.examples == 32 * each.timed_steps for each in record.slices)
    assert [path.name for path in tmp_path.iterdir() if path.suffix] == ["classifier.py"]


def test_a_long_training_by_itself_ends_with_the_budget(command: CommandLine) -> None:
    words = (sys.executable, str(SCRIPTS / "classifier.py"), "--epochs", "1000000")
    (record,), _ = measured(command, *words, options=("--budget", "25"))
    assert record.outcome.status == "ok"
    assert record.observed is not None and record.observed.ended_early
    assert len(record.slices) >= 4
    (group,) = compare([record]).groups
    assert group.process_seconds.median is None, "it was not a whole process"
    assert "whole processes" not in title_of([group])


def test_a_missing_script_is_not_blamed_on_the_observer(command: CommandLine) -> None:
    (record,), err = measured(command, sys.executable, "nowhere.py")
    assert record.outcome.status == "failed"
    assert "No such file" in err
    assert "observer" not in err


def test_a_missing_script_is_named_as_the_user_wrote_it(command: CommandLine) -> None:
    records, err = measured(command, sys.executable, "nowhere.py", options=("--repeats", "2"))
    assert {record.outcome.status for record in records} == {"failed"}
    assert "can't open file 'nowhere.py'" in err


def test_a_python_that_can_not_be_observed_is_measured_as_a_whole(
    command: CommandLine, tmp_path: Path
) -> None:
    script = tmp_path / "train.py"
    script.write_text("import sys; print(sys.flags); sys.exit('trainmark_inject' in sys.modules)")
    for flag in ("-I", "-E", "-S"):
        (record,), err = measured(command, sys.executable, flag, str(script))
        assert (record.outcome.status, record.process and record.process.attached) == ("ok", False)
        assert "as with -I, -E or -S" in err
        shutil.rmtree(command.out)
    (record,), err = measured(command, sys.executable, str(script), options=("--no-inject",))
    assert (record.outcome.status, record.process and record.process.attached) == ("ok", None)
    assert "observer" not in err
    shutil.rmtree(command.out)
    (record,), err = measured(command, "sh", "-c", "true")
    assert (record.outcome.status, "observer" in err) == ("ok", False)


def test_an_interpreter_without_trainmark_and_its_own_sitecustomize(
    command: CommandLine, tmp_path: Path
) -> None:
    subprocess.run(
        [sys.executable, "-m", "venv", "--without-pip", str(tmp_path / "venv")], check=True
    )
    python = tmp_path / "venv" / "bin" / "python"
    (site,) = (tmp_path / "venv" / "lib").glob("python*/site-packages")
    (site / "sitecustomize.py").write_text("import builtins; builtins.customised = True")
    script = tmp_path / "train.py"
    script.write_text(
        "import sys, os\n"
        "assert customised and 'trainmark_inject' in sys.modules\n"
        "assert not any('trainmark' in entry for entry in sys.path), sys.path\n"
        "assert 'trainmark' not in sys.modules\n"
    )
    (record,), err = measured(command, str(python), str(script))
    assert record.outcome.status == "ok", record.outcome
    assert record.process is not None and record.process.attached
    assert "no supported framework made a step" in err
    assert Caveat.NO_EPOCHS in record.caveats
