"""Data parallelism: DDP averages the gradients of several copies.

Each rank trains a copy on its share of every batch.

It changes four things in a trainer of either style: the share of the batches, the module of the
forward pass, the reduction of results, and the synchronisation.
"""

from __future__ import annotations

import dataclasses
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import nn
from torch.nn.parallel import DistributedDataParallel

from trainmark.backends.base import HITS, EpochPlan, Evaluation, Job, SplitName, Steps
from trainmark.backends.engines import torch as engines
from trainmark.backends.torch.fast import TorchFastTrainer
from trainmark.backends.torch.idiomatic import TorchIdiomaticTrainer
from trainmark.backends.torch.parallel.ranks import Ranks
from trainmark.backends.torch.trainer import TorchTrainer
from trainmark.data.dataset import Split

_SEEDS_APART = 1_000_003


class DataParallel(TorchTrainer):
    """What a rank does differently from a single process; a mixin that comes before the style."""

    def __init__(self, job: Job) -> None:
        assert job.options.layout is not None
        self._layout = job.options.layout
        self._copies = self._layout.data if self._layout.reduces else 1
        self._ranks = Ranks(self._layout, job.options.device)
        self._everything = data = job.data
        if job.workload.takes_everything:  # a rank keeps only the part that it uses in every step
            data = dataclasses.replace(
                data, train=_share(data.train, self._ranks.copy, self._layout.data)
            )
        options = dataclasses.replace(job.options, device=str(self._ranks.device))
        super().__init__(dataclasses.replace(job, data=data, options=options))
        self._pass.forward = self._averaging(self._network)
        # Each share of the batch needs its own dropout masks.
        torch.manual_seed(options.seed + _SEEDS_APART * self._ranks.rank)

    def compile(self, plan: EpochPlan) -> bool:
        """Run a first pass per batch size, in which engines allocate buffers.

        No weight is changed.
        """
        with self._buffers_kept():
            for size in dict.fromkeys(self._shared(plan).sizes):
                images = np.zeros((size, *self._data.train.images.shape[1:]), np.uint8)
                x = self._input(images).contiguous()
                y = torch.zeros(
                    size, *self._data.train.labels.shape[1:], dtype=torch.int64, device=self._device
                )
                for _ in range(2):  # DDP reorders its buckets after the first
                    self._differentiate(x, y)
                    self._network.zero_grad(set_to_none=True)
        return True

    def begin_epoch(self, plan: EpochPlan) -> None:
        """Prepare this copy's share of each batch of ``plan``."""
        # The style's method, since the style comes after this class
        super().begin_epoch(self._shared(plan))  # type: ignore[misc]

    def read(self, results: Any) -> Steps:
        """Read the results of whole batches, on every rank."""
        total = self._ranks.total(results.double())
        total[:, :HITS] /= self._layout.data  # these are means of equal shares
        return super().read(total)

    def evaluate(self, split: SplitName, examples: NDArray[np.int64] | None = None) -> Evaluation:
        """Evaluate a split, a part on each rank."""
        whole: Split = getattr(self._everything, split)
        examples = np.arange(len(whole)) if examples is None else examples
        mine = np.array_split(examples, self._layout.ranks)[self._ranks.rank]
        with self._average_in_place():
            loss, hits = self._judge(self._whole_network(), whole, mine)
        sums = torch.tensor([loss, hits], dtype=torch.float64, device=self._device)
        loss, hits = self._ranks.total(sums).tolist()
        return self._evaluation(whole, len(examples), loss, hits)

    def synchronize(self) -> None:
        """Wait for all devices."""
        super().synchronize()
        self._ranks.meet()

    def gather(self, value: Any) -> list[Any]:
        """Return the value of each rank, in rank order."""
        return self._ranks.gather(value)

    def settings(self) -> dict[str, Any]:
        """Return PyTorch's settings, and how the ranks communicate."""
        return {
            **super().settings(),
            "collectives": torch.distributed.get_backend(),
            "ranks": self._layout.ranks,
            "averages_gradients": self._averages,
        }

    @property
    def _averages(self) -> bool:
        return self._layout.data > 1 and self._layout.reduces

    def _averaging(self, network: nn.Module, **options: Any) -> nn.Module:
        """Wrap ``network`` to average its gradients over all copies."""
        if not self._averages:
            return network
        devices = engines.indices(self._device)
        return DistributedDataParallel(
            network, device_ids=devices, process_group=self._ranks.copies, **options
        )

    def _whole_network(self) -> nn.Module:
        return self._network

    def _shared(self, plan: EpochPlan) -> EpochPlan:
        """Return this copy's share of ``plan``; the parent checks that its sizes are divisible."""
        copies = self._layout.data
        sizes = tuple(size // copies for size in plan.sizes)

        def share(rows: NDArray[np.int64] | None) -> NDArray[np.int64] | None:
            if rows is None:
                return None
            return np.concatenate(
                [np.split(batch, copies)[self._ranks.copy] for batch in plan.batches(rows)]
            )

        return EpochPlan(sizes, share(plan.order), plan.whole, share(plan.augmented))


class DataParallelFast(DataParallel, TorchFastTrainer):
    """One rank of ``fast``."""


class DataParallelIdiomatic(DataParallel, TorchIdiomaticTrainer):
    """One rank of ``idiomatic``."""


def _share(split: Split, place: int, parts: int) -> Split:
    """Return one of ``parts`` contiguous, equal parts; sizes may differ by one example."""
    edges = [len(split) * edge // parts for edge in (place, place + 1)]
    return Split(split.images[edges[0] : edges[1]], split.labels[edges[0] : edges[1]])
