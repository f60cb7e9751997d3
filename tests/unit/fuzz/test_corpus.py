"""Every input of the corpus goes through its target, without the fuzzer, so old findings stay
fixed."""

from __future__ import annotations

import importlib
from pathlib import Path

import pytest

from fuzz.__main__ import FOLDER, TARGETS

CORPUS = FOLDER / "corpus"
INPUTS = sorted(path for path in CORPUS.rglob("*") if path.is_file())


def test_every_target_has_inputs_and_they_are_small() -> None:
    assert {path.parent.name for path in INPUTS} == set(TARGETS)
    for name in TARGETS:
        assert sum(path.stat().st_size for path in INPUTS if path.parent.name == name) < 120_000


@pytest.mark.parametrize("path", INPUTS, ids=lambda path: f"{path.parent.name}/{path.name}")
def test_an_input_gives_an_object_or_an_error_of_ours(path: Path) -> None:
    pytest.importorskip("altair")
    importlib.import_module(f"fuzz.targets.{path.parent.name}").one(path.read_bytes())
