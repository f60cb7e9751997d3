"""``trainmark sweep`` as a user starts it, on a real Ray Tune, with workers and sweeps that are
killed."""

from __future__ import annotations

import contextlib
import json
import os
import signal
import socket
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import psutil
import pytest

from tests.conftest import PLUGINS
from tests.end_to_end.command import CommandLine, alive, descendants, measured, wait_until
from tests.slow import slow
from trainmark.measure.host import usable_core_numbers
from trainmark.record.caveats import Caveat
from trainmark.record.record import Record
from trainmark.record.store import load

# on a busy machine each worker of Ray takes half a minute to start
pytestmark = pytest.mark.timeout(1_200)
SECONDS = 500.0
TWELVE = ("learning_rate=0.1,0.03,0.01", "hidden=16,32", "seed=1,2")


@pytest.fixture
def _ray() -> None:
    pytest.importorskip("ray", reason="ray is not installed")


def arguments(command: CommandLine, *more: str, grid: tuple[str, ...] = TWELVE) -> list[str]:
    return [
        "sweep",
        "mnist-mlp128",
        "--grid",
        *grid,
        "--backend",
        "fake",
        "--device",
        "cpu",
        "--dataset",
        "synthetic-digits",
        "--steps",
        "20",
        "--parallel",
        "3",
        "--out",
        str(command.out),
        *more,
    ]


def records(command: CommandLine) -> list[Record]:
    folder = command.out / "sweep"
    return load([folder]) if list(folder.glob("*.json")) else []


def answers(address: str) -> bool:
    host, port = address.split(":")
    with socket.socket() as line:
        return line.connect_ex((host, int(port))) == 0


def listening(pid: int) -> set[str]:
    """Addresses that a process and its descendants listen on."""
    found: set[str] = set()
    for process in descendants(pid):
        with contextlib.suppress(psutil.Error):
            found |= {
                line.laddr.ip
                for line in process.net_connections("inet")
                if line.status == psutil.CONN_LISTEN
            }
    assert found, "Ray has servers"
    return found


def assert_each_once(made: list[Record], trials: int = 12) -> None:
    assert Counter(record.group.trial for record in made) == dict.fromkeys(range(1, trials + 1), 1)
    assert {record.outcome.status for record in made} == {"ok"}
    assert len({record.group.id for record in made}) == 1


@pytest.mark.slow
@pytest.mark.usefixtures("_ray")
def test_a_killed_worker_loses_nothing(command: CommandLine) -> None:
    process = command.start(
        *arguments(command, "--json"), fake={"step_seconds": 0.02, "noise": "hello\n"}
    )
    child, *_ = wait_until(
        lambda: measured(process.pid, deep=True) if len(records(command)) >= 2 else [], 240
    )
    assert listening(process.pid) <= {"127.0.0.1", "::ffff:127.0.0.1"}, (
        "nothing listens to the network"
    )
    child.parent().kill()  # type: ignore[union-attr]
    wait_until(lambda: not alive([child]))
    out, err = process.communicate(timeout=240)
    assert process.returncode == 0, err
    assert "its Ray worker died" in err and "is retried" in err
    made = records(command)
    assert_each_once(made)
    assert {record.group.kind for record in made} == {"sweep"}
    assert all(Caveat.SIDE_BY_SIDE in record.caveats for record in made)
    assert {record.threads for record in made} == {1}
    values = {json.dumps(record.group.values, sort_keys=True) for record in made}
    assert (
        len(values)
        == len({(record.workload.step_fingerprint, record.seed) for record in made})
        == 12
    )
    found = json.loads(out)
    assert list(found) == ["workload", "grid", "trials", "best"]
    assert found["grid"] == {"learning_rate": [0.01, 0.03, 0.1], "hidden": [16, 32], "seed": [1, 2]}
    assert sorted(trial["trial"] for trial in found["trials"]) == list(range(1, 13))
    assert found["best"] == found["trials"][0]["trial"]
    assert command.records() == [], "none where a comparison of speeds would look"


@pytest.mark.slow
@pytest.mark.usefixtures("_ray")
def test_a_killed_sweep_is_resumed_and_nothing_is_done_twice(command: CommandLine) -> None:
    words = arguments(command, "--parallel", "2", grid=("learning_rate=0.1,0.03", "seed=1,2"))
    process = command.start(*words, fake={"step_seconds": 0.1}, before=["setsid"])
    wait_until(lambda: len(records(command)) >= 2 and measured(process.pid, deep=True), SECONDS)
    others = descendants(process.pid)
    os.killpg(process.pid, signal.SIGKILL)
    process.communicate()
    wait_until(lambda: not alive(others))
    kept = {record.id for record in records(command)}
    assert 2 <= len(kept) < 4
    code, out, err = command.run_alone(*words, "--resume", seconds=SECONDS)
    assert code == 0, err
    assert f"{len(kept)} trials already recorded" in err
    assert_each_once(records(command), 4)
    assert kept < {record.id for record in records(command)}
    code, out, err = command.run(*words, "--resume")
    assert (code, len(records(command))) == (0, 4), "nothing is left to do"
    assert "4 trials, best first" in out


@pytest.mark.usefixtures("_ray")
@pytest.mark.parametrize("resumed", [False, slow(True)])
def test_asha_stops_a_trial_with_a_bad_learning_rate(command: CommandLine, resumed: bool) -> None:
    words = [
        "sweep",
        "mnist-mlp128",
        "--backend",
        "numpy",
        "--dataset",
        "synthetic-digits",
        "--epochs",
        "3",
        "--asha",
        "--parallel",
        "1",
        "--out",
        str(command.out),
        "--json",
        "--grid",
    ]
    if resumed:
        code, _, err = command.run_alone(*words, "learning_rate=0.1", seconds=SECONDS)
        assert code == 0, err
    both = ["learning_rate=0.1,0.000001", *(["--resume"] if resumed else [])]
    code, out, err = command.run_alone(*words, *both, seconds=SECONDS)
    assert code == 0, err
    assert "stopped after epoch 1" in err
    good, bad = records(command)
    assert (len(good.epochs), len(bad.epochs)) == (3, 1)
    assert Caveat.STOPPED_EARLY in bad.caveats and Caveat.STOPPED_EARLY not in good.caveats
    assert bad.outcome.status == "ok" and "stopped early by the sweep's scheduler" in (
        bad.outcome.reason or ""
    )
    assert json.loads(out)["best"] == good.group.trial == 1


@pytest.mark.slow
@pytest.mark.usefixtures("_ray")
def test_more_than_the_machine_has_is_an_error(command: CommandLine) -> None:
    cores = len(usable_core_numbers())
    more = ("--cpus-per-trial", str(cores), "--threads", "1", "--parallel", "2")
    code, _, err = command.run_alone(
        *arguments(command, *more, grid=("learning_rate=0.1,0.03",)), seconds=SECONDS
    )
    assert code == 0, err
    assert f"has only {cores} core" in err and "trials compete for" in err


@pytest.mark.slow
@pytest.mark.usefixtures("_ray")
@pytest.mark.parametrize("sent", [signal.SIGINT, slow(signal.SIGTERM)])
def test_ctrl_c_keeps_what_is_finished_and_leaves_no_process(
    command: CommandLine, sent: signal.Signals
) -> None:
    grid = ("learning_rate=0.1,0.03", "steps=2,2000")
    process = command.start(*arguments(command, "--json", grid=grid), fake={"step_seconds": 0.05})
    wait_until(lambda: len(records(command)) == 2 and measured(process.pid, deep=True), SECONDS)
    others = descendants(process.pid)
    process.send_signal(sent)
    out, err = process.communicate(timeout=240)
    assert process.returncode == 130, err
    assert out == "" and "Traceback" not in err and "--resume" in err
    wait_until(lambda: not alive(others))
    assert [record.outcome.status for record in records(command)] == ["ok", "ok"]


@pytest.mark.slow
@pytest.mark.usefixtures("_ray")
def test_a_trial_that_keeps_dying_is_recorded_and_the_others_go_on(command: CommandLine) -> None:
    grid = ("learning_rate=0.1", "steps=2,3,2000")
    process = command.start(
        *arguments(command, "--retries", "0", grid=grid), fake={"step_seconds": 0.05}
    )
    child, *_ = wait_until(
        lambda: measured(process.pid, deep=True) if len(records(command)) == 2 else [], 240
    )
    child.parent().kill()  # type: ignore[union-attr]
    out, err = process.communicate(timeout=240)
    assert process.returncode == 1, err
    ends = {record.group.trial: record.outcome for record in records(command)}
    assert [ends[number].status for number in (1, 2, 3)] == ["ok", "ok", "failed"]
    assert "its Ray worker died" in (ends[3].reason or "")
    assert "its Ray worker died" in out


@pytest.fixture
def cluster(tmp_path: Path, cache_home: Path, _ray: None) -> Iterator[tuple[str, str]]:
    """The two addresses of a head node, the second one for Ray Client; the sweep must not end
    it."""
    with (
        socket.create_server(("127.0.0.1", 0)) as one,
        socket.create_server(("127.0.0.1", 0)) as two,
    ):
        port = one.getsockname()[1]
        client_port = two.getsockname()[1]
    environment = os.environ | {"RAY_AUTH_MODE": "disabled", "XDG_CACHE_HOME": str(cache_home)}
    environment |= {"TRAINMARK_FAKE": '{"step_seconds": 0.01}', "RAY_TMPDIR": "/tmp"}
    environment["PYTHONPATH"] = PLUGINS  # as if the fake were installed there
    head = subprocess.Popen(
        [
            str(Path(sys.executable).with_name("ray")),
            "start",
            "--head",
            "--block",
            "--port",
            str(port),
            "--num-cpus",
            "2",
            "--include-dashboard",
            "false",
            "--object-store-memory",
            "80000000",
            "--disable-usage-stats",
            "--ray-client-server-port",
            str(client_port),
        ],
        env=environment,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        start_new_session=True,
    )
    yield f"127.0.0.1:{port}", f"127.0.0.1:{client_port}"
    with contextlib.suppress(ProcessLookupError):
        os.killpg(head.pid, signal.SIGKILL)
    head.wait()


@pytest.mark.slow
@pytest.mark.parametrize("client", [False, True], ids=["HOST:PORT", "ray://"])
def test_an_existing_cluster_does_the_same(
    command: CommandLine, cluster: tuple[str, str], monkeypatch: pytest.MonkeyPatch, client: bool
) -> None:
    monkeypatch.setenv("RAY_AUTH_MODE", "disabled")
    head = cluster[client]
    wait_until(lambda: answers(head))
    address = f"ray://{head}" if client else head
    code, _, err = command.run_alone(
        *arguments(command, "--address", address, grid=("learning_rate=0.1,0.03,0.01",)),
        seconds=SECONDS,
    )
    assert code == 0, err
    assert_each_once(records(command), 3)
    assert "2 at a time" in err
    assert "trials compete for" not in err, "how many cores a cluster has is its own affair"
    assert answers(head), "the cluster is still there"


@pytest.mark.parametrize(
    ("more", "said"),
    [
        (["--address", "127.0.0.1:1"], "no Ray cluster answers at '127.0.0.1:1'"),
        slow(["--address", "ray://127.0.0.1:1"], "Connection refused"),
        slow(["--address", "somewhere"], "expected auto, HOST:PORT or ray://HOST:PORT"),
        slow(["--gpus-per-trial", "1000"], "no node has the resources of a trial"),
    ],
)
@pytest.mark.usefixtures("_ray")
def test_an_address_or_resources_that_are_not_there(
    command: CommandLine, more: list[str], said: str
) -> None:
    started = time.monotonic()
    code, out, err = command.run_alone(*arguments(command, *more), seconds=SECONDS)
    assert code == 2, err
    assert said in err and "Traceback" not in err and out == ""
    assert time.monotonic() - started < 110, "Ray alone would try for two minutes"
    assert records(command) == []


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["--grid", "learnig_rate=0.1"], "Did you mean learning_rate"),
        (["--grid", "optimizer.momentun=0.1"], "Did you mean optimizer.momentum"),
        (["--grid", "learning_rate=fast"], "expected a number, found 'fast'"),
        (["--grid", "hidden=12.5"], "expected a whole number, found 12.5"),
        (
            ["--grid", "learning_rate=0.1", "hidden=0"],
            "hidden=0 does not fit mnist-mlp128 at model[1].units",
        ),
        (["--grid", "rho=0.9"], "mnist-mlp128 has no rho"),
        (["--grid", "learning_rate"], "can't be read"),
        (["--grid", "model[5].units=4"], "has too few outputs"),
        (["--grid", "seed=1,2", "--device", "cuda:7"], "does not see the device 'cuda:7'"),
        (["--grid", "seed=1,2", "--backend", "troch"], "Did you mean torch"),
        (["--grid", "seed=1,2", "--dataset", "mnits"], "Did you mean mnist"),
        ([], "there is nothing to vary"),
        (["--range", "learning_rate=0.1"], "expected KEY=LOW..HIGH"),
        (["--range", "learning_rate=0..1:log"], "the range 'learning_rate=0..1:log' can't be read"),
        (
            ["--range", "learning_rate=0.1..1", "--grid", "learning_rate=1"],
            "both a grid and a range",
        ),
        (["--range", "hidden=0.5..0.9"], "expected a whole number"),
        (["--grid", "seed=1,2", "--samples", "3"], "--samples has no range"),
        (["--grid", "seed=1,2", "--epochs", "1", "--asha"], "expected 2 epochs or more"),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, list) else "",
)
@pytest.mark.usefixtures("_ray")
def test_wrong_usage_is_exit_2_and_says_what_to_do(
    command: CommandLine, words: list[str], said: str
) -> None:
    code, out, err = command.run(
        "sweep",
        "mnist-mlp128",
        "--backend",
        "fake",
        "--dataset",
        "synthetic-digits",
        "--out",
        str(command.out),
        *words,
    )
    assert code == 2, err
    assert said in err and "Traceback" not in err and out == ""
    assert not command.out.exists()


def test_without_ray_it_says_how_to_get_it(
    command: CommandLine, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    hidden = "import sys; sys.modules['ray'] = None"
    (tmp_path / "sitecustomize.py").write_text(hidden)
    monkeypatch.setenv(
        "PYTHONPATH", os.pathsep.join([str(tmp_path), os.environ.get("PYTHONPATH", "")])
    )
    code, out, err = command.run_alone(*arguments(command), seconds=SECONDS)
    assert (code, out) == (2, "")
    assert "pip install 'trainmark[ray]'" in err
