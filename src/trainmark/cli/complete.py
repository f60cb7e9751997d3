"""Shell completion of option values. It runs at every key press, so it imports only names."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from pathlib import Path
from typing import TypeAlias

import click
from click.shell_completion import CompletionItem

Complete: TypeAlias = Callable[[click.Context, click.Parameter, str], list[CompletionItem]]


def one_of(names: Callable[[], Iterable[str]], *, files: bool = False) -> Complete:
    """Complete one of ``names``, or a file if none matches and ``files`` is set."""

    def complete(
        _context: click.Context, _parameter: click.Parameter, begun: str
    ) -> list[CompletionItem]:
        fitting = [CompletionItem(name) for name in names() if name.startswith(begun)]
        return fitting or ([CompletionItem(begun, type="file")] if files else [])

    return complete


def some_of(names: Callable[[], Iterable[str]]) -> Complete:
    """Complete the last of several comma-separated ``names``, without those already given."""

    def complete(
        _context: click.Context, _parameter: click.Parameter, begun: str
    ) -> list[CompletionItem]:
        before, comma, last = begun.rpartition(",")
        given = before.split(",")
        return [
            CompletionItem(before + comma + name)
            for name in names()
            if name.startswith(last) and name not in given
        ]

    return complete


def workloads() -> list[str]:
    """Return the workloads' names from the names of their files, since parsing them is too slow."""
    folder = Path(__file__).parents[1] / "workload" / "catalog"
    return sorted(file.stem for file in folder.glob("*.toml"))


def backends() -> list[str]:
    """Return every backend, installed or not."""
    from trainmark.backends import registry

    return list(registry.entries())


def devices() -> list[str]:
    """Guess this machine's devices.

    Only a framework knows for sure, and importing one takes seconds.
    """
    import os
    import sys

    from trainmark.measure.vendors import VENDORS

    found = ["cpu"]
    for vendor in VENDORS:
        found += vendor.devices(vendor.installed(Path("/"), os.environ))
    if sys.platform == "darwin":
        found.append("mps")
    return found


def datasets() -> list[str]:
    """Return the known datasets."""
    from trainmark.data.catalog import CATALOG

    return list(CATALOG)


def precisions() -> tuple[str, ...]:
    """Return the training precisions."""
    from trainmark.workload.precision import PRECISIONS

    return tuple(PRECISIONS)


def styles() -> tuple[str, ...]:
    """Return the styles of backends."""
    return "idiomatic", "compiled", "fast"


def dimensions() -> tuple[str, ...]:
    """Return the dimensions of a comparison."""
    return "device", "backend", "style", "machine", "python"


workload_or_file = one_of(workloads, files=True)

NAMES: dict[str, Callable[[], Iterable[str]]] = {
    "--backend": backends,
    "--style": styles,
    "--device": devices,
    "--dataset": datasets,
    "--precision": precisions,
}
