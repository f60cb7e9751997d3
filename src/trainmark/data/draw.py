"""Write ``synthetic-digits`` into the cache, as four IDX files like MNIST's."""

from __future__ import annotations

from pathlib import Path

from trainmark.data import idx, stored, synthetic
from trainmark.data.catalog import KnownDataset, SplitName
from trainmark.data.progress import Progress
from trainmark.data.synthetic import SIDE
from trainmark.errors import DamagedData, DataUnavailable
from trainmark.regular import write_atomically

_PIXELS = SIDE * SIDE

SPLITS: tuple[SplitName, ...] = ("train", "test")


def draw(known: KnownDataset, directory: Path, progress: Progress) -> None:
    """Write the files of ``known`` into ``directory``, replacing any that are there.

    Raises:
        DataUnavailable: this machine generates other bytes than the catalogue knows, which is a bug worth reporting.
        OSError: ``directory`` can't be written.
    """
    total = sum(known.examples(split) for split in SPLITS) * _PIXELS
    before = 0
    for split in SPLITS:

        def drawn(images: int, before: int = before) -> None:
            progress(before + images * _PIXELS, total, known.name)

        images, labels = synthetic.draw(synthetic.SEED[split], known.examples(split), drawn)
        for file in known.files:
            if file.split == split:
                payload, path = idx.encode(images if file.holds == "images" else labels), directory / file.name
                try:
                    stored.check(payload, file, path)
                except DamagedData as error:
                    raise DataUnavailable(
                        f"this machine generates a different {file.name}",
                        expected=error.expected,
                        found=error.found,
                        fix="Please report this; until then, copy the folder from another machine and name it with "
                        "--data-dir.",
                    ) from error
                write_atomically(path, payload)
        before += len(images) * _PIXELS
