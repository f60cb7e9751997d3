"""The folder of results: a JSON file for each measurement, a line for each row of a shared process.

Every file is always complete, even after SIGKILL: files are renamed into place, and an incomplete
last line is ignored and overwritten.
"""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

CONDITIONS = ("device", "device_name", "quick")
"""Conditions that must be equal for all results of one folder."""


@dataclass(frozen=True)
class Result:
    """The result of one measurement.

    Args:
        measurement: its name.
        complete: whether nothing is missing, so that it is not measured again.
        problems: what failed or did not fit.
        seconds: how long it took.
        context: machine, versions and commit.
        rows: what was measured.
    """

    measurement: str
    complete: bool
    problems: list[str]
    seconds: float
    context: dict[str, Any]
    rows: list[dict[str, Any]]


def read(folder: Path, item: str) -> dict[str, Result]:
    """Read the results of an item, by measurement."""
    found = (
        Result(**json.loads(file.read_text())) for file in sorted((folder / item).glob("*.json"))
    )
    return {result.measurement: result for result in found}


def write(folder: Path, item: str, result: Result) -> None:
    """Keep a result; it replaces an earlier one."""
    path = folder / item / f"{result.measurement}.json"
    path.parent.mkdir(parents=True, exist_ok=True)
    replace(path, json.dumps(asdict(result), indent=1) + "\n")


def replace(path: Path, text: str) -> None:
    """Write a file atomically, so that no reader sees half of it."""
    partial = path.with_name(f".{path.name}.{os.getpid()}.partial")
    partial.write_text(text)
    partial.replace(path)


def require_same_conditions(folder: Path, items: Iterable[str], context: Mapping[str, Any]) -> None:
    """Exit if these items have results of another device, or of tiny sizes next to real ones."""
    for result in (result for item in items for result in read(folder, item).values()):
        before = result.context
        for name in CONDITIONS:
            if before.get(name) != context.get(name):
                sys.exit(
                    f"bench/gpu: {folder} holds results with {name} {before.get(name)!r}; "
                    f"this call has {context.get(name)!r}. Name another folder."
                )


def read_rows(path: Path) -> list[dict[str, Any]]:
    """Read the complete lines of a file of rows; none if it isn't there."""
    if not path.exists():
        return []
    lines = path.read_bytes().split(b"\n")
    return [json.loads(line) for line in lines[:-1]]


def drop_torn_line(path: Path) -> None:
    """Remove an incomplete line that a killed process left at the end of a file of rows."""
    if path.exists():
        whole = path.read_bytes().rpartition(b"\n")
        os.truncate(path, len(whole[0]) + len(whole[1]))


def append_row(path: Path, row: Mapping[str, Any]) -> None:
    """Add a row, which is on the disk when this returns."""
    with path.open("ab") as opened:
        opened.write(json.dumps(row).encode() + b"\n")
        opened.flush()
        os.fsync(opened.fileno())
