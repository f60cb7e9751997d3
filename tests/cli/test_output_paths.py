"""Every option that names an output file, with a device, a pipe, a link or a private file."""

from __future__ import annotations

import os
import shlex
import stat
import subprocess
import sys
from pathlib import Path

import pytest

from tests.browser.samples import full_records
from tests.records import write_all

pytest.importorskip("vl_convert", reason="trainmark[report] is not installed")

COMMANDS = {
    "compare --export-json": ["compare", "--export-json"],
    "compare --export-markdown": ["compare", "--export-markdown"],
    "compare --export-csv": ["compare", "--export-csv"],
    "compare --export-svg": ["compare", "--export-svg"],
    "export --to csv": ["export", "--to", "csv", "-o"],
    "export --to markdown": ["export", "--to", "markdown", "-o"],
    "report": ["report", "-o"],
    "compare --plot": ["compare", "--plot"],
}
ANY_NAME = [name for name in COMMANDS if name != "compare --plot"]
"""The options that take any file name; a chart needs one that ends in .svg or .png."""


@pytest.fixture(scope="module")
def records(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder of records."""
    return write_all(tmp_path_factory.mktemp("records"), full_records(3))


def _command(name: str, target: Path | str, records: Path) -> list[str]:
    return [sys.executable, "-m", "trainmark", *COMMANDS[name], str(target), str(records)]


def _written(name: str, target: Path, records: Path) -> None:
    done = subprocess.run(
        _command(name, target, records), capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize("name", COMMANDS)
def test_a_link_is_followed_and_the_mode_stays(name: str, tmp_path: Path, records: Path) -> None:
    target = tmp_path / "target.svg"
    target.write_text("private")
    target.chmod(0o600)
    link = tmp_path / "link.svg"
    link.symlink_to(target)
    _written(name, link, records)
    assert link.is_symlink()
    assert stat.S_IMODE(target.stat().st_mode) == 0o600
    assert target.stat().st_size > 100


@pytest.mark.parametrize("name", COMMANDS)
def test_a_dangling_link_creates_its_target(name: str, tmp_path: Path, records: Path) -> None:
    link = tmp_path / "link.svg"
    link.symlink_to("target")
    _written(name, link, records)
    assert link.is_symlink()
    assert (tmp_path / "target").stat().st_size > 100


@pytest.mark.parametrize("name", COMMANDS)
def test_the_null_device_stays_a_device(name: str, tmp_path: Path, records: Path) -> None:
    device = tmp_path / "null.svg"
    try:
        os.mknod(device, stat.S_IFCHR, os.makedev(1, 3))
    except PermissionError:
        pytest.skip("only root can make a device, or replace one")
    link = tmp_path / "link.svg"
    link.symlink_to(device)
    for target in (device, link):
        _written(name, target, records)
    assert stat.S_ISCHR(device.stat().st_mode)
    assert link.is_symlink()


@pytest.mark.parametrize("name", COMMANDS)
def test_a_named_pipe_is_written_to(name: str, tmp_path: Path, records: Path) -> None:
    pipe = tmp_path / "pipe.svg"
    os.mkfifo(pipe)
    with (tmp_path / "read").open("wb") as read, subprocess.Popen(["cat", pipe], stdout=read):
        _written(name, pipe, records)
    assert (tmp_path / "read").stat().st_size > 100
    assert stat.S_ISFIFO(pipe.stat().st_mode)


@pytest.mark.parametrize("name", ANY_NAME)
def test_standard_output_and_process_substitution(name: str, tmp_path: Path, records: Path) -> None:
    to_stdout = shlex.join(_command(name, "/dev/stdout", records))
    to_process = shlex.join(_command(name, "TARGET", records)).replace("TARGET", ">(cat > through)")
    script = (
        f"{to_stdout} | cat > piped && (echo before; {to_stdout}; echo after) > log && "
        f"{to_process} > table"
    )
    script += "; wait $!"
    done = subprocess.run(
        ["bash", "-c", script], cwd=tmp_path, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    log = (tmp_path / "log").read_text()
    assert log.startswith("before\n")
    assert log.endswith("after\n")
    for file in ("piped", "log", "through"):
        assert (tmp_path / file).stat().st_size > 100


def test_a_full_device_and_a_closed_descriptor_are_errors(records: Path) -> None:
    if not Path("/dev/full").exists():
        pytest.skip("this system has no /dev/full")
    for target, found in (("/dev/full", "No space left"), ("/dev/fd/999", "Bad file descriptor")):
        command = _command("export --to csv", target, records)
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        assert done.returncode == 2
        assert f"can't write {target}" in done.stderr
        assert found in done.stderr
        assert "Choose another file." in done.stderr


@pytest.mark.parametrize(
    "words",
    [
        ["explain", "--export-svg", "FILE", "--", "python", "train.py"],
        ["explain", "--chart", "FILE", "--", "python", "train.py"],
        ["scale", "mnist-mlp128", "--plot", "FILE"],
    ],
    ids=lambda words: " ".join(words[:3]),
)
def test_a_missing_folder_is_an_error_before_the_run(words: list[str], tmp_path: Path) -> None:
    (tmp_path / "train.py").write_text("open('started', 'w').close()\n")
    file = "missing/picture.svg"
    done = subprocess.run(
        [sys.executable, "-m", "trainmark", *(file if word == "FILE" else word for word in words)],
        capture_output=True,
        text=True,
        cwd=tmp_path,
        check=False,
    )
    assert done.returncode != 0
    assert f"can't write {file}" in done.stderr
    assert [path.name for path in tmp_path.iterdir()] == ["train.py"]
