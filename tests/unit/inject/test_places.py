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


GENERATED = """
import importlib.util, os, sys, tempfile
from pathlib import Path

from trainmark.inject.places import is_users_file

Path("own").mkdir()
elsewhere = Path(tempfile.mkdtemp())
sys.path.append(str(elsewhere))
top = Path(tempfile.gettempdir())
names = ["train.py", "own/model.py", elsewhere / "mine.py", top / "made.py", top / "made/by.py"]
print([is_users_file(os.path.abspath(name)) for name in names])
"""


def test_code_that_a_library_has_generated_is_not_the_users(tmp_path: Path) -> None:
    folder = tmp_path / "temporary" / "project"
    folder.mkdir(parents=True)
    environment = {**os.environ, "TMPDIR": str(folder.parent)}
    words = [sys.executable, "-c", GENERATED]
    found = subprocess.run(words, cwd=folder, env=environment, capture_output=True, text=True)
    assert found.stdout == "[True, True, True, False, False]\n", found.stderr


def test_everything_in_the_folder_for_temporary_files_is_the_users_if_the_script_starts_there(
    tmp_path: Path,
) -> None:
    environment = {**os.environ, "TMPDIR": str(tmp_path)}
    words = [sys.executable, "-c", GENERATED]
    found = subprocess.run(words, cwd=tmp_path, env=environment, capture_output=True, text=True)
    assert found.stdout == "[True, True, True, True, True]\n", found.stderr
