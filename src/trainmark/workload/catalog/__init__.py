"""Finding workloads: by name in this folder, or a user's own TOML file. Parent side only (tomllib)."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import tomllib

from trainmark.errors import SpecError, UnknownName
from trainmark.workload.decode import Misfit, decode, dotted
from trainmark.workload.decode import Path as KeyPath
from trainmark.workload.model import lay_out
from trainmark.workload.spec import Workload

_FOLDER = Path(__file__).parent


def names() -> list[str]:
    """The workloads that come with trainmark, smallest first, each variant after its workload as ``name:variant``."""
    listed = []
    for file in sorted(_FOLDER.glob("*.toml"), key=lambda file: tomllib.loads(file.read_text("utf-8"))["position"]):
        listed.append(file.stem)
        listed += [f"{file.stem}:{variant}" for variant in tomllib.loads(file.read_text("utf-8")).get("variants", {})]
    return listed


def find(name: str) -> Workload:
    """The workload ``name``: ``mnist-mlp32``, ``mnist-mlp32:two-stage``, or a path that ends in ``.toml``.

    Raises:
        UnknownName: no such workload in the catalogue.
        SpecError: the file can't be read or does not describe a workload; says the line.
    """
    base, _, variant = name.partition(":")
    path = Path(base)
    if path.suffix != ".toml":
        path = _FOLDER / f"{base}.toml"
        if not re.fullmatch(r"[\w.-]+", base) or not path.is_file():
            raise UnknownName("workload", name, names())
    try:
        text = path.read_text("utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise SpecError(
            f"{path} can't be read", found=str(error), fix="Give the path of a workload's TOML file."
        ) from error
    return parse(text, str(path), variant)


def parse(text: str, origin: str, variant: str = "") -> Workload:
    """The workload written in ``text``; ``origin`` names it in errors."""
    try:
        data = tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise SpecError(f"{origin} is not TOML", expected="TOML 1.0", found=str(error)) from error
    data.pop("position", None)
    variants = data.pop("variants", {})
    if variant:
        if variant not in variants:
            raise UnknownName("variant", variant, variants)
        data.update(variants[variant])
        data["name"] = f"{data.get('name')}:{variant}"
    try:
        workload = decode(Workload, data)
        lay_out(workload)
    except Misfit as misfit:
        line = _line_of(text, (("variants", variant, *misfit.path) if variant else ()), misfit.path)
        where = f" at {dotted(misfit.path)}" if misfit.path else ""
        raise SpecError(f"{origin}, line {line}{where}", expected=misfit.expected, found=misfit.found) from None
    return workload


def _line_of(text: str, *paths: KeyPath) -> int:
    """The line, from 1, on which the longest known part of one of ``paths`` is written."""
    best, line = 0, 1
    for known, number in _positions(text):
        for path in paths:
            if len(known) > best and path[: len(known)] == known:
                best, line = len(known), number
    return line


def _positions(text: str) -> Iterator[tuple[KeyPath, int]]:
    """Every table and key of a TOML text with its line; tomllib does not tell."""
    table: KeyPath = ()
    counts: dict[Any, int] = {}
    for number, line in enumerate(text.splitlines(), 1):
        if header := re.match(r"\s*(\[\[?)([^\]]+)\]", line):
            table = ()
            parts = [part.strip().strip("\"'") for part in header[2].split(".")]
            for depth, part in enumerate(parts, 1):
                table = (*table, part)
                if header[1] == "[[" and depth == len(parts):
                    counts[table] = counts.get(table, -1) + 1
                if table in counts:
                    table = (*table, counts[table])
            yield table, number
        elif key := re.match(r"\s*([\w.\"'-]+)\s*=", line):
            yield (*table, *(part.strip("\"'") for part in key[1].split("."))), number
