"""``trainmark doctor`` on this very machine, with frameworks that are broken for real."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

STATUSES = {"PASS", "WARN", "FAIL", "SKIP"}


def doctor(*arguments: str, **environment: str) -> tuple[int, dict[str, dict[str, Any]], str]:
    """Return the exit code, the checks by id, and stderr."""
    done = subprocess.run(
        [sys.executable, "-m", "trainmark", "doctor", "--json", *arguments],
        capture_output=True,
        text=True,
        env={**os.environ, **environment},
        timeout=200,
        check=False,
    )
    answer = json.loads(done.stdout)
    assert answer["schema"] == 1
    assert all(set(check) == {"id", "status", "found", "fix"} for check in answer["checks"])
    assert {check["status"] for check in answer["checks"]} <= STATUSES
    return done.returncode, {check["id"]: check for check in answer["checks"]}, done.stderr


def a_package(folder: Path, name: str, text: str) -> None:
    """Write a package called ``name`` that does ``text`` when it is imported."""
    (folder / name).mkdir(parents=True)
    (folder / name / "__init__.py").write_text(text)


def test_quick_asks_no_framework(tmp_path: Path) -> None:
    code, checks, _ = doctor("--quick", TRAINMARK_DATA=str(tmp_path), XDG_CACHE_HOME=str(tmp_path))
    assert code == (1 if any(check["status"] == "FAIL" for check in checks.values()) else 0)
    assert checks["host.clock"]["status"] == "PASS"
    assert checks["data.mnist"]["status"] == "WARN"
    assert checks["data.mnist"]["fix"] == "trainmark data fetch mnist"
    assert not any(".import" in id_ for id_ in checks)


def test_broken_frameworks_do_not_stop_the_others(tmp_path: Path) -> None:
    a_package(tmp_path, "jax", "import os, signal; os.kill(os.getpid(), signal.SIGSEGV)\n")
    a_package(tmp_path, "keras", "import sys; print('noise'); sys.exit(3)\n")
    a_package(tmp_path, "tensorflow", "")
    a_package(
        tmp_path, "torch", "raise ImportError('libcudnn.so.9: cannot open shared object file')\n"
    )
    code, checks, err = doctor(
        PYTHONPATH=os.pathsep.join(filter(None, (str(tmp_path), os.environ.get("PYTHONPATH")))),
        XDG_CACHE_HOME=str(tmp_path),
    )
    assert code == 1
    assert "Traceback" not in err
    assert "SIGSEGV" in checks["jax.import"]["found"]
    assert "libcudnn.so.9" in checks["torch.import"]["found"]
    assert {checks[f"{name}.import"]["status"] for name in ("jax", "keras", "torch")} == {"FAIL"}
    assert checks["numpy.import"]["status"] == "PASS"
    assert checks["numpy.product.cpu"]["found"].startswith("22 28 / 49 64 on cpu")


def test_a_damaged_dataset_that_was_named_fails(tmp_path: Path) -> None:
    (tmp_path / "train-images-idx3-ubyte").write_bytes(b"damaged")
    code, checks, _ = doctor("--quick", "--data-dir", str(tmp_path), XDG_CACHE_HOME=str(tmp_path))
    assert code == 1
    assert checks["data.mnist"]["status"] == "FAIL"
    assert "train-images-idx3-ubyte" in checks["data.mnist"]["found"]
