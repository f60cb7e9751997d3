"""Pipeline parallelism: each rank holds consecutive layers (GPipe).

Batches go through in microbatches.

Huang et al. 2019. With several copies of the pipeline, each stage averages its gradients over its
copies.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor, nn
from torch.distributed.pipelining import PipelineStage, ScheduleGPipe

from trainmark.backends.base import Job
from trainmark.backends.torch import network
from trainmark.backends.torch.fast import TorchFastTrainer
from trainmark.backends.torch.forward_pass import hits
from trainmark.backends.torch.idiomatic import TorchIdiomaticTrainer
from trainmark.backends.torch.parallel.data_parallel import DataParallel
from trainmark.workload.model import LayerPlan, Model, Weights
from trainmark.workload.stages import cut


class Pipelined(DataParallel):
    """One stage of one copy; a mixin that comes before the style."""

    def __init__(self, job: Job) -> None:
        super().__init__(job)
        self._is_first = self._ranks.stage == 0
        self._is_last = self._ranks.stage == self._layout.pipeline - 1
        self._pass.counts_hits &= self._is_last
        self._schedules: dict[int, ScheduleGPipe] = {}

    def weights(self) -> Weights:
        """Return all weights, gathered from the ranks."""
        return _merged(self.gather(super().weights()))

    def settings(self) -> dict[str, Any]:
        """Return the settings of a rank, and of the pipeline."""
        return {
            **super().settings(),
            "schedule": "GPipe",
            "microbatches": self._layout.microbatches,
        }

    def _layers(self, model: Model) -> Sequence[LayerPlan]:
        return cut(model, self._layout.pipeline)[self._ranks.stage]

    def _averaging(self, network: nn.Module, **options: Any) -> nn.Module:
        # DDP would lay out its buckets by the first of several microbatches, and fails (PyTorch
        # 2.13).
        return super()._averaging(network, find_unused_parameters=True, **options)

    def _whole_network(self) -> nn.Module:
        """Return a network with the current weights of all stages."""
        whole = network.build(self._model, self._model.layers).to(self._device, self._dtype)
        by_name = _merged(self.gather(self._own()))
        whole.load_state_dict({name: torch.from_numpy(value) for name, value in by_name.items()})
        return whole

    def _own(self) -> dict[str, Any]:
        return {name: value.cpu().numpy() for name, value in self._network.state_dict().items()}

    def _differentiate(self, x: Tensor, y: Tensor) -> tuple[Tensor, Tensor | None, Tensor | None]:
        """Compute gradients.

        Only the last stage has loss and hits, and each stage has its own L2 loss.
        """
        losses: list[Tensor] = []
        inputs = (x,) if self._is_first else ()
        targets = {"target": y, "losses": losses} if self._is_last else {}
        outputs = self._schedule(len(y)).step(*inputs, **targets)
        if losses:
            loss = torch.stack(losses).mean()
        else:
            loss = torch.zeros((), dtype=self._dtype, device=self._device)
        with torch.no_grad():
            l2_loss = self._l2_loss()
            for factor, kernel in self._l2:
                kernel.grad.add_(kernel, alpha=factor)
        found = hits(outputs, y) if self._pass.counts_hits else None
        return loss if l2_loss is None else loss + l2_loss, l2_loss, found

    def _schedule(self, size: int) -> ScheduleGPipe:
        """Return the schedule for batches of ``size``.

        Buffers between stages have the shape of microbatches.
        """
        if size not in self._schedules:
            stage = PipelineStage(
                self._pass.forward,
                self._ranks.stage,
                self._layout.pipeline,
                self._device,
                group=self._ranks.stages,
            )
            self._schedules[size] = ScheduleGPipe(
                stage, self._layout.microbatches, loss_fn=self._loss
            )
        return self._schedules[size]


def _merged(of_ranks: Sequence[dict[str, Any]]) -> dict[str, Any]:
    """Return the arrays of all ranks, which hold different ones."""
    every: dict[str, Any] = {}
    for theirs in of_ranks:
        every.update(theirs)
    return every


class PipelinedFast(Pipelined, TorchFastTrainer):
    """One stage of ``fast``."""


class PipelinedIdiomatic(Pipelined, TorchIdiomaticTrainer):
    """One stage of ``idiomatic``."""
