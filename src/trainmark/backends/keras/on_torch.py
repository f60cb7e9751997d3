"""PyTorch as the engine of Keras. There Keras makes float32 of float64 in every matrix product, so it has no fp64.

``fast`` is a plain loop, since Keras's layers run there one operation at a time.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import keras
import torch

from trainmark.backends.base import Device, EpochPlan, Options, cpu
from trainmark.backends.inductor import require_compiler
from trainmark.backends.keras.fast import KerasFastTrainer
from trainmark.backends.keras.precision import ARITHMETIC, supported


class FastOnTorch(KerasFastTrainer):
    """Steps in a Python loop; nothing is fetched in it."""

    def compile(self, plan: EpochPlan) -> bool:  # noqa: ARG002
        """Nothing is compiled."""
        return False

    def _run(self, x: Any, y: Any, batches: Any, count: int, tick: Callable[[], None]) -> Any:
        rows = []
        for step in range(count):
            batch = (x, y) if batches is None else (x.index_select(0, batches[step]), y.index_select(0, batches[step]))
            rows.append(self._learn(*batch))
            tick()
        return torch.stack(rows)

    def _learn(self, x: Any, y: Any) -> Any:
        self._network.zero_grad()
        total, row = self._judge(self._learner(x, training=True), y, self._learner.losses)
        total.backward()
        variables = self._network.trainable_variables
        with torch.no_grad():
            self._optimizer.apply([variable.value.grad for variable in variables], variables)
        return row.detach()


class TorchEngine:
    """PyTorch on CPU and CUDA."""

    title, version, oldest, newest = "PyTorch", torch.__version__, "2.5", "2.13"
    fast_trainer = FastOnTorch

    def __init__(self) -> None:
        self._device = torch.device("cpu")

    def packages(self) -> dict[str, str]:
        """PyTorch, and what it was built with."""
        cuda = {"cuda": torch.version.cuda, "cudnn": str(torch.backends.cudnn.version())} if torch.version.cuda else {}
        return {"torch": self.version, **cuda}

    def devices(self) -> tuple[Device, ...]:
        """CPU and every CUDA device."""
        devices = [cpu(*supported(self.title, gpu=False))]
        for index in range(torch.cuda.device_count()):
            found = torch.cuda.get_device_properties(index)
            precisions = supported(self.title, gpu=True)
            devices.append(Device(f"cuda:{index}", found.name, "accelerator", found.total_memory, precisions))
        return tuple(devices)

    def prepare(self, options: Options) -> None:
        """The device becomes Keras's for as long as the process lives."""
        if options.style == "compiled":
            require_compiler(options.device)
        if options.threads is not None:
            torch.set_num_threads(options.threads)
        torch.manual_seed(options.seed)
        tf32 = ARITHMETIC[options.precision].tf32
        torch.set_float32_matmul_precision("high" if tf32 else "highest")
        torch.backends.cudnn.allow_tf32 = tf32
        self._device = torch.device(options.device)
        if self._device.type == "cuda" and options.memory_fraction is not None:
            torch.cuda.set_per_process_memory_fraction(options.memory_fraction, self._device)
        self._scope = keras.device(options.device)  # ends when nobody holds it
        self._scope.__enter__()

    def reseed(self, seed: int) -> None:
        """PyTorch's run on."""

    def repeated(self, x: Any, y: Any, steps: int) -> Any:
        """Arrays as a generator that has nothing to make."""
        return ((x, y) for _ in range(steps))

    def synchronize(self, values: Sequence[Any]) -> None:  # noqa: ARG002
        """Wait for the device; the CPU computes at once."""
        if self._device.type == "cuda":
            torch.cuda.synchronize(self._device)

    def settings(self) -> dict[str, Any]:
        """PyTorch's switches as they are now."""
        return {
            "float32_matmul_precision": torch.get_float32_matmul_precision(),
            "cudnn_allow_tf32": torch.backends.cudnn.allow_tf32,
            "threads": torch.get_num_threads(),
        }

    def device_peak_bytes(self) -> int | None:
        """Most memory PyTorch held on a CUDA device."""
        return torch.cuda.max_memory_allocated(self._device) if self._device.type == "cuda" else None


ENGINE = TorchEngine()
