"""A candidate's training step, with the methods of a trainer."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from gpu.styles import networks
from gpu.styles.candidates import Candidate
from gpu.styles.data import BatchesOnDevice
from gpu.subjects import SEED, Subject
from trainmark.backends.base import EpochPlan, Steps
from trainmark.backends.torch import optimizers
from trainmark.workload.losses import sums
from trainmark.workload.optimizers import weight_decay_of

RECORDED = 1 << 14
"""Number of rows of recorded results; then the first ones are overwritten."""
WARM_UP_STEPS = 3
"""Number of steps before a capture, so that workspaces and the optimiser's state exist."""


class CandidateTrainer:
    """Trains a workload by one candidate's loop, in bf16.

    Each step gathers a batch, computes, clips and updates, and records the loss and, if trainmark
    does, the hits.

    Args:
        subject: the workload and its data.
        candidate: how to run a step.
        device: where to train; without CUDA, nothing is captured.
        nanogpt: the checkout of nanoGPT, if the candidate needs it.
    """

    def __init__(
        self, subject: Subject, candidate: Candidate, device: str, nanogpt: Path | None
    ) -> None:
        torch.manual_seed(SEED)
        self._device = torch.device(device)
        self._candidate = candidate
        self._captures = candidate.captured and self._device.type == "cuda"
        self._workload = subject.workload
        layout = _layout(candidate)
        self._batches = BatchesOnDevice(subject, self._device, layout)
        network = networks.ours(subject, self._device)
        if candidate.nanogpt:
            assert nanogpt is not None
            network = networks.nanogpt(nanogpt, subject, self._device)
        if layout is not None:
            network.to(memory_format=layout)
        forward: Any = (
            torch.compile(network, mode=candidate.mode, dynamic=False)
            if candidate.compiled
            else network
        )
        if candidate.nanogpt:
            self._compute = networks.loss_of_nanogpt(forward, self._device)
        else:
            self._compute = networks.loss_of(subject, forward, self._device)
        self._parameters = list(network.parameters())
        self._optimizer = self._build_optimizer(network)
        self._update: Callable[[], Any] = self._optimizer.step
        if candidate.compiled_optimizer:
            self._update = torch.compile(self._optimizer.step)
        self._sums = sums(subject.workload.loss)
        self._counts_hits = subject.workload.metrics.train == "running" and not candidate.nanogpt
        self._rows = torch.zeros(RECORDED, 2, device=self._device)
        self._place = torch.zeros(1, dtype=torch.int64, device=self._device)
        self._graph: torch.cuda.CUDAGraph | None = None

    def _build_optimizer(self, network: nn.Module) -> torch.optim.Optimizer:
        spec = self._workload.optimizer
        decays = {
            each: weight_decay_of(spec, name, each.ndim)
            for name, each in network.named_parameters()
        }
        # A compiled update is one kernel already; PyTorch compiles the `foreach` optimiser, not the
        # fused one.
        quick = not self._candidate.compiled_optimizer
        return optimizers.build(
            spec, network, decays=decays, quick=quick, capturable=self._captures
        )

    def compile(self, _plan: EpochPlan) -> bool:
        """Run the first steps, which compile, and capture one."""
        if not self._captures:
            for _ in range(WARM_UP_STEPS):
                self._step()
            return self._candidate.compiled
        aside = torch.cuda.Stream(self._device)
        aside.wait_stream(torch.cuda.current_stream(self._device))
        with torch.cuda.stream(aside):
            for _ in range(WARM_UP_STEPS):
                self._step()
        torch.cuda.current_stream(self._device).wait_stream(aside)
        self._optimizer.zero_grad(set_to_none=True)
        self._graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(self._graph):
            self._step()
        return True

    def begin_epoch(self, _plan: EpochPlan) -> None:
        """Do nothing: epochs are endless here."""

    def train(self, steps: int, tick: Callable[[], None]) -> Tensor:
        """Queue steps; the result is the loss of the last one, on the device."""
        for _ in range(steps):
            if self._graph is None:
                self._step()
            else:
                self._graph.replay()
            tick()
        return self._rows[(self._place - 1) % RECORDED].clone()

    def _step(self) -> None:
        for parameter in self._parameters:  # `zero_grad` takes longer
            parameter.grad = None
        x, y = self._batches.next()
        outputs, loss = self._compute(x, y)
        total = loss * y.numel() if self._sums else loss
        total.backward()
        if self._workload.optimizer.clip_norm is not None:
            nn.utils.clip_grad_norm_(
                self._parameters, self._workload.optimizer.clip_norm, foreach=True
            )
        self._update()
        row = torch.zeros(2, device=self._device)
        row[0] = loss.detach()
        if self._counts_hits:
            row[1] = (outputs.argmax(dim=-1) == y).sum()
        self._rows.index_copy_(0, self._place % RECORDED, row.unsqueeze(0))
        self._place.add_(1)

    def synchronize(self) -> None:
        """Wait for the device."""
        if self._device.type == "cuda":
            torch.cuda.synchronize(self._device)

    def read(self, results: Tensor) -> Steps:
        """Read the loss of the last step."""
        losses = results.cpu().double().numpy()[:, 0]
        return Steps(losses, None, np.zeros(len(losses), np.int64))

    def device_peak_bytes(self) -> int | None:
        """Return PyTorch's peak memory on a CUDA device."""
        return (
            torch.cuda.max_memory_allocated(self._device) if self._device.type == "cuda" else None
        )


def _layout(candidate: Candidate) -> torch.memory_format | None:
    if candidate.channels_last is None:
        return None
    return torch.channels_last if candidate.channels_last else torch.contiguous_format
