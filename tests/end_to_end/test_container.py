"""The image for the CPU for real, without a daemon or a registry: Debian is its base, buildah
builds and runs it."""

from __future__ import annotations

import http.server
import json
import os
import re
import shutil
import signal
import ssl
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from functools import partial
from pathlib import Path

import psutil
import pytest

from tests.end_to_end.command import measured, wait_until
from trainmark.record.store import load

pytestmark = [pytest.mark.slow, pytest.mark.timeout(3600)]

ROOT = Path(__file__).parents[2]
VERSION = "0.1.0.dev7+of.a.test"
BASE = "localhost/trainmark-test/base"
IMAGE = "localhost/trainmark-test/cpu:of-a-test"
CERTIFICATES = "/usr/local/share/trainmark-test.crt"
ENVIRONMENT = os.environ | {"STORAGE_DRIVER": "vfs", "BUILDAH_ISOLATION": "chroot"}


def call(*words: str, check: bool = True) -> str:
    """Run a program, and return what it prints."""
    answer = subprocess.run(words, capture_output=True, text=True, env=ENVIRONMENT, cwd=ROOT)
    assert not check or answer.returncode == 0, answer.stdout[-2000:] + answer.stderr[-4000:]
    return answer.stdout.strip()


@pytest.fixture(scope="module")
def base(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """A Debian image without a registry, made by Debian's installer."""
    missing = [name for name in ("buildah", "debootstrap") if shutil.which(name) is None]
    if missing or os.geteuid() != 0:
        pytest.skip(f"needs root, buildah and debootstrap; missing: {', '.join(missing) or 'root'}")
    root = tmp_path_factory.mktemp("debian")
    call(
        "debootstrap", "--variant=minbase", "--include=python3,python3-venv", "bookworm", str(root)
    )
    for leftover in ("var/cache/apt", "var/lib/apt/lists"):
        shutil.rmtree(root / leftover)
    # Make the build trust the certificates that this machine trusts.
    trusted = os.environ.get("PIP_CERT") or ssl.get_default_verify_paths().cafile
    if trusted:
        shutil.copy(trusted, root / CERTIFICATES[1:])
    container = call("buildah", "from", "scratch")
    call("buildah", "add", container, str(root), "/")
    call("buildah", "commit", "--rm", container, BASE)
    shutil.rmtree(root)
    yield BASE
    call("buildah", "rmi", "--force", BASE, check=False)


@pytest.fixture(scope="module")
def torch_index(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """Serve an index that has PyTorch for the CPU, like PyTorch's own, from packages that pip finds
    here."""
    folder = tmp_path_factory.mktemp("index")
    pip = [
        sys.executable,
        "-m",
        "pip",
        "download",
        "--no-deps",
        "--python-version",
        "3.11",
        "--only-binary=:all:",
    ]
    call(*pip, "--dest", str(folder / "torch"), "torch==2.13.0")
    if not list((folder / "torch").glob("*+cpu-*")):
        pytest.skip("pip finds no PyTorch for the CPU alone here")

    class Quiet(http.server.SimpleHTTPRequestHandler):
        def log_message(self, *arguments: object) -> None:
            pass

    with http.server.ThreadingHTTPServer(
        ("127.0.0.1", 0), partial(Quiet, directory=str(folder))
    ) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{server.server_port}/"
        server.shutdown()


@pytest.fixture(scope="module")
def built(base: str, torch_index: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """The image, built as docs/containers.md says."""
    settings = tmp_path_factory.mktemp("pip") / "pip.conf"
    settings.write_text(f"[global]\ncert = {CERTIFICATES}\n")
    arguments = {"BASE": base, "TORCH_INDEX": torch_index, "VERSION": VERSION}
    words = [
        "build",
        "--file",
        "docker/Dockerfile",
        "--tag",
        IMAGE,
        "--secret",
        f"id=pip.conf,src={settings}",
    ]
    words += [
        word for name, value in arguments.items() for word in ("--build-arg", f"{name}={value}")
    ]
    start = time.monotonic()
    call("buildah", *words, ".")
    print(f"\nbuilt in {time.monotonic() - start:.0f} s")
    yield IMAGE
    call("buildah", "rmi", "--force", IMAGE, check=False)


@pytest.fixture(scope="module")
def container(built: str) -> Iterator[str]:
    """A container of the image, to run commands in."""
    name = call("buildah", "from", "--pull-never", IMAGE)
    yield name
    call("buildah", "rm", name)


def in_it(
    container: str, folder: Path, *arguments: str, user: str = "1000:1000", data: Path | None = None
) -> list[str]:
    """Return the command that does what ``docker run -v FOLDER:/work IMAGE ARGUMENTS`` does."""
    mounts = ["--volume", f"{folder}:/work"]
    if data is not None:
        mounts += ["--volume", f"{data}:/data:ro", "--env", "TRAINMARK_DATA=/data"]
    return ["buildah", "run", "--user", user, *mounts, container, "--", "trainmark", *arguments]


@pytest.fixture
def folder(tmp_path: Path) -> Iterator[Path]:
    """A folder of the image's user, and reachable for it."""
    made = Path("/var/tmp") / f"trainmark-{tmp_path.name}-{os.getpid()}"
    made.mkdir()
    os.chown(made, 1000, 1000)
    yield made
    shutil.rmtree(made)


def test_its_size_and_settings(built: str) -> None:
    image = json.loads(call("buildah", "inspect", "--type", "image", built))["OCIv1"]["config"]
    assert (image["User"], image["WorkingDir"], image["StopSignal"]) == (
        "1000:1000",
        "/work",
        "SIGINT",
    )
    assert (image["Entrypoint"], image["Cmd"]) == (["trainmark"], ["run"])
    size = json.loads(call("buildah", "images", "--json", built))[0]["size"]
    print(f"\n{built}: {size}")
    assert size.endswith("MB"), "a CUDA build would take gigabytes"


def test_its_version_is_that_of_the_clone(container: str, folder: Path) -> None:
    assert call(*in_it(container, folder, "--version")) == f"trainmark {VERSION}"


def test_nothing_to_build_with_is_in_it(container: str) -> None:
    found = call(
        "buildah",
        "run",
        container,
        "--",
        "sh",
        "-c",
        "command -v gcc cc pip pip3 make || true; id -u",
    )
    assert found == "1000"


def test_the_main_job_leaves_its_records_in_the_mounted_folder(
    container: str, folder: Path, data_dir: Path
) -> None:
    call(
        *in_it(
            container,
            folder,
            "run",
            "--repeats",
            "2",
            "--steps",
            "100",
            "--threads",
            "1",
            data=data_dir,
        )
    )
    records = load([folder / "trainmark-results"])
    assert {record.outcome.status for record in records} == {"ok"}
    assert {
        (record.backend.name, record.device.id, record.workload.name) for record in records
    } == {("torch", "cpu", "mnist-mlp512")}
    assert len(records) == 4
    assert {path.stat().st_uid for path in (folder / "trainmark-results").iterdir()} == {1000}


def test_any_user_can_run_it(container: str, folder: Path) -> None:
    os.chown(folder, 4321, 4321)
    words = [
        "run",
        "mnist-mlp128",
        "--dataset",
        "synthetic-digits",
        "--steps",
        "20",
        "--repeats",
        "1",
        "--style",
        "fast",
    ]
    call(*in_it(container, folder, *words, user="4321:4321"))
    assert [record.outcome.status for record in load([folder / "trainmark-results"])] == ["ok"]


def test_a_folder_that_its_user_may_not_write_is_an_error(container: str, folder: Path) -> None:
    os.chown(folder, 0, 0)
    words = in_it(
        container, folder, "run", "mnist-mlp128", "--dataset", "synthetic-digits", "--steps", "20"
    )
    answer = subprocess.run(words, capture_output=True, text=True, env=ENVIRONMENT)
    assert answer.returncode != 0
    assert "can't write to trainmark-results" in answer.stderr
    assert "--user" in answer.stderr


def test_doctor(container: str, folder: Path) -> None:
    checks = {
        check["id"]: check
        for check in json.loads(call(*in_it(container, folder, "doctor", "--json")))["checks"]
    }
    assert checks["torch.import"]["status"] == "PASS"
    assert checks["torch.product.cpu"]["status"] == "PASS"


@pytest.mark.parametrize("how", [signal.SIGINT, signal.SIGTERM])
def test_the_first_process_of_a_container_ends_on_request(
    how: signal.Signals, container: str, folder: Path
) -> None:
    """`docker stop`: process 1 has no default action for a signal, so a program that does not
    listen is killed."""
    # Steps are reported at the end of an epoch, so a short one.
    training = [
        "run",
        "mnist-mlp32",
        "--dataset",
        "synthetic-digits",
        "--style",
        "fast",
        "--threads",
        "1",
    ]
    training += ["--epochs", "100000", "--log-every", "10"]
    words = in_it(container, folder, *training, user="0")
    words[2:2] = ["--cap-add", "CAP_SYS_ADMIN"]
    at = words.index("--") + 1
    words[at:at] = ["unshare", "--pid", "--fork", "--kill-child", "--mount-proc"]
    with subprocess.Popen(words, env=ENVIRONMENT, stderr=subprocess.PIPE, text=True) as outside:
        assert outside.stderr is not None
        assert any(re.search(r"step\s+\d", line) for line in outside.stderr), (
            "it ended before its first step"
        )
        (child,) = measured(outside.pid, deep=True)
        first = child.parent()
        assert first is not None
        assert (inner(first.pid), inner(child.pid) > 1) == (1, True)
        first.send_signal(how)
        _, err = outside.communicate(timeout=60)
    assert "interrupted" in err
    wait_until(lambda: not psutil.pid_exists(child.pid))
    assert {record.outcome.status for record in load([folder / "trainmark-results"])} == {
        "interrupted"
    }


def inner(pid: int) -> int:
    """The number of a process inside its own namespace."""
    status = Path(f"/proc/{pid}/status").read_text()
    return int(next(line for line in status.splitlines() if line.startswith("NSpid:")).split()[-1])
