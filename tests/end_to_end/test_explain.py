"""``trainmark explain`` as a person starts it, on the asynchronous fake, which costs what it is
set to."""

from __future__ import annotations

import json
import re
import shutil
import signal
from pathlib import Path
from typing import Any

import msgspec
import pytest

from tests.end_to_end.command import CommandLine, alive, measured, wait_until
from tests.slow import slow
from trainmark.data.locate import Located
from trainmark.record.record import Record
from trainmark.record.store import Store

KERNELS = {"step_seconds": 0.0, "flops_per_second": 45e9}
"""A step of mnist-mlp128 is 45 MFLOP, so about 1 ms."""


@pytest.fixture(scope="module")
def one_run(
    tmp_path_factory: pytest.TempPathFactory, drawn: Located, cache_home: Path
) -> CommandLine:
    command = CommandLine(drawn, cache_home, tmp_path_factory.mktemp("recorded") / "out")
    assert command.train("--device", "cpu", "--repeats", "1", fake=KERNELS)[0] == 0
    return command


@pytest.fixture
def recorded(one_run: CommandLine, command: CommandLine) -> CommandLine:
    """With the record of a short run in its folder."""
    shutil.copytree(one_run.out, command.out)
    return command


def explained(
    command: CommandLine, *arguments: str, device: str = "cpu", **fake: Any
) -> dict[str, Any]:
    code, out, err = command.run(
        "explain",
        "mnist-mlp128",
        "--backend",
        "fake",
        "--device",
        device,
        "--dataset",
        "synthetic-digits",
        "--json",
        "--seconds",
        "3",
        *arguments,
        fake=KERNELS | fake,
    )
    assert code == 0, err
    found: dict[str, Any] = json.loads(out)
    return found


def largest(found: dict[str, Any]) -> dict[str, Any]:
    share: dict[str, Any] = max(
        (share for share in found["shares"] if not share["on_top"]),
        key=lambda share: share["share"],
    )
    return share


@pytest.mark.parametrize(
    ("planted", "cause"),
    [
        # Nothing to compute, which could hide behind what is planted.
        slow({"input_seconds": 0.006, "flops_per_second": 45e12}, "input"),
        slow({"copy_seconds": 0.006, "flops_per_second": 45e12}, "copy"),
        slow({"optimizer_seconds": 0.006, "flops_per_second": 45e12}, "optimizer"),
        # The host takes 4 ms per step, the device 4 ms; only a loop that waits for each in turn
        # needs 8.
        ({"fetches": True, "input_seconds": 0.004, "flops_per_second": 11e9}, "fetch"),
    ],
)
def test_a_planted_cause_is_the_largest(
    command: CommandLine, planted: dict[str, Any], cause: str
) -> None:
    found = explained(command, **planted)
    share = largest(found)
    assert share["cause"] == cause
    assert 0.3 < share["share"] < 1.02
    assert share["low"] <= share["share"] <= share["high"]
    known = next((seconds for name, seconds in planted.items() if name == f"{cause}_seconds"), None)
    if known is not None:  # a sleep lasts a little longer than asked
        expected = known / found["step_seconds"]
        assert share["share"] == pytest.approx(expected, rel=0.15)
        assert 0.95 * share["low"] <= expected <= 1.05 * share["high"]
    assert found["advice"][0]["promise"] > 1.3
    assert found["advice"][0]["do"]


def test_what_launching_costs_on_an_accelerator_is_what_capturing_saves(
    command: CommandLine,
) -> None:
    """Launching takes 4 ms, for a GPU that computes for a quarter of a millisecond."""
    found = explained(command, device="cuda:0", dispatch_seconds=0.004)
    assert largest(found)["cause"] == "dispatch"
    assert found["advice"][0]["style"] == "fast"
    assert found["advice"][0]["promise"] > 2


def test_where_the_gpu_overtakes_the_cpu(command: CommandLine) -> None:
    """Both need 1 ms to begin a step, and the GPU is four times as fast: it overtakes where
    computing takes longer."""
    found = explained(command, device="cuda:0", dispatch_seconds=0.001)
    assert found["crossover"]["faster"] is True
    assert found["crossover_batch"] is None or 4 < found["crossover_batch"] < 1000


def test_the_answer_for_people_begins_with_what_to_do(command: CommandLine) -> None:
    code, out, _ = command.run(
        "explain",
        "mnist-mlp128",
        "--backend",
        "fake",
        "--device",
        "cpu",
        "--dataset",
        "synthetic-digits",
        "--seconds",
        "3",
        fake=KERNELS | {"input_seconds": 0.006},
    )
    assert code == 0
    assert "The largest cause is input" in out
    assert re.search(r"An epoch is at most \d\.\d+× .*as fast\.|Measured here: an epoch is \d", out)
    assert out.index("Train like") < out.index("unexplained")
    assert "unexplained" in out


def test_a_process_that_dies_is_an_error(command: CommandLine) -> None:
    code, _, err = command.run(
        "explain",
        "mnist-mlp128",
        "--backend",
        "fake",
        "--device",
        "cpu",
        "--dataset",
        "synthetic-digits",
        "--seconds",
        "3",
        fake={"fail": "kill", "at_step": 3},
    )
    assert code == 1
    assert "SIGKILL" in err


@pytest.mark.slow
def test_where_the_style_fast_fails_the_rest_of_the_answer_stands(command: CommandLine) -> None:
    found = explained(command, input_seconds=0.006, fail="raise", at_step=1, only_on="fast")
    assert largest(found)["cause"] == "input"
    assert "the style fast" in found["dropped"]
    assert [each["style"] for each in found["advice"]] == [None]


@pytest.mark.parametrize(
    "option",
    [
        ("--seed", "2"),
        slow(("--precision", "fp32")),
        slow(("--threads", "1")),
        slow(("--style", "fast")),
    ],
)
def test_a_record_is_explained_as_it_was_run_and_no_other_way(
    recorded: CommandLine, option: tuple[str, str]
) -> None:
    record = str(record_of(recorded))
    code, _, err = recorded.run("explain", record, *option)
    assert code == 2
    assert "with the options of its run" in err
    assert option[0] in err
    code, _, err = recorded.run("explain", record, record, *option)
    assert code == 2
    assert option[0] in err


def test_ctrl_c_leaves_no_process(command: CommandLine) -> None:
    process = command.start(
        "explain",
        "mnist-mlp128",
        "--backend",
        "fake",
        "--device",
        "cpu",
        "--dataset",
        "synthetic-digits",
        "--threads",
        "1",
        fake=KERNELS,
    )

    children = wait_until(lambda: found if (found := measured(process.pid)) else None)
    process.send_signal(signal.SIGINT)
    _, err = process.communicate(timeout=120)
    assert process.returncode == 130, err
    assert "Traceback" not in err
    assert children and not alive(children)


def test_one_side_at_a_time(command: CommandLine) -> None:
    code, _, err = command.run(
        "explain", "mnist-mlp128", "--backend", "fake", "--device", "cpu,cuda:0"
    )
    assert code == 2
    assert "one side at a time" in err


@pytest.mark.parametrize(
    "arguments", [("nowhere.json",), ("nowhere.json", "mnist-mlp128"), ("mnist-mlp128", "x.json")]
)
def test_a_record_that_is_not_there(command: CommandLine, arguments: tuple[str, ...]) -> None:
    code, _, err = command.run("explain", *arguments)
    assert code == 2
    assert "no record at " in err


def test_a_file_that_is_no_record(command: CommandLine, tmp_path: Path) -> None:
    (tmp_path / "notes.txt").write_text("hello")
    code, _, err = command.run("explain", str(tmp_path / "notes.txt"))
    assert code == 1
    assert "is not a trainmark record" in err


def test_a_name_that_is_not_known(command: CommandLine) -> None:
    code, _, err = command.run("explain", "mnist-mlp12", "--backend", "fake")
    assert code == 2
    assert "mnist-mlp128" in err


def test_a_record_is_explained_as_it_was_run(
    recorded: CommandLine,
) -> None:
    found = of_record(recorded, record_of(recorded), KERNELS)
    assert (found["backend"], found["style"], found["device"]) == ("fake", "fast", "cpu")
    assert found["step_seconds"] > 0
    assert found["notes"] == []
    changed = changed_record(
        recorded,
        backend={"version": "0.1"},
        dataset={"sha256": "5f" * 32},
        outcome={"status": "interrupted"},
    )
    data, version, ending = of_record(recorded, changed, KERNELS)["notes"]
    assert data == "the data here differs from the record's"
    assert version.startswith("fake is ") and version.endswith("and was 0.1")
    assert "ended early (interrupted" in ending


def test_a_record_of_another_machine_tells_what_it_can(recorded: CommandLine) -> None:
    changed = changed_record(recorded, machine={"name": "elsewhere"})
    found = of_record(recorded, changed, KERNELS)
    assert "another machine (elsewhere" in found["not_measured_because"]
    assert found["step_seconds"] > 0
    assert "input" in found["unknown"]


def test_a_record_whose_backend_is_gone_tells_what_it_can(recorded: CommandLine) -> None:
    found = of_record(recorded, changed_record(recorded, backend={"name": "gone"}), KERNELS)
    assert "gone" in found["not_measured_because"]


@pytest.mark.slow
def test_a_record_whose_workload_can_not_be_read_tells_what_it_can(recorded: CommandLine) -> None:
    found = of_record(
        recorded, changed_record(recorded, workload={"spec": {"name": "future"}}), KERNELS
    )
    assert "can't be read" in found["not_measured_because"]


def test_a_record_without_an_epoch_has_nothing_to_tell(command: CommandLine) -> None:
    assert (
        command.train("--device", "cpu", "--repeats", "1", fake={"fail": "raise", "at_step": 3})[0]
        == 1
    )
    code, _, err = command.run(
        "explain",
        str(changed_record(command, machine={"name": "elsewhere"}, backend={"name": "gone"})),
        "--json",
    )
    assert code == 1
    assert "nothing to explain" in err


def test_two_records_of_one_configuration_differ_by_noise_or_not_at_all(
    command: CommandLine,
) -> None:
    assert command.train("--device", "cpu", "--repeats", "2", fake=KERNELS)[0] == 0
    a, b = sorted(command.out.glob("*.json"))
    code, out, _ = command.run("explain", str(a), str(b), "--json")
    assert code == 0
    chance = {"CPU load by others before the run", "caveats"}
    assert {contrast["what"] for contrast in json.loads(out)["contrasts"]} <= chance


def test_two_records_say_what_differs(command: CommandLine) -> None:
    assert (
        command.train("--style", "fast", "--device", "cpu,cuda:0", "--repeats", "1", fake=KERNELS)[
            0
        ]
        == 0
    )
    a, b = sorted(command.out.glob("*.json"))
    code, out, _ = command.run("explain", str(a), str(b))
    assert code == 0
    assert "device" in out
    assert "cuda:0" in out


def record_of(command: CommandLine) -> Path:
    return next(command.out.glob("*.json"))


def changed_record(command: CommandLine, **changes: dict[str, Any]) -> Path:
    """The record with some fields of its parts changed, next to the others."""
    record: Record = command.records()[0]
    for part, fields in changes.items():
        record = msgspec.structs.replace(
            record, **{part: msgspec.structs.replace(getattr(record, part), **fields)}
        )
    folder = command.out.with_name("changed")
    Store(folder).write(record)
    return folder / f"{record.id}.json"


def of_record(command: CommandLine, path: Path, fake: dict[str, Any]) -> dict[str, Any]:
    code, out, err = command.run("explain", str(path), "--seconds", "1", "--json", fake=fake)
    assert code == 0, err
    found: dict[str, Any] = json.loads(out)
    return found
