"""The PyTorch backend: its devices and capabilities."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from numpy.typing import NDArray

from trainmark.backends import base
from trainmark.backends.engines import torch as engines
from trainmark.backends.examination import LEFT, RIGHT, Examination
from trainmark.backends.layout import Fall, LaunchSpec
from trainmark.backends.peaks import PeakKernels
from trainmark.backends.torch import precision
from trainmark.backends.torch.fast import TorchFastTrainer
from trainmark.backends.torch.idiomatic import TorchIdiomaticTrainer
from trainmark.backends.torch.peaks import TorchPeakKernels
from trainmark.data.dataset import Dataset
from trainmark.errors import Unsupported, assert_never
from trainmark.workload.model import Model
from trainmark.workload.precision import PRECISIONS, listed
from trainmark.workload.spec import Workload

KINDS = base.COMMON_KINDS


class TorchBackend:
    """PyTorch on the CPU and on the accelerator that it was built for."""

    def capabilities(self) -> base.Capabilities:
        """Return full support, on the devices that PyTorch sees."""
        version: str = torch.__version__
        untested = base.is_untested(
            "PyTorch", version, oldest=engines.OLDEST, newest=engines.NEWEST
        )
        return base.Capabilities(
            "torch",
            version,
            base.STYLES,
            _devices(),
            KINDS,
            engines.packages(),
            untested,
            spreads="processes",
        )

    def trainer(
        self, workload: Workload, model: Model, data: Dataset, options: base.Options
    ) -> base.Trainer:
        """Create a trainer of the requested style."""
        base.require_support(self.capabilities(), workload, options)
        return _kind(options)(base.Job(workload, model, data, options))

    def parts(self, options: base.Options) -> frozenset[base.StepPart]:
        """Return the parts: ``fast`` gathers batches on the device.

        The other styles make them on the host.
        """
        copies = options.style != "fast" and options.device != "cpu"
        return frozenset(
            ("input", "copy", "optimizer", "loss") if copies else ("input", "optimizer", "loss")
        )

    def launch(self, asked: LaunchSpec) -> Fall | None:
        """Start the ranks with ``torchrun``'s launcher."""
        from trainmark.backends.torch.parallel.launch import launch

        return launch(asked)

    def peak_kernels(self, options: base.Options) -> PeakKernels:
        """Return products and copies on one device."""
        return TorchPeakKernels(options)

    def examine(self) -> Examination:
        """Return what it was built for."""
        return engines.examine()

    def multiply(self, device: str) -> tuple[NDArray[Any], str]:
        """Compute ``LEFT @ RIGHT`` on ``device``."""
        left, right = (
            torch.tensor(factor, dtype=torch.float32, device=device) for factor in (LEFT, RIGHT)
        )
        product = left @ right
        return product.cpu().numpy(), str(product.device)


def _kind(options: base.Options) -> Callable[[base.Job], base.Trainer]:
    """Return the trainer of a style and layout; optional modules are imported on use."""
    layout = options.layout
    if layout is None or layout.ranks == 1:
        match options.style:
            case "idiomatic":
                return TorchIdiomaticTrainer
            case "compiled":
                from trainmark.backends.torch.compiled import TorchCompiledTrainer

                return TorchCompiledTrainer
            case "fast":
                return TorchFastTrainer
            case _:
                assert_never(options.style)
    if options.style == "compiled":
        raise Unsupported(
            "torch does not scale the style 'compiled'", fix="Use --style fast or idiomatic."
        )
    if layout.pipeline == 1:
        from trainmark.backends.torch.parallel.data_parallel import (
            DataParallelFast,
            DataParallelIdiomatic,
        )

        return DataParallelFast if options.style == "fast" else DataParallelIdiomatic
    if PRECISIONS[options.precision].mixed:
        raise Unsupported(
            f"torch does not split a network into stages in {options.precision}",
            expected=listed(mixed=False),
        )
    from trainmark.backends.torch.parallel.pipeline import PipelinedFast, PipelinedIdiomatic

    return PipelinedFast if options.style == "fast" else PipelinedIdiomatic


def _devices() -> tuple[base.Device, ...]:
    return (base.cpu(*precision.supported("cpu")), *engines.accelerators(precision.supported))
