"""Batches that take long to load."""

from __future__ import annotations

from collections.abc import Mapping
from typing import ClassVar

from trainmark.analysis.causes.cause import Cause, Evidence, Found, InKnownFunctions

_LARGE_SHARE = 0.25
"""Share of the time from which on loading is a cause by itself."""
_TUNING = "https://docs.pytorch.org/tutorials/recipes/recipes/tuning_guide"


class RestartedWorkers(Cause):
    """The loader's processes start again in each epoch."""

    name = "restarted-workers"
    part = "loader"
    cure = "Keep them, with persistent_workers=True, or load without them"
    source = "https://github.com/huggingface/transformers/issues/27058"
    changes = ("persistent-workers", "no-workers")

    def find(self, evidence: Evidence) -> Found | None:
        """Return the cause if starting and ending them takes long."""
        workers = evidence.facts.get("workers") or 0
        share = evidence.share("new iterator", "end of workers")
        if not workers or evidence.facts.get("persistent") or share < InKnownFunctions.least:
            return None
        return self.found(
            f"The loader's {workers} processes start again in each epoch",
            evidence.place("new iterator", "end of workers"),
            share,
        )


class TooManyWorkers(Cause):
    """There are more loader processes than cores."""

    name = "too-many-workers"
    cure = "Use fewer of them"
    source = "https://github.com/embeddings-benchmark/mteb/issues/1331"

    def find(self, evidence: Evidence) -> Found | None:
        """Return the cause if the processes can't all run."""
        workers = evidence.facts.get("workers") or 0
        if workers <= evidence.cores:
            return None
        return self.found(
            f"The loader has {workers} processes for {evidence.cores} cores",
            evidence.observed.places.get("loader"),
            changes=(f"workers={evidence.cores}", "no-workers"),
        )


class Pandas(InKnownFunctions):
    """Tables are read row by row, or made anew."""

    name = "pandas"
    part = "loader"
    functions = ("pandas",)
    seen = "Working with pandas takes long"
    cure = "Convert the columns to arrays or tensors once, before the training, and index those"
    source = "https://github.com/braindecode/braindecode/pull/89"


class ImageDecoding(InKnownFunctions):
    """Images are decoded while the training waits."""

    name = "image-decoding"
    part = "loader"
    functions = ("images",)
    seen = "Decoding images takes long"
    cure = "Decode and resize them once, in advance"
    source = "https://github.com/roboflow/rf-detr/issues/1391"


class Transforms(InKnownFunctions):
    """Images are transformed while the training waits."""

    name = "transforms"
    part = "loader"
    functions = ("transforms",)
    seen = "Transforming images takes long"
    cure = "Do what is the same in each epoch once, in advance"
    source = "https://github.com/roboflow/rf-detr/issues/1391"


class Hdf5Reads(InKnownFunctions):
    """HDF5 reads single examples."""

    name = "hdf5-reads"
    part = "loader"
    functions = ("HDF5",)
    seen = "Reading from HDF5 takes long"
    cure = "Read whole chunks or batches, and keep the file and its datasets open"
    source = "https://github.com/h5py/h5py/issues/994"


class TextParsing(InKnownFunctions):
    """Text files are parsed while the training waits."""

    name = "text-parsing"
    part = "loader"
    functions = ("JSON", "CSV")
    seen = "Parsing text files takes long"
    cure = "Parse them once, and store arrays"
    source = "https://github.com/deeppavlov/DeepPavlov/issues/600"


class Collation(InKnownFunctions):
    """Examples in memory are taken one by one, and put together again."""

    name = "collation"
    part = "loader"
    functions = ("collation",)
    seen = "Putting single examples together to batches takes long"
    cure = "Index whole batches of what is in memory: x[indices], or a dataset with __getitems__"
    source = "https://github.com/pytorch/pytorch/issues/4959"


class SlowLoading(Cause):
    """The training waits for batches, wherever they are loaded."""

    part = "loader"
    cure = "Prepare the data once, in advance"
    source = _TUNING
    changes = ("same-batch",)
    random_cure = (
        "Speed up loading: it draws random numbers, so not all of it can be done in advance"
    )
    """The cure if batches differ from epoch to epoch."""
    needs_place: ClassVar[bool] = False
    """Whether a slow line is required as evidence."""

    def find(self, evidence: Evidence) -> Found | None:
        """Return the cause if loading takes a large share of the time."""
        share = self.share(evidence)
        workers = evidence.facts.get("workers")
        if workers is None or share < _LARGE_SHARE or not self.is_of(workers):
            return None
        place = self.place(evidence)
        if place is None and self.needs_place:
            return None
        cure = self.random_cure if evidence.draws else self.cure
        return self.found(self.says(workers), place, share, cure=cure)

    def share(self, evidence: Evidence) -> float:
        """Return the share of the time that it takes."""
        raise NotImplementedError

    def is_of(self, workers: int) -> bool:
        """Whether this is the cause for a number of worker processes."""
        raise NotImplementedError

    def says(self, workers: int) -> str:
        """Return what is seen."""
        raise NotImplementedError

    def place(self, evidence: Evidence) -> str | None:
        """Return the line to name; None if there is none."""
        return self.slowest(evidence)

    def slowest(self, evidence: Evidence) -> str | None:
        """Return the slowest line of the user's that the loader calls, if it takes long."""
        lines: Mapping[str, float] = evidence.facts.get("lines", {})
        inside = [
            line
            for line in evidence.facts.get("loading", ())
            if line not in evidence.observed.places.values()
        ]
        slowest = max(inside, key=lambda line: lines.get(line, 0.0), default=None)
        is_slow = slowest is not None and lines.get(slowest, 0.0) >= InKnownFunctions.least
        return slowest if is_slow else None


class OneProcess(SlowLoading):
    """The training waits while batches are loaded in its own process."""

    name = "loading-in-process"

    def share(self, evidence: Evidence) -> float:
        """Return the share of loading."""
        return evidence.of_part("loader")

    def place(self, evidence: Evidence) -> str | None:
        """Return the slowest line that loads, or that of the loader."""
        return self.slowest(evidence) or evidence.observed.places.get("loader")

    def is_of(self, workers: int) -> bool:
        """Whether there are no worker processes."""
        return workers == 0

    def says(self, workers: int) -> str:  # noqa: ARG002
        """Return what is seen."""
        return "The training waits while it loads batches itself"


class SlowWorkers(SlowLoading):
    """The training waits for the processes that load batches.

    Without a slow line, they may only be starting.
    """

    name = "slow-workers"
    needs_place = True

    def share(self, evidence: Evidence) -> float:
        """Return the share of waiting, without that of starting the processes."""
        return evidence.share("workers")

    def is_of(self, workers: int) -> bool:
        """Whether there are worker processes."""
        return workers > 0

    def says(self, workers: int) -> str:
        """Return what is seen."""
        whose = "the loader's process" if workers == 1 else f"the loader's {workers} processes"
        return f"The training waits for batches from {whose}"


CAUSES = (
    RestartedWorkers,
    TooManyWorkers,
    Pandas,
    ImageDecoding,
    Transforms,
    Hdf5Reads,
    TextParsing,
    Collation,
    OneProcess,
    SlowWorkers,
)
