"""PyTorch as the engine of Keras.

Keras on it converts float64 to float32 in every matrix product, so there is no fp64.

``fast`` is a plain loop, since Keras's layers run one operation at a time on PyTorch.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import keras
import torch

from trainmark.backends.base import Device, EpochPlan, Options, cpu
from trainmark.backends.engines import torch as engines
from trainmark.backends.inductor import require_compiler
from trainmark.backends.keras.engine import Engine
from trainmark.backends.keras.fast import KerasFastTrainer
from trainmark.backends.keras.precision import ARITHMETIC, supported
from trainmark.workload.precision import Precision


class FastOnTorch(KerasFastTrainer):
    """Runs steps in a Python loop; nothing is fetched inside."""

    def compile(self, plan: EpochPlan) -> bool:  # noqa: ARG002
        """Return False: nothing is compiled."""
        return False

    def _run(self, x: Any, y: Any, batches: Any, count: int, tick: Callable[[], None]) -> Any:
        rows = []
        for step in range(count):
            rows.append(self._learn(*self._examples(x, y, batches, step)))
            tick()
        return torch.stack(rows)

    def _gathered(self, x: Any, indices: Any) -> Any:
        return x.index_select(0, indices)

    def _learn(self, x: Any, y: Any) -> Any:
        self._network.zero_grad()
        total, row = self._judge(self._learner(x, training=True), y, self._learner.losses)
        total.backward()
        variables = self._network.trainable_variables
        with torch.no_grad():
            self._optimizer.apply([variable.value.grad for variable in variables], variables)
        return row.detach()


class TorchEngine(Engine):
    """PyTorch on the CPU and on its accelerator."""

    title = "PyTorch"
    version = torch.__version__
    oldest = engines.OLDEST
    newest = engines.NEWEST
    fast_trainer = FastOnTorch

    def __init__(self) -> None:
        self._device = torch.device("cpu")

    def packages(self) -> dict[str, str]:
        """Return the versions of PyTorch and of what it was built with."""
        return engines.packages()

    def devices(self) -> tuple[Device, ...]:
        """Return the CPU and every accelerator that PyTorch sees."""
        return cpu(*supported(self.title, gpu=False)), *engines.accelerators(self._on_accelerator)

    def _on_accelerator(
        self, _kind: str, _capability: engines.Capability | None
    ) -> tuple[Precision, ...]:
        return supported(self.title, gpu=True)

    def prepare(self, options: Options) -> None:
        """Set the device, for Keras too, for the lifetime of the process."""
        if options.style == "compiled":
            require_compiler(options.device)
        self._device = engines.prepare(options, tf32=ARITHMETIC[options.precision].tf32)
        torch.manual_seed(options.seed)
        self._scope = keras.device(options.device)  # the reference keeps it active
        self._scope.__enter__()

    def reseed(self, seed: int) -> None:
        """Do nothing: PyTorch's random numbers don't repeat."""

    def synchronize(self, values: Sequence[Any]) -> None:  # noqa: ARG002
        """Wait for the device."""
        engines.synchronize(self._device)

    def settings(self) -> dict[str, Any]:
        """Return PyTorch's current settings."""
        return engines.settings()

    def device_peak_bytes(self) -> int | None:
        """Return the peak of the memory that PyTorch allocated on an accelerator."""
        return engines.peak_bytes(self._device)


ENGINE = TorchEngine()
