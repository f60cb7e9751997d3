"""Lines of cells are named as a notebook shows them."""

from __future__ import annotations

import linecache
import os
import subprocess
import sys
from pathlib import Path
from types import ModuleType, SimpleNamespace

import pytest

from trainmark.inject.places import NOTEBOOK, place_of

CELLS = ["", "import torch", "print(1)\nprint(2)", "print(1)\nprint(2)"]
"""What a kernel has executed; the first one is none."""


@pytest.fixture
def name(monkeypatch: pytest.MonkeyPatch) -> str:
    """The name that a kernel gives to the code of the last cells."""
    ipython = ModuleType("IPython")
    vars(ipython)["get_ipython"] = lambda: SimpleNamespace(user_ns={"In": CELLS})
    monkeypatch.setitem(sys.modules, "IPython", ipython)
    monkeypatch.setenv(NOTEBOOK, "train.ipynb")
    name = str(Path("/tmp/ipykernel_4711/123.py"))
    lines = [f"{line}\n" for line in CELLS[-1].splitlines()]
    monkeypatch.setitem(linecache.cache, name, (1, None, lines, name))
    return name


def test_a_cell_has_the_number_of_its_last_execution(name: str) -> None:
    assert place_of(name, 2) == "train.ipynb, cell 3, line 2"


def test_a_cell_that_is_not_known_has_no_number(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    other = name.replace("123", "456")
    monkeypatch.delenv(NOTEBOOK)
    assert place_of(other, 2) == "notebook, cell ?, line 2"


def test_a_file_is_no_cell(name: str) -> None:
    assert place_of("elsewhere/train.py", 7) == "elsewhere/train.py:7"


def test_a_notebook_that_is_executed(tmp_path: Path) -> None:
    nbformat = pytest.importorskip("nbformat")
    pytest.importorskip("nbclient")
    pytest.importorskip("ipykernel")
    cells = [
        "from trainmark.inject.places import users_place\nimport sys",
        "users_place(sys._getframe())",
    ]
    notebook = nbformat.v4.new_notebook(cells=list(map(nbformat.v4.new_code_cell, cells)))
    file = tmp_path / "small.ipynb"
    nbformat.write(notebook, file)
    words = [sys.executable, "-m", "jupyter", "execute", "--inplace", str(file)]
    subprocess.run(words, env={**os.environ, NOTEBOOK: "small.ipynb"}, check=True)
    (output,) = nbformat.read(file, 4).cells[1].outputs
    assert output["data"]["text/plain"] == "'small.ipynb, cell 2, line 1'"
