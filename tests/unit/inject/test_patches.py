"""No script can tell that it is observed: each patch leaves its function what it was."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from tests.observed import FOLDER, Run, observed, plain
from tests.slow import slow
from trainmark.inject.patch import Kind

SCRIPTS = Path(__file__).parent / "scripts"
KINDS = {value for name, value in vars(Kind).items() if not name.startswith("_")}


def facts(run: Run) -> dict[str, dict[str, str]]:
    """Return the facts of each function that a run has printed."""
    found: dict[str, Any] = {}
    for line in run.out.splitlines():
        found |= json.loads(line)
    return found


def patches(folder: Path, frameworks: str) -> list[tuple[str, str]]:
    """Return what is patched, and the kind of each patch."""
    (folder / "first").mkdir()
    err = observed(SCRIPTS / "facts.py", frameworks, folder=folder / "first").err
    return [tuple(each) for each in json.loads(err.splitlines()[-1])]


@pytest.mark.parametrize("frameworks", ["torch", "jax", slow("tensorflow,keras")])
def test_each_patched_function_is_what_it_was(frameworks: str, tmp_path: Path) -> None:
    for each in frameworks.split(","):
        pytest.importorskip(each)
    found = patches(tmp_path, frameworks)
    assert len(found) > 5
    assert {kind for _, kind in found} <= KINDS
    words = [what for what, _ in dict.fromkeys(found)]
    before = facts(plain(SCRIPTS / "facts.py", frameworks, *words, folder=tmp_path))
    after = facts(observed(SCRIPTS / "facts.py", frameworks, *words, folder=tmp_path))
    assert before.keys() == after.keys() == {*words}
    for what, kind in found:
        if kind == Kind.SAME_NAME:  # functions in C lack what only those in Python have
            for name in ("__annotations__", "__defaults__", "__kwdefaults__"):
                del after[what][name], before[what][name]
        assert after[what] == before[what], what


def test_what_scripts_make_and_compare_is_the_same(tmp_path: Path) -> None:
    pytest.importorskip("torch")
    before = plain(SCRIPTS / "identities.py", folder=tmp_path)
    after = observed(SCRIPTS / "identities.py", folder=tmp_path)
    assert before.code == 0, before.err
    assert after.visible == before.visible
    assert after.steps == 4
    assert not [each for each in after.injected if each.startswith("not ")]


def test_callers_warnings_and_tracebacks_are_the_same(tmp_path: Path) -> None:
    pytest.importorskip("torch")
    before = plain(SCRIPTS / "frames.py", folder=tmp_path)
    after = observed(SCRIPTS / "frames.py", folder=tmp_path)
    assert before.code == 0, before.err
    assert "duplicate parameters" in before.err
    assert "requires_grad=True to a scalar" in before.err
    assert str(FOLDER) not in after.out + after.err
    assert after.visible == before.visible
    assert after.steps == 4


@pytest.mark.slow
def test_what_compilers_make_is_the_same(tmp_path: Path) -> None:
    """Compilers read the source and the caller of what they are given."""
    pytest.importorskip("torch")
    before = plain(SCRIPTS / "compilers.py", folder=tmp_path)
    after = observed(SCRIPTS / "compilers.py", folder=tmp_path)
    assert before.code == 0, before.err
    assert (after.code, after.out) == (before.code, before.out), after.err
    assert after.steps == 1
