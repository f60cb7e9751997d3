"""Statements of a script: their text, and which lines belong to the loop that a line is in."""

from __future__ import annotations

import ast
import tokenize
from collections.abc import Collection, Iterable, Iterator
from pathlib import Path


def lines_around(place: str, folder: Path, avoid: Collection[str]) -> list[str]:
    """Return the lines, as ``file:line``, of the largest statement around a line.

    Args:
        place: ``file:line``.
        folder: what relative files are relative to.
        avoid: lines that may not be part of it, such as the one of the backward pass.
    """
    name, _, line = place.rpartition(":")
    if not line.isdecimal():  # a cell of a notebook
        return [place]
    avoided = (each.rpartition(":") for each in avoid)
    forbidden = [int(number) for file, _, number in avoided if file == name]
    try:
        tree = ast.parse((folder / name).read_bytes())
    except (OSError, SyntaxError, ValueError):
        return [place]
    spans = [
        (each.lineno, each.end_lineno or each.lineno)
        for each in ast.walk(tree)
        if isinstance(each, ast.stmt)
        and not isinstance(each, (ast.FunctionDef, ast.ClassDef, ast.AsyncFunctionDef))
    ]
    around = [range(first, last + 1) for first, last in spans if first <= int(line) <= last]
    allowed = [lines for lines in around if not any(number in lines for number in forbidden)]
    largest = max(allowed, key=len, default=range(int(line), int(line) + 1))
    return [f"{name}:{number}" for number in largest]


def texts_of(places: Iterable[str], folder: Path) -> dict[str, str]:
    """Return the source of lines, as far as it can be read.

    Args:
        places: each ``file:line``.
        folder: what relative files are relative to.
    """
    texts: dict[str, str] = {}
    files: dict[str, list[str]] = {}
    for place in places:
        name, _, line = place.rpartition(":")
        if not line.isdecimal():  # a cell of a notebook
            continue
        if name not in files:
            files[name] = _lines_of(folder / name)
        if 0 < int(line) <= len(files[name]):
            texts[place] = files[name][int(line) - 1].strip()
    return texts


def _lines_of(file: Path) -> list[str]:
    """Return the lines of a file of Python; none if it can't be read."""
    try:
        with tokenize.open(file) as opened:
            return opened.read().split("\n")
    except (OSError, SyntaxError, ValueError):
        return []


def line_of_growth(function: str, name: str, folder: Path) -> str | None:
    """Return where a variable grows, as ``file:line``; None if the source does not show it.

    Args:
        function: the first line of its function, as ``file:line``; that of a module is 1 or 0.
        name: its name, such as ``losses`` or ``self.losses``.
        folder: what relative files are relative to.
    """
    file, _, first = function.rpartition(":")
    if not first.isdecimal():  # a cell of a notebook
        return None
    try:
        tree = ast.parse((folder / file).read_bytes())
    except (OSError, SyntaxError, ValueError):
        return None
    scope: ast.AST = tree
    for each in ast.walk(tree):
        if isinstance(each, (ast.FunctionDef, ast.AsyncFunctionDef)):
            begins = min([each.lineno, *(decorator.lineno for decorator in each.decorator_list)])
            if begins == int(first):
                scope = each
    grown = [line for each in _of_scope(scope) for line in _lines_that_grow(each, name)]
    return f"{file}:{min(grown)}" if grown else None


def _of_scope(scope: ast.AST) -> Iterator[ast.AST]:
    """Yield the nodes of a function or a module, without those of functions and classes in it."""
    for node in ast.iter_child_nodes(scope):
        yield node
        if not isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef, ast.Lambda)):
            yield from _of_scope(node)


def _lines_that_grow(node: ast.AST, name: str) -> list[int]:
    """Return the line of a node if it is a statement or a call that adds something to a name."""
    if isinstance(node, ast.AugAssign):
        return [node.lineno] if ast.unparse(node.target) == name else []
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
        adds = node.func.attr in ("append", "extend") and ast.unparse(node.func.value) == name
        return [node.lineno] if adds else []
    if isinstance(node, ast.Assign):
        is_target = any(ast.unparse(each) == name for each in _targets(node))
        parts = (each for each in ast.walk(node.value) if isinstance(each, ast.expr))
        is_used = any(ast.unparse(each) == name for each in parts)
        return [node.lineno] if is_target and is_used else []
    return []


def _targets(statement: ast.Assign) -> Iterator[ast.expr]:
    """Yield what a statement assigns to; of a tuple, its parts."""
    for target in statement.targets:
        yield from target.elts if isinstance(target, (ast.Tuple, ast.List)) else (target,)
