"""The main job, with the fake backend: rounds, records, tables, options."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import time
from pathlib import Path

import pytest

from tests.end_to_end.command import CommandLine
from trainmark import __version__
from trainmark.record import weights
from trainmark.record.caveats import Caveat


def test_rounds_are_interleaved_and_every_number_is_kept(command: CommandLine) -> None:
    code, out, _ = command.train(
        "--repeats", "3", "--device", "cpu,cuda:0", fake={"step_seconds": 0.02}
    )
    assert code == 0
    records = command.records()
    assert [(record.device.id, record.round) for record in records] == [
        (device, round_) for round_ in range(3) for device in ("cpu", "cuda:0")
    ]
    assert [record.seed for record in records] == [1, 1, 2, 2, 3, 3]
    for record in records:
        assert len(record.step_losses) == sum(epoch.steps for epoch in record.epochs) == 40
        assert record.final.training_seconds == pytest.approx(
            sum(epoch.seconds for epoch in record.epochs)
        )
        assert record.group.id == records[0].group.id
        assert record.trainmark == __version__
        assert record.backend.settings == {"asynchronous": True}
        assert (
            record.memory.host_peak_bytes is not None and record.memory.host_peak_bytes > 10_000_000
        )
        assert (
            record.setup_seconds is not None
            and record.epochs[0].start_seconds >= record.setup_seconds
        )
    same = {(record.round, record.model.initial_weights_sha256) for record in records}
    assert len(same) == 3, (
        "both devices of a round start from the same weights, other rounds from others"
    )
    assert re.search(r"^cuda:0 .*\d× faster", out, re.MULTILINE), out


def test_the_clock_waits_for_the_device(command: CommandLine) -> None:
    command.train("--repeats", "1", "--device", "cpu", fake={"step_seconds": 0.01})
    (record,) = command.records()
    assert record.epochs[0].seconds >= 40 * 0.01


def test_json_alone_on_stdout(command: CommandLine) -> None:
    code, out, err = command.train(
        "--repeats", "1", "--device", "cpu", "--json", fake={"noise": "hello\n"}
    )
    assert code == 0
    (record,) = json.loads(out)
    assert record["outcome"]["status"] == "ok"
    assert record["peaks"] is None, "the fake has no limits, and unknown is null"
    assert "test accuracy" in err


def test_noise_of_a_framework_is_harmless(command: CommandLine) -> None:
    code, *_ = command.train(
        "--repeats", "1", "--device", "cpu", fake={"noise": '{"event": "done"}\n' * 5000}
    )
    assert code == 0
    assert command.outcomes() == ["ok"]


def test_resume_does_the_rest_and_nothing_twice(command: CommandLine) -> None:
    fake = {"fail": "raise", "only_on": "cuda:0"}
    code, _, err = command.train("--repeats", "2", "--device", "cpu,cuda:0", fake=fake)
    assert code == 1
    assert command.outcomes() == ["ok", "failed", "ok", "failed"]
    assert "the fake was asked to fail" in err
    code, *_ = command.train("--repeats", "2", "--device", "cpu,cuda:0", "--resume")
    assert code == 0
    finished = [record for record in command.records() if record.outcome.status == "ok"]
    assert sorted((record.device.id, record.round) for record in finished) == [
        ("cpu", 0), ("cpu", 1), ("cuda:0", 0), ("cuda:0", 1),
    ]  # fmt: skip
    assert len({record.group.id for record in finished}) == 1, (
        "the rest joins the group that it completes"
    )
    code, out, _ = command.train("--repeats", "2", "--device", "cpu,cuda:0", "--resume")
    assert code == 0 and "Nothing to do" in out


def test_resume_completes_the_newest_plan_though_an_older_one_is_complete(
    command: CommandLine,
) -> None:
    arguments = ("--repeats", "2", "--device", "cpu")
    for _ in range(2):
        assert command.train(*arguments)[0] == 0
    *_, last = command.records()
    (command.out / f"{last.id}.json").unlink()
    code, out, _ = command.train(*arguments, "--resume")
    assert code == 0 and "Nothing to do" not in out
    assert [record.round for record in command.records() if record.group.id == last.group.id] == [
        0,
        1,
    ]


def test_without_resume_nothing_is_replaced(command: CommandLine) -> None:
    command.train("--repeats", "1", "--device", "cpu")
    command.train("--repeats", "1", "--device", "cpu")
    assert command.outcomes() == ["ok", "ok"]


def test_continued_repeats_share_one_process_and_resume_replays(command: CommandLine) -> None:
    arguments = ("--protocol", "continued", "--repeats", "3", "--device", "cpu")
    assert command.train(*arguments)[0] == 0
    records = command.records()
    assert [(record.repeat, record.seed, record.protocol) for record in records] == [
        (0, 1, "continued"), (1, 1, "continued"), (2, 1, "continued"),
    ]  # fmt: skip
    assert records[0].final.train_loss != records[0].step_losses[0]
    assert len({record.setup_seconds for record in records}) == 1
    (command.out / f"{records[2].id}.json").unlink()
    assert command.train(*arguments, "--resume")[0] == 0
    again = command.records()
    assert sorted(record.repeat for record in again) == [0, 1, 2]
    assert {record.id for record in records[:2]} <= {record.id for record in again}
    new = next(record for record in again if record.repeat == 2)
    assert Caveat.REPLAYED in new.caveats


def test_weights_are_saved_and_started_from(command: CommandLine) -> None:
    assert command.train("--repeats", "1", "--device", "cpu", "--save-weights")[0] == 0
    (first,) = command.records()
    record = command.out / f"{first.id}.json"
    assert record.with_suffix(".safetensors").is_file()
    assert command.train("--repeats", "1", "--device", "cpu", "--weights-from", str(record))[0] == 0
    second = command.records()[1]
    assert second.weights_from == first.id
    assert Caveat.STARTED_FROM_RECORD in second.caveats
    saved = weights.load(record.with_suffix(".safetensors"))
    assert (
        second.model.initial_weights_sha256
        == weights.digest(saved)
        != first.model.initial_weights_sha256
    )


def test_weights_of_another_network_are_refused(command: CommandLine) -> None:
    command.train("--repeats", "1", "--device", "cpu", "--save-weights")
    record = next(command.out.glob("*.json"))
    code, _, err = command.run(
        "run",
        "mnist-mlp512",
        "--backend",
        "fake",
        "--dataset",
        "synthetic-digits",
        "--out",
        str(command.out),
        "--weights-from",
        str(record),
    )
    assert code == 1 and "don't fit the network at dense1.kernel" in err


def test_log_every_prints_as_the_published_logs_do(command: CommandLine) -> None:
    code, _, err = command.train("--repeats", "1", "--device", "cpu", "--log-every", "10")
    assert code == 0
    lines = re.findall(r"step +(\d+): loss ([\d.]+) \(.* samples/s; .*/step\)", err)
    assert [int(step) for step, _ in lines] == [0, 10, 20, 30]
    (record,) = command.records()
    assert [line.step for line in record.log] == [0, 10, 20, 30]
    assert record.log[1].loss == record.step_losses[10]
    assert Caveat.LOGGED_STEPS in record.caveats


def test_dataset_repeats_lengthen_the_epoch(command: CommandLine) -> None:
    code, *_ = command.run(
        "run",
        "mnist-mlp32",
        "--backend",
        "fake",
        "--style",
        "fast",
        "--device",
        "cpu",
        "--repeats",
        "1",
        "--dataset",
        "synthetic-digits",
        "--dataset-repeats",
        "7",
        "--epochs",
        "2",
        "--out",
        str(command.out),
    )
    assert code == 0
    (record,) = command.records()
    assert [epoch.steps for epoch in record.epochs] == [7, 7]


def test_without_a_network_and_data_synthetic_digits_are_used(command: CommandLine) -> None:
    code, _, err = command.run(
        "run",
        "--backend",
        "fake",
        "--style",
        "fast",
        "--device",
        "cpu",
        "--repeats",
        "1",
        "--out",
        str(command.out),
    )
    if "using generated synthetic-digits" not in err:
        pytest.skip("this machine reaches a mirror of MNIST")
    assert code == 0
    (record,) = command.records()
    assert record.dataset.name == "synthetic-digits"
    assert Caveat.SUBSTITUTED_DATASET in record.caveats


def test_data_that_was_named_is_never_replaced(command: CommandLine, tmp_path: Path) -> None:
    started = time.monotonic()
    code, _, err = command.run(
        "run", "cifar10-cnn", "--backend", "fake", "--out", str(tmp_path / "named")
    )
    if "cifar10 was not found" not in err:
        pytest.skip("this machine reaches a mirror of CIFAR-10")
    assert code == 1 and "--data-dir" in err
    assert time.monotonic() - started < 60


def test_a_users_own_workload_runs_the_same_way(command: CommandLine, tmp_path: Path) -> None:
    from trainmark.workload import catalog

    text = (Path(catalog.__file__).parent / "mnist-mlp128.toml").read_text("utf-8")
    own = tmp_path / "mine.toml"
    own.write_text(
        text.replace('name = "mnist-mlp128"', 'name = "mine"').replace("units = 64", "units = 16")
    )
    arguments = [
        "--backend",
        "fake",
        "--style",
        "fast",
        "--device",
        "cpu",
        "--repeats",
        "1",
        "--steps",
        "5",
        "--dataset",
        "synthetic-digits",
        "--out",
        str(command.out),
    ]
    assert command.run("run", str(own), *arguments)[0] == 0
    (record,) = command.records()
    assert record.workload.name == "mine"
    assert record.model.parameters == 784 * 128 + 128 + 128 * 16 + 16 + 16 * 10 + 10
    own.write_text(own.read_text().replace("units = 16", 'units = "many"'))
    code, out, err = command.run("run", str(own), *arguments)
    line = next(
        number for number, text in enumerate(own.read_text().splitlines(), 1) if "many" in text
    )
    assert code == 2, own.read_text() + out + err
    assert f"line {line} at model[3].units: expected a whole number, found 'many'" in err


def test_another_interpreter_is_measured_without_our_packages(
    command: CommandLine, tmp_path: Path
) -> None:
    """A bare environment with NumPy alone, put on its path by a .pth file: no trainmark, no click,
    no msgspec."""
    import numpy

    subprocess.run(
        [sys.executable, "-m", "venv", "--without-pip", str(tmp_path / "bare")], check=True
    )
    python = tmp_path / "bare" / "bin" / "python"
    site = Path(
        subprocess.check_output(
            [python, "-c", "import site; print(site.getsitepackages()[0])"], text=True
        ).strip()
    )
    packages = Path(numpy.__file__).parent.parent
    for name in ("numpy", "numpy.libs"):
        if (packages / name).exists():
            (site / name).symlink_to(packages / name)
    assert subprocess.run([python, "-c", "import msgspec"], capture_output=True).returncode != 0
    code, _, err = command.run(
        "run",
        "mnist-mlp128",
        "--backend",
        "numpy@bare",
        "--python",
        f"bare={python}",
        "--steps",
        "5",
        "--repeats",
        "1",
        "--dataset",
        "synthetic-digits",
        "--out",
        str(command.out),
    )
    assert code == 0, err
    (record,) = command.records()
    assert record.python.label == "bare" and record.python.executable == str(python)
    assert record.python.packages["numpy"] == numpy.__version__


def test_the_parent_stays_small(command: CommandLine) -> None:
    if not Path("/proc/self/status").exists():
        pytest.skip("needs /proc to read the highest memory use of a process")
    process = command.start(
        *command.train_arguments("--repeats", "2", "--device", "cpu"), fake={"step_seconds": 0.02}
    )
    highest = 0
    while process.poll() is None:
        try:
            status = Path(f"/proc/{process.pid}/status").read_text()
        except OSError:
            break
        found = re.search(r"VmHWM:\s+(\d+) kB", status)
        highest = max(highest, int(found[1]) if found else 0)
        time.sleep(0.02)
    process.communicate()
    assert 20_000 < highest < 150_000, f"{highest} kB"


@pytest.mark.skipif(
    not os.environ.get("TRAINMARK_DATA"), reason="TRAINMARK_DATA names no folder with the real data"
)
def test_a_partial_dataset_is_reported(command: CommandLine) -> None:
    code, out, _ = command.run(
        "run",
        "cifar10-cnn",
        "--backend",
        "fake",
        "--style",
        "fast",
        "--device",
        "cpu",
        "--repeats",
        "1",
        "--steps",
        "3",
        "--data-dir",
        os.environ["TRAINMARK_DATA"],
        "--out",
        str(command.out),
    )
    assert code == 0
    (record,) = command.records()
    assert Caveat.PARTIAL_DATASET in record.caveats
    assert "partial-dataset" in out
