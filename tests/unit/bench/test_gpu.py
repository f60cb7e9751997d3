"""The page about a GPU, made with the fake one."""

from __future__ import annotations

import json
import os
import re
import shutil
import signal
import subprocess
import sys
import time
import zipfile
from pathlib import Path

import gpu
import pytest
import tomllib
from gpu_page import Page, peak_tables

from tests.conftest import PLUGINS
from tests.unit.bench.conftest import BENCH
from trainmark.data.locate import Located

DEADLINE_SECONDS = 400.0


@pytest.fixture
def session(tmp_path: Path, cache_home: Path, drawn: Located):
    """A session on the fake GPU, with digits drawn by code."""
    folder, scratch = tmp_path / "gpu", tmp_path / "scratch"
    folder.mkdir()
    scratch.mkdir()
    made = gpu.Session(folder, "cuda:0", True, scratch, environment(cache_home))
    assert gpu.probe(made, ["fake", "numpy"]) == ["numpy: sees cpu, not cuda:0"]
    return made


def cifar10() -> gpu.Section:
    return gpu.Section("Photographs", 1000, gpu.training("others", [gpu.Course(("cifar10-cnn",), ())]), lambda _: "")


def environment(cache_home: Path, **fake: object) -> dict[str, str]:
    kept = {name: value for name, value in os.environ.items() if name not in ("TRAINMARK_DATA", "PYTHONPATH")}
    more = {"TRAINMARK_FAKE": json.dumps({"step_seconds": 1e-4} | fake), "XDG_CACHE_HOME": str(cache_home)}
    return kept | more | {"PYTHONPATH": os.pathsep.join([str(gpu.ROOT / "src"), PLUGINS])}


def measured(session: gpu.Session, *names: str, seconds: float = DEADLINE_SECONDS) -> Page:
    page = Page(session.folder)
    gpu.measure(session, names, time.monotonic() + seconds, page)
    return page


@pytest.mark.slow  # one section by day, below
def test_every_training_is_on_the_page(session, monkeypatch):
    monkeypatch.setattr(gpu, "WITH_GRAPHS", ("fake",))
    monkeypatch.setitem(gpu.SECTIONS, "others", cifar10())
    page = measured(session, "others", "graphs", "cpu", "peak")
    text = (session.folder / "README.md").read_text()
    assert text == page.write()
    assert "cifar10-cnn was left out: no CIFAR-10" in page.outcomes["others"].problems[0]
    assert page.outcomes["graphs"].problems == page.outcomes["cpu"].problems == page.outcomes["peak"].problems == []
    assert "nographs | 1 |" in page.outcomes["graphs"].text
    assert "| cpu | 1 |" in page.outcomes["cpu"].text
    assert "bf16" in page.outcomes["peak"].text
    assert not page.complete


def test_the_other_command_turns_graphs_off(session, monkeypatch):
    ran = []
    monkeypatch.setattr(gpu, "WITH_GRAPHS", ("fake",))
    monkeypatch.setattr(session, "train", lambda *arguments, **_: ran.append(arguments) or [])
    gpu.graphs(session, 1.0)
    assert "fake,fake@nographs" in ran[0]
    code = "import os; print(os.environ['TRAINMARK_CUDA_GRAPHS'])"
    off = session.folder / "python-without-cuda-graphs"
    assert subprocess.run([off, "-c", code], check=True, capture_output=True, text=True).stdout == "0\n"


def test_a_failing_section_does_not_end_the_others(session, cache_home, monkeypatch):
    session.environment |= environment(cache_home, fail="raise", only_on="cpu")
    broken = gpu.Section("Broken", 60, lambda *_: 1 / 0, lambda _: "")
    monkeypatch.setitem(gpu.SECTIONS, "tests", broken)
    page = measured(session, "tests", "cpu")
    text = page.write()
    assert "**Broken**: ZeroDivisionError: division by zero" in text
    assert "the fake was asked to fail" in text
    assert "mnist-mlp512" in page.outcomes["cpu"].text


def test_what_does_not_fit_is_named_and_done_by_the_next_call(session, monkeypatch):
    section = gpu.Section("Easy", 10, lambda *_: [], lambda _: "done it")
    monkeypatch.setattr(gpu, "SECTIONS", {"doctor": section, "tests": section})
    assert "did not fit" in measured(session, "doctor", "tests", seconds=15).outcomes["doctor"].problems[0]
    assert measured(session, "doctor").outcomes["doctor"].problems == []
    monkeypatch.setitem(gpu.SECTIONS, "doctor", gpu.Section("Easy", 10, lambda *_: 1 / 0, lambda _: ""))
    again = measured(session, "doctor", "tests")
    assert again.complete
    assert [outcome.text for outcome in again.outcomes.values()] == ["done it", "done it"]


def test_a_command_that_takes_too_long_is_stopped(session):
    ran = session.run("sh", "-c", "echo begun; exec sleep 300", seconds=3)
    assert ran.printed == "begun\n"
    assert "stopped after 3 s" in ran.problem


def test_shares_hand_on_what_is_left():
    assert [round(share) for share, _ in gpu.shares(30, "abc")] == [10, 15, 30]


def test_the_highest_peak_counts(tmp_path):
    (tmp_path / "mnist").mkdir()
    about = {"backend": {"name": "torch", "precision": "bf16"}, "device": {"id": "cuda:0"}}
    for number, flops in enumerate((7e14, 8e14)):
        peaks = {"matmul_flops_per_second": flops, "copy_bytes_per_second": 3e12}
        (tmp_path / "mnist" / f"{number}.json").write_text(json.dumps(about | {"peaks": peaks}))
    (tmp_path / "mnist" / "none.json").write_text('{"peaks": null}')
    assert "| torch | cuda:0 | bf16 | 800.00 | 3000 |" in peak_tables(tmp_path, [])


def test_sigterm_leaves_a_page(tmp_path, cache_home, drawn):
    command = [
        sys.executable,
        BENCH / "gpu.py",
        tmp_path / "gpu",
        "--backend",
        "fake",
        "--quick",
        "--only",
        "mnist,cpu",
    ]
    process = subprocess.Popen(
        command, env=environment(cache_home, fail="hang"), stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )
    assert process.stderr is not None
    assert "MNIST" in process.stderr.readline()
    process.send_signal(signal.SIGTERM)
    printed, _ = process.communicate(timeout=120)
    assert process.returncode == 1
    assert "- **MNIST**: interrupted\n- **The CPU**: interrupted before it began" in printed
    assert "- MNIST: not here, so **synthetic digits**" in printed
    assert "fake GPU" in printed
    assert (tmp_path / "gpu" / "README.md").read_text() in printed


def test_a_child_that_a_signal_hid_is_ended():
    code = (
        "import subprocess, sys; sys.path.insert(0, sys.argv[1]); import gpu\n"
        "hidden = subprocess.Popen(['sleep', '60'], start_new_session=True)\n"
        "gpu.end_unknown(); print(hidden.poll() is None)"
    )
    done = subprocess.run([sys.executable, "-c", code, BENCH], check=True, capture_output=True, text=True, timeout=50)
    assert done.stdout == "False\n"


def test_missing_modules_are_named_with_the_command_that_brings_them(tmp_path):
    bare = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
    command = [sys.executable, "-S", BENCH / "gpu.py", tmp_path]
    done = subprocess.run(command, check=False, capture_output=True, text=True, env=bare)
    assert done.returncode == 1
    assert f"{sys.executable} lacks numpy, msgspec, click" in done.stderr
    assert "pip download --only-binary :all:" in done.stderr
    assert "nvidia-ml-py" in done.stderr


def test_every_dependency_is_looked_for():
    project = tomllib.loads((gpu.ROOT / "pyproject.toml").read_text())["project"]
    assert {re.split("[><=]", line)[0] for line in project["dependencies"]} - {"requests"} == set(gpu.NEEDED.values())


def test_wheels_are_unpacked_onto_the_path(tmp_path):
    with zipfile.ZipFile(tmp_path / "some-1.0-py3-none-any.whl", "w") as wheel:
        wheel.writestr("some/__init__.py", "")
    source, unpacked = gpu.packages(tmp_path, tmp_path)
    assert Path(source, "trainmark").is_dir()
    assert Path(unpacked, "some", "__init__.py").is_file()
    shutil.rmtree(unpacked)
