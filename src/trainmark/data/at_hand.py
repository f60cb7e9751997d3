"""Which datasets are at hand, judged by names of files: no byte is read, no mirror is asked, nothing is made."""

from __future__ import annotations

import contextlib
from dataclasses import dataclass
from pathlib import Path

from trainmark.data import folder
from trainmark.data.catalog import CATALOG, Catalog
from trainmark.data.locate import Source, places_of
from trainmark.errors import DamagedData


@dataclass(frozen=True)
class Glimpse:
    """What is known of a dataset at a look.

    Attributes:
        name: its name in the catalogue.
        directory: the folder with its files; None where it is not at hand.
        source: what led there.
        complete: False when it is only a part of what the name promises.
        problem: why what there is can't be used; empty where it can, or there is nothing.
    """

    name: str
    directory: Path | None = None
    source: Source | None = None
    complete: bool = False
    problem: str = ""


def glimpse(
    name: str, *, named: Path | None, environment: Path | None, cache: Path, known_datasets: Catalog = CATALOG
) -> Glimpse:
    """Where :func:`~trainmark.data.locate.locate` would find the dataset; arguments as there.

    Raises:
        UsageError: a named folder does not exist, or can't be read.
    """
    known = known_datasets[name]
    try:
        for source, holding in places_of(known, named, environment):
            if holding is not None:
                return Glimpse(name, holding.directory.resolve(), source, holding.complete)
    except DamagedData as error:
        return Glimpse(name, problem=str(error))
    cached = None
    with contextlib.suppress(OSError):  # what is wrong with the cache is said where it is needed
        cached = folder.look(known, cache / known.layouts[0])
    if cached is not None and cached.complete:
        return Glimpse(name, cached.directory.resolve(), "cache", complete=True)
    return Glimpse(name)
