"""Statements of a script: which lines belong to the loop that a line is in."""

from __future__ import annotations

import ast
from collections.abc import Collection
from pathlib import Path


def lines_around(place: str, folder: Path, avoid: Collection[str]) -> list[str]:
    """Return the lines of the largest statement around a line that contains none of others, as
    ``file:line``.

    Args:
        place: ``file:line``.
        folder: what relative files are relative to.
        avoid: lines that may not be part of it, such as the one of the backward pass.
    """
    name, _, line = place.rpartition(":")
    forbidden = [
        int(number) for file, _, number in (each.rpartition(":") for each in avoid) if file == name
    ]
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
    around = [
        (first, last)
        for first, last in spans
        if first <= int(line) <= last and not any(first <= number <= last for number in forbidden)
    ]
    first, last = max(around, key=lambda span: span[1] - span[0], default=(int(line), int(line)))
    return [f"{name}:{number}" for number in range(first, last + 1)]
