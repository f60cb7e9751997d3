"""Explain a user's own script by changes to it."""

from __future__ import annotations

import json
import shutil
import signal
from pathlib import Path

import psutil
import pytest

from tests.end_to_end.command import CommandLine, alive, measured, wait_until
from trainmark import landlock

pytest.importorskip("torch")

# a dozen processes import PyTorch, which takes long on a busy machine
pytestmark = pytest.mark.timeout(900)

SCRIPTS = Path(__file__).parent / "own_scripts"


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The user's working folder."""
    folder = tmp_path / "mine"
    folder.mkdir()
    shutil.copy(SCRIPTS / "slow_loader.py", folder)
    (folder / "model.pt").write_bytes(b"the user's")
    monkeypatch.chdir(folder)
    return folder


def test_the_loader_is_named_and_no_file_of_the_user_changes(
    command: CommandLine, folder: Path
) -> None:
    script = ["python", "slow_loader.py", str(folder / "model.pt")]
    only = ["--only", "same-batch", "--only", "workers"]
    chart = folder.parent / "gains.svg"
    code, out, err = command.run(
        "explain", "--seconds", "50", *only, "--json", "--chart", str(chart), "--", *script
    )
    assert code == 0, err
    found = json.loads(out)
    (first,) = found["findings"]
    assert (first["change"], first["place"]) == ("same-batch", "slow_loader.py:19")
    assert first["speedup"]["value"] > 2
    assert first["fresh"], "it was measured again"
    assert first["proof"] == "Slow is no longer read"
    assert found["shares"]["loader"] > 0.5
    # as many as cores
    (why,) = (why for change, why in found["left_out"].items() if change.startswith("workers="))
    assert "not from another process" in why
    assert "slow_loader.py:19" in found["sentences"][0]
    assert found["observed"]["saves"] > 0
    assert max(found["lines"], key=found["lines"].get) == "slow_loader.py:19"
    assert chart.read_text().startswith("<svg")
    assert sorted(each.name for each in folder.iterdir()) == ["model.pt", "slow_loader.py"]
    assert (folder / "model.pt").read_bytes() == b"the user's"


@pytest.mark.slow  # by day, a host without processes is interrupted
def test_ctrl_c_shows_what_was_measured(command: CommandLine, folder: Path) -> None:
    only = ["--only", "same-batch", "--only", "fused"]
    words = [
        "--seconds",
        "600",
        *only,
        "--json",
        "--",
        "python",
        "slow_loader.py",
        str(folder / "model.pt"),
    ]
    process = command.start("explain", *words)
    seen: dict[int, psutil.Process] = {}

    def measured_again() -> bool:
        seen.update({child.pid: child for child in measured(process.pid)})
        return len(seen) > 1 + 3  # the unchanged script, then three sides

    wait_until(measured_again)
    process.send_signal(signal.SIGINT)
    out, err = process.communicate(timeout=120)
    assert process.returncode == 130, err
    found = json.loads(out)
    assert found["interrupted"]
    by_change = {each["change"]: each for each in found["findings"]}
    assert by_change["same-batch"]["speedup"]["value"] > 2
    assert not by_change["same-batch"]["fresh"]
    assert any("Measured only once" in sentence for sentence in found["sentences"])
    assert "Traceback" not in err
    assert not alive(list(seen.values()))
    assert sorted(each.name for each in folder.iterdir()) == ["model.pt", "slow_loader.py"]


def test_ctrl_c_before_any_change_was_measured(command: CommandLine, folder: Path) -> None:
    process = command.start(
        "explain", "--json", "--", "python", "slow_loader.py", str(folder / "model.pt")
    )
    children = wait_until(lambda: measured(process.pid))
    process.send_signal(signal.SIGINT)
    out, err = process.communicate(timeout=120)
    assert (process.returncode, out) == (130, "")
    assert "Traceback" not in err
    assert not alive(children)


def test_a_script_without_a_step_is_an_error(command: CommandLine, folder: Path) -> None:
    (folder / "none.py").write_text("print('no training'); raise SystemExit(3)")
    code, _, err = command.run("explain", "--", "python", "none.py")
    assert code == 1
    assert "exit code 3: no training" in err
    assert "PyTorch" in err


def test_a_script_reads_the_neighbours_of_its_folder_only(
    command: CommandLine, folder: Path
) -> None:
    (folder.parent / "data.txt").write_text("digits")
    (folder / "reads.py").write_text(
        "print(open('../data.txt').read()); open('../data.txt', 'w').write('lost'); raise "
        "SystemExit(3)"
    )
    code, _, err = command.run("explain", "--", "python", "reads.py")
    assert code == 1
    assert "exit code 3: digits" in err
    assert (folder.parent / "data.txt").read_text() == "digits"


def test_a_script_that_fails_by_itself_is_not_explained(command: CommandLine, folder: Path) -> None:
    shutil.copy(SCRIPTS / "crash.py", folder)
    code, _, err = command.run("explain", "--seconds", "60", "--", "python", "crash.py")
    assert code == 1
    assert "crash.py can't be explained" in err
    assert "the last words" in err


@pytest.mark.parametrize("name", ["mine", "reports", "turns"])
def test_a_shell_can_write_to_no_file_of_the_users(
    command: CommandLine, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    (tmp_path / name / "many").mkdir(parents=True)
    monkeypatch.chdir(tmp_path / name)
    big = Path("big")
    big.write_bytes(bytes(2 << 20))
    for number in range(300):
        Path("many", str(number)).touch()
    code, _, err = command.run(
        "explain", "--", "sh", "-c", "echo x > big; rm many/*; echo no training >&2; exit 3"
    )
    assert code == 1
    assert "exit code 3: no training" in err
    assert big.read_bytes() == bytes(2 << 20)
    assert len(list(Path("many").iterdir())) == 300


def test_a_folder_too_large_to_copy_is_refused(
    command: CommandLine, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(landlock.OFF_VARIABLE, "off")
    limit = ("--copy-limit", "0.0000001")
    code, _, err = command.run("explain", *limit, "--", "sh", "-c", "python slow_loader.py")
    assert code == 2
    assert "too large to copy" in err
    assert "--copy-limit" in err


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (("--only", "faster", "--", "python", "slow_loader.py"), "faster"),
        (("mnist-mlp128", "--", "python", "slow_loader.py"), "nothing before --"),
        (("--backend", "torch", "--", "python", "slow_loader.py"), "--backend"),
        (("--only", "bf16", "mnist-mlp128"), "--only"),
        ((), "WORKLOAD"),
        (("--",), "WORKLOAD"),
        (("--chart", "gains.txt", "--", "python", "slow_loader.py"), ".svg"),
        (
            ("--chart", "nowhere/gains.svg", "--", "python", "slow_loader.py"),
            "an existing, writable folder",
        ),
        (("--", "no-such-program"), "no-such-program"),
        (("--", "python", "slow_loader.py", "--device", "{device}"), "device"),
    ],
)
def test_odd_arguments_are_refused(
    command: CommandLine, folder: Path, arguments: tuple[str, ...], words: str
) -> None:
    code, _, err = command.run("explain", *arguments)
    assert code == 2
    assert words in err
    assert "trying changes" not in err
