"""Find workloads: by name in this folder, or by path of a TOML file.

Only the parent process may import this module (tomllib).
"""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import tomllib

from trainmark import regular
from trainmark.errors import SpecError, UnknownName
from trainmark.workload import toml_text
from trainmark.workload.decode import Misfit, decode, dotted
from trainmark.workload.decode import Path as KeyPath
from trainmark.workload.model import lay_out
from trainmark.workload.optimizers import require_groups
from trainmark.workload.spec import Workload

_FOLDER = Path(__file__).parent
_MOST_BYTES = 1 << 20


def names() -> list[str]:
    """Return trainmark's workloads, smallest first.

    Each is followed by its variants as ``name:variant``.
    """
    listed = []
    written = {file.stem: tomllib.loads(file.read_text("utf-8")) for file in _FOLDER.glob("*.toml")}
    for name, data in sorted(written.items(), key=lambda each: each[1]["position"]):
        listed += [name, *(f"{name}:{variant}" for variant in data.get("variants", {}))]
    return listed


def find(name: str) -> Workload:
    """Return the workload ``name``.

    It is ``mnist-mlp32``, ``mnist-mlp32:two-stage``, or a path that ends in ``.toml``.

    Raises:
        UnknownName: the catalogue has no such workload.
        SpecError: the file has another suffix, can't be read, or is not a valid workload; names the
            line.
    """
    base, _, variant = (name, "", "") if name.endswith(".toml") else name.partition(":")
    path = Path(base)
    if path.suffix != ".toml":
        path = _FOLDER / f"{base}.toml"
        if not re.fullmatch(r"[\w.-]{1,100}", base) or not path.is_file():
            there = regular.found_at(Path(name))
            if there in ("nothing", "a folder"):
                raise UnknownName("workload", name, names())
            raise SpecError(
                f"{name[:100]} is not a workload", expected="a name that ends in .toml", found=there
            )
    try:
        text = regular.read(path, _MOST_BYTES).decode()
    except (OSError, UnicodeDecodeError) as error:
        raise SpecError(
            f"{path} can't be read",
            found=(isinstance(error, OSError) and error.strerror) or str(error),
            fix="Give the name of a workload, or the path of a TOML file.",
        ) from error
    return parse(text, str(path), variant)


def parse(text: str, origin: str, variant: str = "") -> Workload:
    """Parse the workload in ``text``; ``origin`` names it in errors."""
    try:
        data = toml_text.parse(text)
    except toml_text.TooLarge as error:
        raise SpecError(
            f"{origin} is too large", expected=error.expected, found=error.found
        ) from error
    except ValueError as error:
        raise SpecError(f"{origin} is not TOML", expected="TOML 1.0", found=str(error)) from error
    data.pop("position", None)
    variants = data.pop("variants", {})
    changes: dict[str, object] = {}
    try:
        changes = _changes(variants, variant) if variant else {}
        workload = decode(Workload, {**data, **changes})
        model = lay_out(workload)
        require_groups(
            workload.optimizer, {key: len(model.weights[key].shape) for key in model.trained}
        )
    except Misfit as misfit:
        changed = misfit.path and misfit.path[0] in changes
        line = line_of(text, ("variants", variant, *misfit.path) if changed else misfit.path)
        where = f" at {dotted(misfit.path)}" if misfit.path else ""
        raise SpecError(
            f"{origin}, line {line}{where}", expected=misfit.expected, found=misfit.found
        ) from None
    return dataclasses.replace(workload, name=f"{workload.name}:{variant}") if variant else workload


def _changes(variants: object, variant: str) -> dict[str, object]:
    """Return the keys that a variant replaces in the workload."""
    if not isinstance(variants, dict):
        raise Misfit(("variants",), "a table of variants", repr(variants))
    if variant not in variants:
        raise UnknownName("variant", variant, variants)
    changes = variants[variant]
    if not isinstance(changes, dict):
        raise Misfit(("variants", variant), "a table of changed keys", repr(changes))
    return changes


def line_of(text: str, path: KeyPath) -> int:
    """Return the line, from 1, of the longest part of ``path`` that is in the text."""
    best = 0
    line = 1
    for known, number in _positions(text):
        if len(known) > best and path[: len(known)] == known:
            best = len(known)
            line = number
    return line


def _positions(text: str) -> Iterator[tuple[KeyPath, int]]:
    """Yield every table and key of a TOML text with its line, which tomllib does not provide."""
    table: KeyPath = ()
    counts: dict[Any, int] = {}
    for number, line in enumerate(text.splitlines(), 1):
        header = re.match(r"\s*(\[\[?)([^\]]+)\]", line)
        key = re.match(r"\s*([\w.\"'-]+)\s*=", line)
        if header:
            table = ()
            parts = [part.strip().strip("\"'") for part in header[2].split(".")]
            for depth, part in enumerate(parts, 1):
                table = (*table, part)
                if header[1] == "[[" and depth == len(parts):
                    counts[table] = counts.get(table, -1) + 1
                if table in counts:
                    table = (*table, counts[table])
            yield table, number
        elif key:
            yield (*table, *(part.strip("\"'") for part in key[1].split("."))), number
