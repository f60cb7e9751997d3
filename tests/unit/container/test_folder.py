"""The folder that images are built from."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.unit.container.samples import DIGEST, an_origin
from trainmark.container.flavours import CPU, CUDA
from trainmark.container.folder import base_there, contents, write
from trainmark.container.wheel import wheel_name
from trainmark.errors import OutputError

FILES = {"Dockerfile": b"FROM one\n", "t-1.whl": b"code"}


def test_files_are_written_once(tmp_path: Path) -> None:
    folder = tmp_path / "new"
    assert write(folder, FILES, keep_changed=False).written == ("Dockerfile", "t-1.whl")
    assert write(folder, FILES, keep_changed=False).unchanged == ("Dockerfile", "t-1.whl")
    assert (folder / "Dockerfile").read_bytes() == b"FROM one\n"


def test_what_nobody_changed_is_brought_up_to_date(tmp_path: Path) -> None:
    write(tmp_path, FILES, keep_changed=False)
    assert write(tmp_path, {"Dockerfile": b"FROM two\n"}, keep_changed=False).written == ("Dockerfile",)
    assert (tmp_path / "Dockerfile").read_bytes() == b"FROM two\n"


def test_a_changed_file_is_not_written_over(tmp_path: Path) -> None:
    write(tmp_path, FILES, keep_changed=False)
    (tmp_path / "Dockerfile").write_text("FROM mine\n")
    with pytest.raises(OutputError, match=r"Dockerfile in .* would be written over.*--force"):
        write(tmp_path, {**FILES, "t-2.whl": b"newer"}, keep_changed=False)
    assert (tmp_path / "Dockerfile").read_text() == "FROM mine\n"
    assert not (tmp_path / "t-2.whl").exists()  # all or nothing


def test_a_file_of_somebody_elses_counts_as_changed(tmp_path: Path) -> None:
    (tmp_path / "Dockerfile").write_text("FROM mine\n")
    with pytest.raises(OutputError, match="would be written over"):
        write(tmp_path, FILES, keep_changed=False)


def test_to_build_a_changed_file_is_kept_and_the_code_is_not(tmp_path: Path) -> None:
    write(tmp_path, FILES, keep_changed=False)
    for name in FILES:
        (tmp_path / name).write_text("mine")
    written = write(tmp_path, FILES, keep_changed=True)
    assert (written.kept, written.written) == (("Dockerfile",), ("t-1.whl",))
    assert (tmp_path / "Dockerfile").read_text() == "mine"
    assert write(tmp_path, FILES, keep_changed=True).kept == ("Dockerfile",)  # still, the next time


def test_force_writes_over_it(tmp_path: Path) -> None:
    (tmp_path / "Dockerfile").write_text("FROM mine\n")
    assert write(tmp_path, FILES, keep_changed=False, force=True).written == ("Dockerfile", "t-1.whl")


@pytest.mark.parametrize("known", ["[]", "{", "\x00"])
def test_a_lost_memory_counts_as_changed(known: str, tmp_path: Path) -> None:
    write(tmp_path, FILES, keep_changed=False)
    (tmp_path / ".written.json").write_text(known)
    with pytest.raises(OutputError):
        write(tmp_path, {"Dockerfile": b"FROM two\n"}, keep_changed=False)


def test_a_folder_that_is_a_file(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(OutputError, match="can't write into"):
        write(tmp_path / "file", FILES, keep_changed=False)


def test_everything_that_the_dockerfiles_copy_is_there() -> None:
    files = contents([(CPU, CPU.base), (CUDA, CUDA.base)], an_origin())
    for name in ("Dockerfile", "Dockerfile.cuda"):
        text = files[name].decode().replace("${WHEEL}", wheel_name(an_origin()))
        copied = [line.split()[1] for line in text.splitlines() if line.startswith("COPY ")]
        assert {name for name in copied if not name.startswith("--from")} <= files.keys()
    assert files[".dockerignore"].decode().splitlines()[-3:] == ["*", "!trainmark-*.whl", "!requirements-*.txt"]


def test_the_base_that_was_written_is_remembered(tmp_path: Path) -> None:
    assert base_there(tmp_path, CPU) is None
    write(tmp_path, contents([(CPU, f"debian@{DIGEST}")], an_origin()), keep_changed=False)
    assert base_there(tmp_path, CPU) == f"debian@{DIGEST}"
    assert base_there(tmp_path, CUDA) is None
