"""Imports are late: no framework except by its backend, nothing heavy for `--help`, a light
child."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

from trainmark.execute import worker

FRAMEWORKS = {"torch", "jax", "tensorflow", "keras", "mxnet"}
HEAVY = {"numpy", "rich", "msgspec", "psutil", "pynvml"}


def imported_by(code: str) -> set[str]:
    """Return the top-level modules in a fresh interpreter after ``code``."""
    report = (
        "import sys, json; print(json.dumps(sorted({name.partition('.')[0] for name in "
        "sys.modules})))"
    )
    answer = subprocess.run(
        [sys.executable, "-c", f"{code}\n{report}"], check=True, capture_output=True, text=True
    )
    return set(json.loads(answer.stdout.splitlines()[-1]))


def test_importing_trainmark_imports_no_framework() -> None:
    assert not imported_by("import trainmark") & (FRAMEWORKS | HEAVY)


def test_the_check_of_imports_finds_a_framework() -> None:
    assert "numpy" in imported_by("import trainmark, numpy")


def test_help_imports_nothing_heavy() -> None:
    assert not imported_by("from trainmark.cli.main import run; run(['--help'])") & (
        FRAMEWORKS | HEAVY
    )


def test_the_parent_of_a_run_imports_no_framework() -> None:
    code = (
        "import trainmark.cli.run, trainmark.study.run, trainmark.terminal.observer, "
        "trainmark.report.tables"
    )
    assert not imported_by(code) & FRAMEWORKS


def test_a_sweep_imports_ray_only_when_it_starts_one() -> None:
    assert "ray" not in imported_by(
        "import trainmark.cli.sweep, trainmark.study.sweep.collect, trainmark.analysis.sweep"
    )


def test_the_child_imports_the_standard_library_and_numpy_alone() -> None:
    modules = [path.stem for path in Path(worker.__file__).parent.glob("[!_]*.py")]
    code = f"from trainmark.execute.worker import {', '.join(modules)}; "
    code += "from trainmark.backends import registry; registry.load('numpy')"
    ours = imported_by(code) - imported_by("pass")
    assert ours - set(sys.stdlib_module_names) - {"_distutils_hack"} == {"trainmark", "numpy"}


def test_a_training_imports_no_other_request() -> None:
    """Each import delays the start of every measured process."""
    code = (
        "import sys, trainmark.execute.worker.main; from trainmark.backends import registry; "
        "registry.find('numpy')"
    )
    code += (
        "; print([name for name in sys.modules if name.partition('.')[0] in ('trainmark', "
        "'importlib')])"
    )
    done = subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True)
    for name in (
        "worker.dissect",
        "worker.parity_check",
        "worker.script",
        "trainmark.inject",
        "importlib.metadata",
    ):
        assert name not in done.stdout
