"""``compiled``: the tutorial's loop with ``model = torch.compile(model)``.

The compiler has its defaults.
"""

from __future__ import annotations

from typing import Any

from trainmark.backends.base import EpochPlan, Job
from trainmark.backends.engines import torch as engines
from trainmark.backends.torch.compiling import cache_state, compiled
from trainmark.backends.torch.idiomatic import TorchIdiomaticTrainer


class TorchCompiledTrainer(TorchIdiomaticTrainer):
    """The forward and backward pass are compiled.

    Loader, optimiser and loop are those of ``idiomatic``.
    """

    def __init__(self, job: Job) -> None:
        super().__init__(job)
        self._pass.forward = compiled(self._network, self._device)

    def compile(self, plan: EpochPlan) -> bool:
        """Run one forward and backward pass per batch size.

        Weights and random numbers don't change.
        """
        with engines.random_state_kept(self._device), self._buffers_kept():
            for size in dict.fromkeys(plan.sizes):
                batch = self._whole_batch() if plan.whole else self._get_batch(range(size))
                self._differentiate(*self._on_device(*batch))
                self._network.zero_grad()
        return True

    def settings(self) -> dict[str, Any]:
        """Return PyTorch's settings, and whether it found its compiled code in a cache."""
        return {**super().settings(), "compile_cache": cache_state()}
