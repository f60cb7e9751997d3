"""Locate a dataset in a named folder or in the cache.

Else it is downloaded or generated into the cache.

A damaged file in a *named* folder is an error and nothing else is tried, since the user must not
silently get other data. If the folder has nothing of the dataset, the next place is tried.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Literal, TypeAlias

from trainmark import regular
from trainmark.data import catalog, folder
from trainmark.data.cache import exclusive
from trainmark.data.catalog import CATALOG, Catalog, KnownDataset
from trainmark.data.draw import SPLITS, draw
from trainmark.data.folder import Holding
from trainmark.data.load import DataFolder, read
from trainmark.data.on_bytes import OnBytes, silent
from trainmark.data.stored import is_sound
from trainmark.errors import DamagedData, DataUnavailable, UsageError

Source: TypeAlias = Literal["named", "environment", "cache", "download", "drawn", "memory"]

_NAMED_BY = {"named": "--data-dir", "environment": "TRAINMARK_DATA"}


@dataclass(frozen=True)
class Located:
    """A dataset on disk, fully verified, or one that is generated in memory.

    Attributes:
        name: its name in the catalogue.
        directory: the folder with its files, for ``load.load``; None if it is generated in memory.
        source: how it was found.
        sha256: as in ``Dataset``.
        complete: False if it is only a part of the named dataset.
        train_examples: number of training examples; for text, of windows, or of tokens before it
            has windows.
        test_examples: number of test examples, likewise.
        window: tokens per example, for text.
    """

    name: str
    directory: Path | None
    source: Source
    sha256: str
    complete: bool
    train_examples: int
    test_examples: int
    window: int | None = None

    @property
    def folder(self) -> DataFolder:
        """The dataset and folder, as passed to a measured process."""
        return DataFolder(
            self.name, None if self.directory is None else str(self.directory), self.window
        )

    def windows(self, length: int | None) -> Located:
        """Return a text as windows of ``length`` tokens, each followed by another token.

        A ``length`` of None changes nothing.
        """
        if length is None:
            return self
        fewer = length - (self.window or 0)
        train = self.train_examples - fewer
        test = self.test_examples - fewer
        return replace(self, train_examples=train, test_examples=test, window=length)


@dataclass(frozen=True)
class Glimpse:
    """A dataset as far as file names show: nothing is read, downloaded or generated.

    Attributes:
        name: its name in the catalogue.
        directory: the folder with its files; None if not found.
        source: how it was found.
        complete: False if it is only a part of the named dataset.
        problem: why the files found can't be used; empty if they can, or there are none.
    """

    name: str
    directory: Path | None = None
    source: Source | None = None
    complete: bool = False
    problem: str = ""


def locate(
    name: str,
    *,
    named: Path | None = None,
    environment: Path | None = None,
    cache: Path,
    download: bool = True,
    progress: OnBytes = silent,
    known_datasets: Catalog = CATALOG,
) -> Located:
    """Find the dataset, or download or generate it.

    Args:
        name: a name in the catalogue.
        named: the folder given by ``--data-dir``, tried first.
        environment: the folder given by ``TRAINMARK_DATA``, tried next.
        cache: trainmark's cache, with a folder per dataset. Created when needed.
        download: whether to try mirrors. Generating needs none and is always allowed.
        progress: called with the bytes downloaded or generated.
        known_datasets: the known datasets.

    Raises:
        UnknownName: no such dataset.
        UsageError: a named folder does not exist.
        DamagedData: a named folder has a damaged file, or too few files.
        DataUnavailable: it was not found; the text lists every place that was tried and why it
            failed.
    """
    known = catalog.find(name, known_datasets)
    if not known.layouts:
        train = known.examples("train")
        test = known.examples("test")
        return Located(name, None, "memory", catalog.dataset_sha256(known.files), True, train, test)
    tried: list[str] = []
    for source, holding in places_of(known, named, environment):
        if holding is not None:
            return _located(known, holding, source)
        tried.append(f"{named if source == 'named' else environment}: no {known.name} in it")

    directory = cache / known.layouts[0]
    try:
        return _in_cache(known, directory) or _fill(known, directory, download, progress, tried)
    except OSError as error:
        raise DataUnavailable(
            f"{name} was not found, and the cache {cache} can't be used",
            found=str(error),
            fix=f"Free space in it or make it writable, or name a folder that contains {name} "
            "with --data-dir.",
        ) from error


def places_of(
    known: KnownDataset, named: Path | None, environment: Path | None
) -> Iterator[tuple[Source, Holding | None]]:
    """Yield what each named folder has of the dataset, in order of preference.

    Raises:
        UsageError: a folder does not exist, or can't be read.
        DamagedData: a folder has too few files.
    """
    places: tuple[tuple[Source, Path | None], ...] = (
        ("named", named),
        ("environment", environment),
    )
    for source, place in places:
        if place is None:
            continue
        if not regular.is_folder(place):
            raise UsageError(
                f"the data folder {place} of {_NAMED_BY[source]} can't be used",
                expected="a folder",
                found=regular.found_at(place),
                fix="Create it, or name another.",
            )
        try:
            holding = folder.search(known, place)
        except OSError as error:
            raise UsageError(
                f"the data folder {place} of {_NAMED_BY[source]} can't be read", found=str(error)
            ) from error
        yield source, holding


def glimpse(name: str, *, named: Path | None, environment: Path | None, cache: Path) -> Glimpse:
    """Return where :func:`locate` would find the dataset; same arguments.

    Raises:
        UsageError: a named folder does not exist, or can't be read.
    """
    known = CATALOG[name]
    try:
        for source, holding in places_of(known, named, environment):
            if holding is not None:
                return Glimpse(name, holding.directory.resolve(), source, holding.complete)
    except DamagedData as error:
        return Glimpse(name, problem=str(error))
    if not known.layouts:
        return Glimpse(name, source="memory", complete=True)
    with contextlib.suppress(OSError):  # problems of the cache are reported when it is needed
        cached = folder.examine(known, cache / known.layouts[0])
        if cached is not None and cached.complete:
            return Glimpse(name, cached.directory.resolve(), "cache", complete=True)
    return Glimpse(name)


def _fill(
    known: KnownDataset, directory: Path, download: bool, progress: OnBytes, tried: list[str]
) -> Located:
    """Generate or download what the cache lacks; replaces damaged files."""
    tried = [*tried, f"{directory} (the cache): no valid {known.name} in it"]
    if not (known.drawn or download):
        raise _unavailable(known, [*tried, "mirrors: not tried"])
    with exclusive(directory):
        # The previous holder of the lock may have done the work.
        located = _in_cache(known, directory)
        if located is not None:
            return located
        if known.drawn:
            draw(known, directory, progress)
        else:
            # Imported late: requests takes a tenth of a second.
            from trainmark.data.fetch import fetch

            tried += fetch(known, directory, progress=progress)
        located = _in_cache(known, directory)
    if located is None:
        raise _unavailable(known, tried)
    return replace(located, source="drawn" if known.drawn else "download")


def _in_cache(known: KnownDataset, directory: Path) -> Located | None:
    """Return the dataset in the cache.

    The result is None unless complete and valid, since only a named folder may be incomplete.
    """
    holding = folder.examine(known, directory)
    if holding is None or not holding.complete:
        return None
    try:
        return _located(known, holding, "cache")
    except DamagedData:
        return None


def _located(known: KnownDataset, holding: Holding, source: Source) -> Located:
    # The caller may be the parent of a run, which must stay small: it reads in blocks, and looks
    # closer only to report what is wrong.
    if not all(is_sound(file.path, file.known) for file in holding.files):
        read(known, holding)
    train, test = (sum(file.known.count(split) for file in holding.files) for split in SPLITS)
    return Located(
        known.name,
        holding.directory.resolve(),
        source,
        holding.sha256,
        holding.complete,
        train,
        test,
    )


def _unavailable(known: KnownDataset, tried: list[str]) -> DataUnavailable:
    instead = (
        ", or use synthetic digits: --dataset synthetic-digits" if known.format == "idx" else ""
    )
    return DataUnavailable(
        f"{known.name} was not found",
        expected="a copy in a named folder, the cache or a mirror",
        found=f"no valid copy in {len(tried)} places",
        fix=f"Put {', '.join(file.name for file in known.files)} into a folder DIR and "
        f"add --data-dir DIR or set TRAINMARK_DATA=DIR{instead}.\n"
        "Tried:" + "".join(f"\n  {place}" for place in tried),
    )
