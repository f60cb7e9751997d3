"""Datasets of real format and small size, with digests that are right."""

from __future__ import annotations

import gzip
import hashlib
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from trainmark.data import idx, synthetic
from trainmark.data.catalog import KnownDataset, KnownFile, Mirror, SplitName
from trainmark.data.cifar10 import RECORD

TRAIN = 60
TEST = 20


@dataclass(frozen=True)
class Sample:
    """A dataset and the content of its files by name."""

    known: KnownDataset
    contents: dict[str, bytes]

    def write(self, directory: Path, *names: str, compressed: bool = False) -> Path:
        """Puts the files, or only the named ones, into a folder."""
        directory.mkdir(parents=True, exist_ok=True)
        for name in names or [file.name for file in self.known.files]:
            if compressed:
                (directory / f"{name}.gz").write_bytes(gzip.compress(self.contents[name]))
            else:
                (directory / name).write_bytes(self.contents[name])
        return directory


def known_file(
    name: str,
    split: SplitName,
    holds: str,
    examples: int,
    content: bytes,
    part_of: str | None = None,
) -> KnownFile:
    return KnownFile(
        name, split, holds, examples, len(content), hashlib.sha256(content).hexdigest(), part_of
    )  # type: ignore[arg-type]


def digits(*mirrors: Mirror, name: str = "digits", train: int = TRAIN, test: int = TEST) -> Sample:
    """A few drawn digits in MNIST's four files. Without mirrors it is a dataset that is drawn."""
    files: list[KnownFile] = []
    contents: dict[str, bytes] = {}
    splits: tuple[tuple[SplitName, str, int], ...] = (
        ("train", "train", train),
        ("test", "t10k", test),
    )
    for split, prefix, examples in splits:
        images, labels = synthetic.draw(synthetic.SEED[split], examples, lambda done: None)
        for holds, array in (("images", images), ("labels", labels)):
            file = f"{prefix}-{holds}-idx{array.ndim}-ubyte"
            contents[file] = idx.encode(array)
            files.append(known_file(file, split, holds, examples, contents[file]))
    known = KnownDataset(
        name,
        "a few digits",
        "idx",
        (28, 28, 1),
        tuple(files),
        (name, "RAW/raw", "."),
        mirrors=mirrors,
    )
    return Sample(known, contents)


def pictures(*mirrors: Mirror) -> Sample:
    """Random pictures in the files of CIFAR-10: five to train on with 12 each, one to test with,
    and its first 4."""
    random = np.random.Generator(np.random.PCG64(3))
    files: list[KnownFile] = []
    contents: dict[str, bytes] = {}
    for number in range(1, 7):
        records = random.integers(0, 256, (12, RECORD), np.uint8)
        records[:, 0] %= 10
        split: SplitName = "train" if number < 6 else "test"
        file = f"data_batch_{number}.bin" if split == "train" else "test_batch.bin"
        contents[file] = records.tobytes()
        files.append(known_file(file, split, "records", 12, contents[file]))
    contents["test_batch_first4.bin"] = contents["test_batch.bin"][: 4 * RECORD]
    part = known_file(
        "test_batch_first4.bin",
        "test",
        "records",
        4,
        contents["test_batch_first4.bin"],
        "test_batch.bin",
    )
    known = KnownDataset(
        name="pictures",
        title="a few pictures",
        format="cifar10",
        image_shape=(32, 32, 3),
        files=tuple(files),
        layouts=("pictures/bin", "bin", "."),
        parts=(part,),
        splittable=True,
        mirrors=mirrors,
    )
    return Sample(known, contents)
