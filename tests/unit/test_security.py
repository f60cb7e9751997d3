"""The promises of docs/security.md about the source itself, and the existence of the tests that it
names."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from trainmark.data.catalog import CATALOG

ROOT = Path(__file__).parents[2]
SOURCES = sorted((ROOT / "src").rglob("*.py"))
MODULES = {
    "pickle",
    "cPickle",
    "dill",
    "cloudpickle",
    "joblib",
    "marshal",
    "shelve",
    "yaml",
    "xmlrpc",
}
CALLS = {
    "eval",
    "exec",
    "compile",
    "__import__",
    "os.system",
    "os.popen",
    "np.load",
    "numpy.load",
    "torch.load",
}
SHELLS = {"shell", "allow_pickle"}


COMPILES_ITSELF = "inject/inside.py"
"""Compiles functions that the user's own process has imported, with calls of the observer."""


def dangers(source: str) -> Iterator[str]:
    """Names with which a module could execute data."""
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Import):
            yield from (
                alias.name for alias in node.names if alias.name.partition(".")[0] in MODULES
            )
        elif isinstance(node, ast.ImportFrom) and (node.module or "").partition(".")[0] in MODULES:
            yield node.module or ""
        elif isinstance(node, ast.Call):
            name = ast.unparse(node.func)
            # whose value is looked at below
            plain = any(each.arg == "allow_pickle" for each in node.keywords)
            if (name in CALLS and not (name == "np.load" and plain)) or name.endswith(
                (".loads_pickle", ".read_pickle")
            ):
                yield name
            yield from (
                keyword.arg
                for keyword in node.keywords
                if keyword.arg in SHELLS
                and not (isinstance(keyword.value, ast.Constant) and keyword.value.value is False)
            )


def test_nothing_is_unpickled_evaluated_or_given_to_a_shell() -> None:
    checked = [path for path in SOURCES if not path.match(COMPILES_ITSELF)]
    found = {str(path): danger for path in checked for danger in dangers(path.read_text("utf-8"))}
    assert len(SOURCES) > 300
    assert found == {}


@pytest.mark.parametrize(
    "source",
    [
        "import pickle",
        "from yaml import load",
        "eval(x)",
        "np.load(f)",
        "np.load(f, allow_pickle=True)",
        "torch.load(f)",
        "subprocess.run(x, shell=True)",
        "np.lib.format.read_array(f, allow_pickle=yes)",
        "os.system(x)",
    ],
)
def test_the_search_of_the_source_finds_calls(source: str) -> None:
    assert list(dangers(source))


def test_every_file_that_can_be_fetched_has_a_checksum() -> None:
    for known in CATALOG.values():
        for file in (*known.files, *known.parts):
            assert re.fullmatch(r"[0-9a-f]{64}", file.sha256), file.name
        for mirror in known.mirrors:
            assert mirror.url.startswith(("https://", "http://"))


def test_each_promise_names_a_test_that_is_there() -> None:
    promises = [
        line
        for line in (ROOT / "docs" / "security.md").read_text("utf-8").splitlines()
        if line.startswith("| ")
    ]
    rows = [line for line in promises if not line.startswith(("| promise", "| ---"))]
    assert len(rows) > 15
    for row in rows:
        named = re.findall(r"`(tests/\S+?)::(\w+)`", row)
        assert named, row
        for path, name in named:
            functions = {
                node.name
                for node in ast.parse((ROOT / path).read_text("utf-8")).body
                if isinstance(node, ast.FunctionDef)
            }
            assert name in functions, f"{path}::{name}"
