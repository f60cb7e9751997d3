"""What a value may be, for a shell that completes it: asked at every press of a key, so only names are imported."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from pathlib import Path
from typing import TypeAlias

import click
from click.shell_completion import CompletionItem

Complete: TypeAlias = Callable[[click.Context, click.Parameter, str], list[CompletionItem]]


def one_of(names: Callable[[], Iterable[str]], *, files: bool = False) -> Complete:
    """One of ``names``; where none fits and ``files`` may be given, a file."""

    def complete(_context: click.Context, _parameter: click.Parameter, begun: str) -> list[CompletionItem]:
        fitting = [CompletionItem(name) for name in names() if name.startswith(begun)]
        return fitting or ([CompletionItem(begun, type="file")] if files else [])

    return complete


def some_of(names: Callable[[], Iterable[str]]) -> Complete:
    """Several of ``names`` between commas; the last one is completed, and none is offered twice."""

    def complete(_context: click.Context, _parameter: click.Parameter, begun: str) -> list[CompletionItem]:
        before, comma, last = begun.rpartition(",")
        given = before.split(",")
        return [
            CompletionItem(before + comma + name) for name in names() if name.startswith(last) and name not in given
        ]

    return complete


def workloads() -> list[str]:
    """Names of the catalogue, by its files: reading them would cost more than a moment."""
    return sorted(file.stem for file in (Path(__file__).parents[1] / "workload" / "catalog").glob("*.toml"))


def backends() -> list[str]:
    """What can be chosen, installed or not."""
    from trainmark.backends import registry

    return list(registry.entries())


def devices() -> list[str]:
    """What this machine seems to have; only a framework knows for sure, and importing one takes seconds."""
    import os
    import sys

    from trainmark.measure.vendors import VENDORS

    gpus = [device for vendor in VENDORS for device in vendor.devices(vendor.installed(Path("/"), os.environ))]
    return ["cpu", *gpus, *(["mps"] if sys.platform == "darwin" else [])]


def datasets() -> list[str]:
    """Those that trainmark knows."""
    from trainmark.data.catalog import CATALOG

    return list(CATALOG)


def styles() -> tuple[str, ...]:
    """How a backend may train."""
    return "idiomatic", "compiled", "fast"


def precisions() -> tuple[str, ...]:
    """Those that a backend may train in."""
    from trainmark.workload.precision import PRECISIONS

    return tuple(PRECISIONS)


def dimensions() -> tuple[str, ...]:
    """Those that a comparison may be along."""
    return "device", "backend", "style", "machine", "python"


workload_or_file = one_of(workloads, files=True)

NAMES: dict[str, Callable[[], Iterable[str]]] = {
    "--backend": backends,
    "--style": styles,
    "--device": devices,
    "--dataset": datasets,
    "--precision": precisions,
}
