"""Interpreters named with ``--python`` that can't measure, and what the user reads about them."""

from __future__ import annotations

import ast
import subprocess
import sys
from pathlib import Path

import pytest

from tests.end_to_end.command import CommandLine
from tests.slow import slow
from trainmark.execute.parent.process import BOOTSTRAP


def train_with(command: CommandLine, backend: str, python: Path) -> tuple[int, str, str]:
    return command.run(
        "run",
        "mnist-mlp128",
        "--backend",
        f"{backend}@named",
        "--python",
        f"named={python}",
        "--steps",
        "5",
        "--repeats",
        "1",
        "--dataset",
        "synthetic-digits",
        "--out",
        str(command.out),
    )


@pytest.fixture(scope="module")
def empty(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A real environment without a single package."""
    folder = tmp_path_factory.mktemp("empty") / "venv"
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", str(folder)], check=True)
    return folder / "bin" / "python"


@pytest.fixture(scope="module")
def only_numpy(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A real environment with NumPy alone, linked from this one."""
    import numpy

    folder = tmp_path_factory.mktemp("only-numpy") / "venv"
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", str(folder)], check=True)
    (site,) = folder.glob("lib/python*/site-packages")
    packages = Path(numpy.__file__).parent.parent
    for name in ("numpy", "numpy.libs"):
        if (packages / name).exists():
            (site / name).symlink_to(packages / name)
    return folder / "bin" / "python"


def test_no_such_interpreter(command: CommandLine, tmp_path: Path) -> None:
    code, _, err = train_with(command, "numpy", tmp_path / "nowhere" / "python")
    assert code == 2, err
    assert "nowhere/python" in err and "Traceback" not in err
    assert not command.records()


def test_a_file_that_is_no_interpreter(command: CommandLine, tmp_path: Path) -> None:
    (tmp_path / "note").write_text("not a program\n")
    code, _, err = train_with(command, "numpy", tmp_path / "note")
    assert code == 2, err
    assert str(tmp_path / "note") in err and "Traceback" not in err
    assert not command.records()


def test_a_python_that_is_too_old(command: CommandLine, tmp_path: Path) -> None:
    """Such an old Python is not available here, so a new one pretends to be old; the next test is
    about its syntax."""
    old = tmp_path / "python3.9"
    pretend = "import runpy, sys; sys.version_info = (3, 9, 2, 'final', 0); sys.argv = sys.argv[1:]"
    run = "runpy.run_path(sys.argv[0], run_name='__main__')"
    old.write_text(f'#!/bin/sh\nexec "{sys.executable}" -c "{pretend}; {run}" "$@"\n')
    old.chmod(0o755)
    code, _, err = train_with(command, "numpy", old)
    assert code == 2, err
    assert "expected Python 3.10 or newer" in err and "Traceback" not in err
    assert not command.records()


def test_an_old_python_can_read_what_tells_it_so() -> None:
    ast.parse(BOOTSTRAP.read_text(), feature_version=(3, 7))


def test_an_interpreter_without_numpy(command: CommandLine, empty: Path) -> None:
    code, _, err = train_with(command, "numpy", empty)
    assert code == 2, err
    assert str(empty) in err and "No module named 'numpy'" in err and "Traceback" not in err
    assert not command.records()


@pytest.mark.parametrize("backend", ["torch", slow("jax"), slow("keras")])
def test_an_interpreter_without_the_framework(
    command: CommandLine, only_numpy: Path, backend: str
) -> None:
    code, _, err = train_with(command, backend, only_numpy)
    assert code == 2, err
    assert str(only_numpy) in err and f"can import {backend}" in err and "pip install" in err
    assert "Traceback" not in err
    assert not command.records()


@pytest.mark.parametrize(
    ("backend", "said"), [("mxnet", "pip install ./plugins/trainmark-mxnet"), ("nunpy", "numpy?")]
)
def test_a_backend_that_is_installed_nowhere(
    command: CommandLine, only_numpy: Path, backend: str, said: str
) -> None:
    """This is checked here and in a named interpreter, which may have other plug-ins."""
    here = command.run(
        "run", "mnist-mlp128", "--backend", backend, "--steps", "5", "--out", str(command.out)
    )
    for code, _, err in (here, train_with(command, backend, only_numpy)):
        assert code == 2, err
        assert f"unknown backend '{backend}'" in err and said in " ".join(err.split())
        assert "Traceback" not in err
    assert not command.records()


@pytest.mark.parametrize("backend", ["numpy", slow("torch"), slow("jax"), slow("keras")])
@pytest.mark.parametrize(
    ("wish", "said"),
    [
        (("--device", "cuda:7"), "does not see the device 'cuda:7'"),
        (("--device", "cpu", "--precision", "fp8"), "fp8"),
    ],
)
def test_a_wish_that_the_backend_cannot_meet(
    command: CommandLine, backend: str, wish: tuple[str, ...], said: str
) -> None:
    if backend != "numpy":
        pytest.importorskip({"keras": "tensorflow"}.get(backend, backend))
    code, _, err = command.run(
        "run",
        "mnist-mlp128",
        "--backend",
        backend,
        *wish,
        "--steps",
        "5",
        "--dataset",
        "synthetic-digits",
        "--out",
        str(command.out),
    )
    assert code == 2, err
    assert said in err and "Traceback" not in err
    assert not command.records()
