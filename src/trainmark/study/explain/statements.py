"""Statements of a script: which lines belong to the loop that a line is in."""

from __future__ import annotations

import ast
from collections.abc import Collection
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
