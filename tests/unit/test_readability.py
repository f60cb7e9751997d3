"""One statement a line, as CONTRIBUTING.md asks: this checks what no rule of ruff does."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
FOLDERS = ("src", "plugins", "bench", "examples", "fuzz", "tests")
SWAPS = 5
"""Assignments that exchange values, which need one statement; in all folders together."""


def assignments(path: Path) -> Iterator[ast.Assign]:
    """Yield the assignments of several values to several names."""
    for node in ast.walk(ast.parse(path.read_text())):
        if not isinstance(node, ast.Assign):
            continue
        if isinstance(node.value, ast.Tuple) and isinstance(node.targets[0], ast.Tuple):
            yield node


def exchanges(assignment: ast.Assign) -> bool:
    """Whether it takes a value from a name that it assigns."""
    assigned = {ast.unparse(each) for each in ast.walk(assignment.targets[0])}
    return any(ast.unparse(each) in assigned for each in ast.walk(assignment.value))


@pytest.mark.parametrize("folder", FOLDERS)
def test_a_statement_assigns_one_value(folder: str) -> None:
    found = [
        f"{path.relative_to(ROOT)}:{each.lineno}"
        for path in sorted((ROOT / folder).rglob("*.py"))
        for each in assignments(path)
        if not exchanges(each)
    ]
    assert found == []


def test_few_statements_exchange_values() -> None:
    paths = [path for folder in FOLDERS for path in (ROOT / folder).rglob("*.py")]
    assert sum(exchanges(each) for path in paths for each in assignments(path)) <= SWAPS
