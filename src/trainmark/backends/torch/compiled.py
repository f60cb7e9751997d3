"""``compiled``: the tutorial's loop with ``model = torch.compile(model)``, with the compiler's defaults."""

from __future__ import annotations

import torch
import torch._dynamo

from trainmark.backends.base import EpochPlan, Job
from trainmark.backends.inductor import require_compiler
from trainmark.backends.torch.idiomatic import TorchIdiomaticTrainer


class TorchCompiledTrainer(TorchIdiomaticTrainer):
    """The forward and backward pass are compiled; loader, optimiser and loop are those of ``idiomatic``."""

    def __init__(self, job: Job) -> None:
        require_compiler(job.options.device)
        super().__init__(job)
        # After 8 networks in one process, PyTorch continues without compiling; with fullgraph that is an error.
        config = torch._dynamo.config
        limit = "recompile_limit" if hasattr(config, "recompile_limit") else "cache_size_limit"  # up to PyTorch 2.6
        setattr(config, limit, getattr(config, f"accumulated_{limit}"))
        self._forward = torch.compile(self._network, fullgraph=True)

    def compile(self, plan: EpochPlan) -> bool:
        """Run one forward and backward pass per batch size; weights and random numbers don't change."""
        gpus = [self._device] if self._device.type == "cuda" else []
        with torch.random.fork_rng(gpus), self._buffers_kept():
            for size in dict.fromkeys(plan.sizes):
                batch = self._whole_batch() if plan.whole else self._get_batch(range(size))
                self._differentiate(*self._on_device(*batch))
                self._network.zero_grad()
        return True
