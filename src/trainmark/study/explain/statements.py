"""Statements of a script: their text, and which lines belong to the loop that a line is in."""

from __future__ import annotations

import ast
import tokenize
from collections.abc import Collection, Iterable
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
            return opened.read().splitlines()
    except (OSError, SyntaxError, ValueError):
        return []
