"""Load arrays from a folder. The child process calls ``load``, which verifies every byte."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import numpy as np

from trainmark.data import catalog, cifar10, folder, idx, in_memory, stored, text
from trainmark.data.catalog import CATALOG, Catalog, KnownDataset, SplitName
from trainmark.data.dataset import Dataset, Split
from trainmark.data.folder import Held, Holding
from trainmark.errors import DataUnavailable


@dataclass(frozen=True)
class DataFolder:
    """A dataset and its folder, as passed to a measured process.

    Args:
        directory: the folder with its files; None if it is generated in memory.
        window: tokens per example, for text.
    """

    name: str
    directory: str | None
    window: int | None = None

    def load(self) -> Dataset:
        """Load the whole dataset, a text as its windows; raises as :func:`load` does."""
        dataset = load(self.name, None if self.directory is None else Path(self.directory))
        return dataset if self.window is None else dataset.windows(self.window)


def load(name: str, directory: Path | None, *, known_datasets: Catalog = CATALOG) -> Dataset:
    """Read and verify the dataset with its files directly in ``directory`` (``Located.directory``).

    Args:
        name: a name in the catalogue.
        directory: the folder with the files, each plain or as ``.gz``; None for a dataset generated
            in memory.
        known_datasets: the known datasets.

    Raises:
        UnknownName: no such dataset.
        DataUnavailable: the folder has too few of its files, or none.
        DamagedData: a file has the wrong content.
    """
    known = catalog.find(name, known_datasets)
    if directory is None:
        return in_memory.draw(known)
    holding = folder.examine(known, directory)
    if holding is None or not holding.usable:
        missing = ", ".join(
            [file.name for file in known.files] if holding is None else holding.missing
        )
        raise DataUnavailable(
            f"{directory} does not contain {name}",
            found=f"no {missing}",
            fix=f"Run: trainmark data fetch {name}",
        )
    return read(known, holding)


def read(known: KnownDataset, holding: Holding) -> Dataset:
    """Read the arrays of a usable holding; raises DamagedData as ``load`` does."""
    if known.format == "text":
        train, test = _read_text(known, holding.files)
    else:
        read_split = {"idx": _read_idx, "cifar10": _read_cifar10}[known.format]
        train = read_split(known, _of(holding, "train"))
        test = read_split(known, _of(holding, "test"))
    return Dataset(known.name, train, test, holding.sha256, holding.complete)


def _of(holding: Holding, split: SplitName) -> tuple[Held, ...]:
    return tuple(file for file in holding.files if file.known.split == split)


# All parse before they compare digests: "label 12 at example 7" says more than two different
# checksums.


def _read_idx(known: KnownDataset, files: tuple[Held, ...]) -> Split:
    images, labels = files
    payload = stored.read(images.path, images.known)
    pixels = idx.parse(payload, (images.known.examples, *known.image_shape[:2]), images.path)
    stored.check(payload, images.known, images.path)

    payload = stored.read(labels.path, labels.known)
    classes = idx.parse_labels(payload, labels.known.examples, labels.path)
    stored.check(payload, labels.known, labels.path)
    return Split(pixels.reshape(-1, *known.image_shape), classes)


def _read_cifar10(known: KnownDataset, files: tuple[Held, ...]) -> Split:
    examples = sum(file.known.examples for file in files)
    images = np.empty((examples, *known.image_shape), np.uint8)
    labels = np.empty(examples, np.uint8)
    first = 0
    for file in files:
        some = slice(first, first + file.known.examples)
        payload = stored.read(file.path, file.known)
        images[some], labels[some] = cifar10.parse(payload, file.known.examples, file.path)
        stored.check(payload, file.known, file.path)
        first = some.stop
    return Split(images, labels)


def _read_text(known: KnownDataset, files: tuple[Held, ...]) -> tuple[Split, Split]:
    (file,) = files
    payload = stored.read(file.path, file.known)
    tokens = text.parse(payload, "".join(map(str, known.classes)), file.path)
    stored.check(payload, file.known, file.path)
    first = file.known.count("train")
    return Split.of_text(tokens[:first]), Split.of_text(tokens[first:])
