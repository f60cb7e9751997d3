"""Workloads with their data, as the shared processes train them."""

from __future__ import annotations

import functools
from collections.abc import Iterator
from dataclasses import dataclass

from trainmark.backends.base import EpochPlan
from trainmark.data.cache import cache_dir, environment_dir
from trainmark.data.catalog import find as find_dataset
from trainmark.data.dataset import Dataset
from trainmark.data.load import DataFolder
from trainmark.data.locate import locate
from trainmark.errors import DataUnavailable
from trainmark.execute.worker.order import epoch_plans
from trainmark.workload import catalog
from trainmark.workload.model import Model, Weights, initial_weights, lay_out
from trainmark.workload.size import Size
from trainmark.workload.spec import Workload

SEED = 1
DIGITS = "synthetic-digits"
QUICK_SIZES = {
    "shakespeare-gpt": Size(width=16, depth=1, batch=2, length=16),
    "shakespeare-gpt-10m": Size(width=48, depth=1, batch=2, length=16),
    "gpt2-124m": Size(width=48, depth=1, batch=2, length=16),
    "resnet50": Size(width=8, batch=2, crop=64),
    "cifar10-resnet9": Size(width=8, batch=4),
    "cifar10-cnn": Size(width=8, batch=4),
    "mnist-cnn": Size(width=4, batch=4),
    "mnist-mlp128": Size(width=16, batch=4),
    "mnist-mlp512": Size(width=16, batch=4),
    "mnist-mlp32": Size(width=8),
}
"""The sizes of a rehearsal."""


@dataclass(frozen=True)
class Subject:
    """A workload that can be trained.

    Args:
        workload: the workload, in the size that is measured.
        model: its network.
        data: its dataset, on the host.
    """

    workload: Workload
    model: Model
    data: Dataset

    @property
    def units_per_example(self) -> int:
        """Tokens of an example of text; 1 for an image."""
        shape = self.workload.input.network_shape
        return shape[0] if self.workload.is_text else 1

    def weights(self) -> Weights:
        """Return the initial weights."""
        return initial_weights(self.model, SEED)

    def plans(self, style: str) -> Iterator[EpochPlan]:
        """Return the epochs of a training in a style."""
        return epoch_plans(self.workload, len(self.data.train), SEED, inject=style == "fast")


@functools.cache
def load(name: str, *, quick: bool) -> Subject:
    """Load a workload, which is cached, since every style and precision needs it again.

    Args:
        name: name in the catalogue.
        quick: whether to make it tiny.
    """
    workload = catalog.find(name)
    if quick:
        workload = QUICK_SIZES[name].of(workload)
    return Subject(workload, lay_out(workload), _data(workload.dataset, workload))


def _data(name: str, workload: Workload) -> Dataset:
    """Load the data; falls back to synthetic digits if MNIST is not on this machine."""
    known = find_dataset(name)
    try:
        located = locate(
            known.name, environment=environment_dir(), cache=cache_dir(), download=False
        )
    except DataUnavailable:
        if name != "mnist":
            raise
        return _data(DIGITS, workload)
    place = None if located.directory is None else str(located.directory)
    window = workload.input.length if workload.is_text else None
    return DataFolder(known.name, place, window).load()
