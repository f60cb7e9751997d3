"""``trainmark container``, from its arguments to its exit code, with builders that only say what they were asked."""

from __future__ import annotations

import itertools
import json
import os
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import psutil
import pytest
import yaml

from tests.end_to_end.command import wait_until
from tests.unit.container.samples import DIGEST, a_builder
from trainmark import __version__
from trainmark.cli.main import run

PATH = os.environ["PATH"]
IMAGE = f"trainmark:{__version__}".replace("+", "-")
WHEEL = f"WHEEL=trainmark-{__version__}-py3-none-any.whl"


@pytest.fixture
def programs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder that alone is searched for programs; the working folder is an empty one."""
    folder = tmp_path / "bin"
    folder.mkdir()
    monkeypatch.setenv("PATH", str(folder))
    monkeypatch.chdir(tmp_path)
    return folder


def told(log: Path) -> list[list[str]]:
    """The commands that a builder got."""
    return [json.loads(line) for line in log.read_text().splitlines()]


def the_build(log: Path) -> list[str]:
    """The one that builds."""
    (words,) = [words for words in told(log) if words[0] == "build"]
    return words


def values(words: list[str], option: str) -> list[str]:
    """What was given with ``option``."""
    return [value for word, value in itertools.pairwise(words) if word == option]


def test_write_needs_no_builder(programs: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["container", "write"]) == 0
    err = capsys.readouterr().err
    assert "wrote trainmark-" in err
    assert err.count("is no digest") == 2
    folder = tmp_path / "trainmark-container"
    assert {"Dockerfile", "Dockerfile.cuda", "compose.yaml", ".dockerignore"} <= {
        path.name for path in folder.iterdir()
    }
    assert set(yaml.safe_load((folder / "compose.yaml").read_text())["services"]) == {"cpu", "cuda"}
    assert run(["container", "write"]) == 0
    assert "wrote nothing new" in capsys.readouterr().err


def test_write_for_one_device_on_a_pinned_base(programs: Path, capsys: pytest.CaptureFixture[str]) -> None:
    base = f"nvidia/cuda@{DIGEST}"
    assert run(["container", "write", "--device", "cuda", "--base", base, "--out", "there", "--json"]) == 0
    captured = capsys.readouterr()
    data = json.loads(captured.out)
    assert (data["bases"], data["version"], data["folder"]) == ({"cuda": base}, __version__, "there")
    assert "Dockerfile" not in data["written"]
    assert captured.err == ""


def test_write_does_not_write_over_changes(programs: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    run(["container", "write", "--out", "there"])
    (tmp_path / "there/Dockerfile").write_text("FROM mine\n")
    assert run(["container", "write", "--out", "there"]) == 2
    assert "Dockerfile in there would be written over" in capsys.readouterr().err
    assert run(["container", "write", "--out", "there", "--force"]) == 0
    assert "ENTRYPOINT" in (tmp_path / "there/Dockerfile").read_text()


@pytest.mark.parametrize(
    "arguments",
    [
        ["write", "--base", "debian:12"],
        ["write", "--device", "cpu", "--ngc"],
        ["write", "--device", "cpu", "--base", "a b"],
        ["build", "--ngc"],
        ["build", "--device", "cuda", "--torch-index", "https://example.org"],
        ["build", "--tag", "a\nb"],
        ["build", "--device", "tpu"],
        ["build", "--pip-config", "absent.conf"],
    ],
)
def test_requests_that_make_no_sense(arguments: list[str], programs: Path, tmp_path: Path) -> None:
    a_builder(programs, "docker")
    assert run(["container", *arguments]) == 2
    assert not (tmp_path / "trainmark-container").exists()


def test_build_says_what_it_made(programs: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    log = a_builder(programs, "buildah")
    assert run(["container", "build"]) == 0
    captured = capsys.readouterr()
    assert f"{IMAGE}-cpu: 1.21 KiB, built by buildah in " in captured.out
    assert "2 Python packages in it: trainmark-container/Dockerfile.sbom.cdx.json" in captured.out
    assert f'podman run --rm --hostname "$(hostname)" -v "$PWD:/work" {IMAGE}-cpu' in captured.out
    assert "STEP 1/2" in captured.err
    assert "a detail" not in captured.err
    assert "a detail" in (tmp_path / "trainmark-container/Dockerfile.log").read_text()
    words = the_build(log)
    assert values(words, "--build-arg") == [f"BASE=docker.io/library/debian@{DIGEST}", WHEEL]
    assert f"org.opencontainers.image.version={__version__}" in values(words, "--label")
    assert ["rm", "trainmark-working-container"] in told(log)


def test_build_as_json(programs: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    a_builder(programs, "podman")
    assert run(["container", "build", "--json", "--tag", "me/mine:1", "--base", f"debian@{DIGEST}"]) == 0
    data = json.loads(capsys.readouterr().out)
    assert data.pop("seconds") > 0
    assert data == {
        "image": "me/mine:1",
        "id": "sha256:abc123",
        "engine": "podman",
        "base": f"debian@{DIGEST}",
        "bytes": 1234,
        "sbom": "trainmark-container/Dockerfile.sbom.cdx.json",
        "packages": 2,
        "log": "trainmark-container/Dockerfile.log",
    }


def test_what_the_builder_is_asked(programs: Path, tmp_path: Path) -> None:
    log = a_builder(programs, "docker")
    (tmp_path / "pip.conf").touch()
    arguments = ["--torch-index", "", "--pip-config", "pip.conf", "--target", "build", "--out", "there"]
    assert run(["container", "build", *arguments]) == 0
    words = the_build(log)
    assert values(words, "--build-arg") == [f"BASE=debian@{DIGEST}", WHEEL, "TORCH_INDEX="]
    assert values(words, "--secret") == [f"id=pip.conf,src={tmp_path / 'pip.conf'}"]
    assert values(words, "--target") == ["build"]
    assert values(words, "--tag") == [f"{IMAGE}-cpu-build"]
    assert values(words, "--progress") == ["plain"]
    assert values(words, "--file") == ["there/Dockerfile"]
    assert words[-1] == "there"
    assert not [words for words in told(log) if words[0] == "run"]  # a part of an image has no list of packages


@pytest.mark.parametrize(
    ("builder", "said"),
    [
        ("docker", 'docker run --rm --hostname "$(hostname)" --gpus all --ipc=host'),
        ("podman", 'podman run --rm --hostname "$(hostname)" --device nvidia.com/gpu=all --ipc=host'),
        ("buildah", 'podman run --rm --hostname "$(hostname)" --device nvidia.com/gpu=all --ipc=host'),
    ],
)
def test_nvidias_own_image(builder: str, said: str, programs: Path, capsys: pytest.CaptureFixture[str]) -> None:
    log = a_builder(programs, builder)
    assert run(["container", "build", "--device", "cuda", "--ngc"]) == 0
    assert values(the_build(log), "--file") == ["trainmark-container/Dockerfile.ngc"]
    assert f'{said} --ulimit memlock=-1 --ulimit stack=67108864 -v "$PWD:/work" trainmark:' in capsys.readouterr().out


def test_a_folder_that_looks_like_an_option_is_none(programs: Path, capsys: pytest.CaptureFixture[str]) -> None:
    a_builder(programs, "docker")
    assert run(["container", "build", "--dry-run", "--json", "--out=-x"]) == 0
    words = json.loads(capsys.readouterr().out)["command"]
    assert (values(words, "--file"), words[-1]) == (["./-x/Dockerfile"], "./-x")


def test_the_first_that_answers_builds(programs: Path, capsys: pytest.CaptureFixture[str]) -> None:
    docker, podman = a_builder(programs, "docker", broken=True), a_builder(programs, "podman")
    a_builder(programs, "buildah")
    assert run(["container", "build", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["engine"] == "podman"
    assert told(docker) == [["version"]]
    assert the_build(podman)


def test_the_one_that_was_asked_for_builds(programs: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for name in ("docker", "podman", "buildah"):
        a_builder(programs, name)
    assert run(["container", "build", "--with", "buildah", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["engine"] == "buildah"


def test_what_is_only_called_like_a_builder_is_none(programs: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (programs / "docker").write_text("#!/no/such/interpreter\n")
    (programs / "podman").write_bytes(b"\x00 no program")
    for name in ("docker", "podman"):
        (programs / name).chmod(0o755)
    assert run(["container", "build", "--dry-run"]) == 2
    err = capsys.readouterr().err
    assert "docker, which can't build: No such file" in err and "podman, which can't build: Exec format" in err
    a_builder(programs, "buildah")
    assert run(["container", "build", "--dry-run"]) == 0


@pytest.mark.parametrize(("more", "said"), [([], "docker or podman or buildah"), (["--with", "podman"], "no podman")])
def test_nobody_builds(more: list[str], said: str, programs: Path, capsys: pytest.CaptureFixture[str]) -> None:
    a_builder(programs, "docker", broken=True)
    assert run(["container", "build", *more]) == 2
    err = capsys.readouterr().err
    assert "nothing here builds images" in err
    assert said in err
    assert ("can't build: Cannot connect: is the daemon running?" in err) == (not more)


def test_a_build_that_fails(programs: Path, monkeypatch: Any, capsys: pytest.CaptureFixture[str]) -> None:
    a_builder(programs, "buildah")
    monkeypatch.setenv("FAIL", "1")
    assert run(["container", "build", "--json"]) == 1
    captured = capsys.readouterr()
    assert captured.out == ""
    assert "found exit code 1 of buildah" in captured.err
    assert "E: no such package: python3" in captured.err
    assert "trainmark-container/Dockerfile.log" in captured.err


def test_changed_files_are_built_as_they_are(
    programs: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    log = a_builder(programs, "buildah")
    run(["container", "write"])
    dockerfile = tmp_path / "trainmark-container/Dockerfile"
    changed = dockerfile.read_text().replace("docker.io/library/debian:bookworm-slim", f"debian@{DIGEST}")
    changed = changed.replace("ARG WHEEL=trainmark-", "ARG WHEEL=trainmark-0.0.1-of-then-") + "# mine\n"
    dockerfile.write_text(changed)
    compose = (tmp_path / "trainmark-container/compose.yaml").read_text()
    assert run(["container", "build"]) == 0
    assert "Dockerfile in trainmark-container was changed there and is used as it is" in capsys.readouterr().err
    assert dockerfile.read_text() == changed
    assert values(the_build(log), "--build-arg") == [f"BASE=debian@{DIGEST}", WHEEL], "its name is of the code of now"
    assert (tmp_path / "trainmark-container/compose.yaml").read_text() == compose


def test_a_dry_run_prints_the_command(programs: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    log = a_builder(programs, "buildah")
    assert run(["container", "build", "--dry-run"]) == 0
    assert "build --file trainmark-container/Dockerfile --tag" in capsys.readouterr().out
    assert run(["container", "build", "--dry-run", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["command"][1] == "build"
    assert [words[0] for words in told(log)] == ["info", "info"]


@pytest.mark.parametrize("how", [signal.SIGINT, signal.SIGTERM])
def test_an_interrupt_leaves_no_process(how: signal.Signals, programs: Path, tmp_path: Path) -> None:
    a_builder(programs, "buildah")
    environment = os.environ | {"WAIT": str(tmp_path / "pids")}
    words = [sys.executable, "-m", "trainmark", "container", "build"]
    with subprocess.Popen(words, env=environment, stderr=subprocess.PIPE, text=True) as process:
        wait_until((tmp_path / "pids").is_file)
        wait_until(lambda: (tmp_path / "pids").read_text())
        process.send_signal(how)
        _, err = process.communicate(timeout=60)
    assert process.returncode == 130
    assert "interrupted" in err
    left = [int(pid) for pid in (tmp_path / "pids").read_text().split()]
    wait_until(lambda: not any(psutil.pid_exists(pid) for pid in left))
