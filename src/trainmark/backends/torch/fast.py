"""``fast``: the dataset lives on the device, nothing is fetched inside an epoch, and on CUDA a step is one graph.

The step is written once. On the CPU it runs as it is; on CUDA it is captured into a graph for each batch size and
replayed, with its place in the epoch kept in a tensor on the device, so that the host only says 'again'.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor

from trainmark.backends.base import EpochPlan, Options
from trainmark.backends.torch import optimizers
from trainmark.backends.torch.pixels import transform
from trainmark.backends.torch.trainer import HITS, L2_LOSS, LOSS, TorchTrainer
from trainmark.data.dataset import Dataset
from trainmark.workload.model import Model, Weights
from trainmark.workload.optimizers import learning_rate_at
from trainmark.workload.spec import Workload

_WARM_UP_STEPS = 3  # before a capture, so that workspaces and optimiser state exist


class FastTrainer(TorchTrainer):
    """Everything resident."""

    def __init__(self, workload: Workload, model: Model, data: Dataset, options: Options) -> None:
        super().__init__(workload, model, data, options)
        self._captures = self._device.type == "cuda" and options.precision != "fp16"  # a gradient scaler can't be
        images = torch.tensor(data.train.images, device=self._device)
        distorted = workload.input.distortions is not None
        self._images = images if distorted else transform(workload.input, images, self._dtype).contiguous()
        self._labels = torch.tensor(data.train.labels, dtype=torch.int64, device=self._device)
        fused = self._device.type in ("cpu", "cuda") and self._dtype in (torch.float32, torch.float64)
        self._optimizer = optimizers.build(workload.optimizer, self._network, fused=fused, capturable=self._captures)
        self._updates = torch.zeros((), dtype=self._dtype, device=self._device)
        self._graphs: dict[int, torch.cuda.CUDAGraph] = {}
        self._order: Tensor = torch.zeros(0, dtype=torch.int64, device=self._device)
        self._rate = workload.optimizer.learning_rate
        self._cursor = torch.zeros((), dtype=torch.int64, device=self._device)
        self._slot = torch.zeros(1, dtype=torch.int64, device=self._device)

    def load(self, weights: Weights) -> None:
        """Weights and a zeroed optimiser, in place, so that captured steps stay valid."""
        super().load(weights)
        optimizers.reset(self._optimizer)
        self._updates.zero_()
        self._step = 0

    def compile(self, plan: EpochPlan) -> bool:
        """Capture a graph for each batch size of the plan; False where nothing is captured."""
        if not self._captures:
            return False
        weights = self.weights()
        self.begin_epoch(plan)
        self._row_buffer(len(plan.sizes))
        for size in dict.fromkeys(plan.sizes):
            self._graphs[size] = self._capture(size, plan.whole)
        self.load(weights)
        return True

    def begin_epoch(self, plan: EpochPlan) -> None:
        """Send the order of the epoch to the device."""
        self._sizes, self._next, self._start = plan.sizes, 0, 0
        self._whole = plan.whole
        if plan.whole:
            return
        order = torch.randperm(len(self._labels)) if plan.order is None else torch.from_numpy(plan.order)
        if self._graphs and len(order) <= len(self._order):
            self._order[: len(order)].copy_(order)  # the graphs read this very buffer
        else:
            self._graphs.clear()
            self._order = order.to(self._device)
        self._cursor.zero_()

    def train(self, steps: int, tick: Callable[[], None]) -> Tensor:
        """Queue steps; results stay on the device."""
        results = self._row_buffer(steps)
        self._slot.zero_()
        for row in range(steps):
            size = self._sizes[self._next]
            self._follow_staircase()
            if size in self._graphs:
                self._graphs[size].replay()
            else:
                self._step_on(self._eager_batch(size), results[row])
                if self._graphs:
                    self._slot.add_(1)
                    self._cursor.add_(size)
            self._next += 1
            self._start += size
            self._step += 1
            tick()
        return results[:steps].clone()

    def _row_buffer(self, steps: int) -> Tensor:
        """Rows for results: one buffer for the life of the graphs, since they write into it."""
        buffer: Tensor | None = getattr(self, "_rows", None)
        if buffer is None or len(buffer) < steps:
            self._graphs.clear()
            self._rows = buffer = torch.zeros(steps, 3, dtype=self._dtype, device=self._device)
        return buffer

    def _step_on(self, batch: tuple[Tensor, Tensor], row: Tensor) -> None:
        """One training step; writes loss, L2 loss and hits into ``row``."""
        x, y = batch
        self._optimizer.zero_grad(set_to_none=True)
        loss, l2_loss, outputs = self._batch_loss(x, y)
        self._scaler.scale(loss).backward()
        self._scaler.step(self._optimizer)
        self._scaler.update()
        if self._workload.weight_average is not None:
            decay = ((1 + self._updates) / (10 + self._updates)).clamp(max=self._workload.weight_average.decay)
            with torch.no_grad():
                torch._foreach_lerp_(self._average, self._parameters, (1 - decay).expand(len(self._average)).unbind())
            self._updates.add_(1)
        row[LOSS] = loss.detach()
        row[HITS] = (outputs.argmax(dim=1) == y).sum()
        if l2_loss is not None:
            row[L2_LOSS] = l2_loss.detach()

    def _eager_batch(self, size: int) -> tuple[Tensor, Tensor]:
        if self._whole:
            return self._taken(None)
        return self._taken(self._order[self._start : self._start + size])

    def _taken(self, indices: Tensor | None) -> tuple[Tensor, Tensor]:
        images, labels = self._images, self._labels
        if indices is not None:
            images, labels = images.index_select(0, indices), labels.index_select(0, indices)
        if self._workload.input.distortions is not None:
            images = transform(self._workload.input, images, self._dtype)
        return images, labels

    def _capture(self, size: int, whole: bool) -> torch.cuda.CUDAGraph:
        """A graph of one step of ``size`` examples at the place that the device's own cursor says."""
        offsets = torch.arange(size, device=self._device)
        row = torch.zeros(3, dtype=self._dtype, device=self._device)

        def step() -> None:
            indices = None if whole else self._order.index_select(0, self._cursor + offsets)
            self._step_on(self._taken(indices), row)
            self._rows.index_copy_(0, self._slot, row.unsqueeze(0))
            self._slot.add_(1)
            self._cursor.add_(size)

        aside = torch.cuda.Stream(self._device)
        aside.wait_stream(torch.cuda.current_stream(self._device))
        with torch.cuda.stream(aside):
            for _ in range(_WARM_UP_STEPS):
                self._cursor.zero_()
                self._slot.zero_()
                step()
        torch.cuda.current_stream(self._device).wait_stream(aside)
        self._cursor.zero_()
        self._slot.zero_()
        self._optimizer.zero_grad(set_to_none=True)
        graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(graph):
            step()
        return graph

    def _follow_staircase(self) -> None:
        """A new learning rate is a new step: captured ones hold the old."""
        if self._workload.optimizer.staircase is None:
            return
        rate = learning_rate_at(self._workload.optimizer, self._step)
        if rate != self._rate:
            self._rate = rate
            optimizers.set_learning_rate(self._optimizer, rate)
            self._graphs.clear()

    def settings(self) -> dict[str, Any]:
        """PyTorch's switches, and what is captured."""
        return {**super().settings(), "cuda_graphs": len(self._graphs)}
