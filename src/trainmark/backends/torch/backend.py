"""The PyTorch backend: what it sees and what it can do."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from numpy.typing import NDArray

from trainmark.backends import base
from trainmark.backends.examination import LEFT, RIGHT, Examination, first_line
from trainmark.backends.layout import Fall, LaunchSpec
from trainmark.backends.limits import DeviceLimits
from trainmark.backends.torch import precision
from trainmark.backends.torch.fast import TorchFastTrainer
from trainmark.backends.torch.idiomatic import TorchIdiomaticTrainer
from trainmark.backends.torch.limits import TorchLimits
from trainmark.data.dataset import Dataset
from trainmark.errors import Unsupported, assert_never
from trainmark.workload.model import Model
from trainmark.workload.precision import PRECISIONS, listed
from trainmark.workload.spec import Workload

OLDEST, NEWEST = "2.5", "2.13"  # oldest: fused optimisers on the CPU, torch.amp.GradScaler, capturable RMSprop

KINDS = base.KINDS_0_1


class TorchBackend:
    """PyTorch on CPU, CUDA and Apple's GPU."""

    def capabilities(self) -> base.Capabilities:
        """All capabilities, on the devices that PyTorch sees."""
        version: str = torch.__version__
        untested = base.is_untested("PyTorch", version, oldest=OLDEST, newest=NEWEST)
        packages = {"torch": version}
        if torch.version.cuda:
            packages |= {"cuda": torch.version.cuda, "cudnn": str(torch.backends.cudnn.version())}
        return base.Capabilities("torch", version, base.STYLES, _devices(), KINDS, packages, untested, "processes")

    def trainer(self, workload: Workload, model: Model, data: Dataset, options: base.Options) -> base.Trainer:
        """A trainer of the requested style."""
        base.require_support(self.capabilities(), workload, options)
        return _kind(options)(workload, model, data, options)

    def parts(self, options: base.Options) -> frozenset[base.Part]:
        """``fast`` gathers its batches on the device; the other styles make them on the host."""
        copies = options.style != "fast" and options.device != "cpu"
        return frozenset(("input", "copy", "optimizer", "loss") if copies else ("input", "optimizer", "loss"))

    def launch(self, asked: LaunchSpec) -> Fall | None:
        """By ``torchrun``'s launcher."""
        from trainmark.backends.torch.parallel.launch import launch

        return launch(asked)

    def limits(self, options: base.Options) -> DeviceLimits:
        """Products and copies on one device."""
        return TorchLimits(options)

    def examine(self) -> Examination:
        """What it was built for."""
        built_for = f"ROCm {torch.version.hip}" if torch.version.hip else None
        if torch.version.cuda:
            built_for = f"CUDA {torch.version.cuda}"
        sees, blind = torch.cuda.is_available(), None
        if built_for and not sees:
            try:
                torch.cuda.init()
            except Exception as error:  # noqa: BLE001  (its reasons come as several kinds of exception)
                blind = first_line(error)
        return Examination(built_for, tuple(torch.cuda.get_arch_list()) if sees else None, blind)

    def multiply(self, device: str) -> tuple[NDArray[Any], str]:
        """``LEFT @ RIGHT`` on ``device``, and where it lay."""
        left, right = (torch.tensor(factor, dtype=torch.float32, device=device) for factor in (LEFT, RIGHT))
        product = left @ right
        return product.cpu().numpy(), str(product.device)


def _kind(options: base.Options) -> Callable[[Workload, Model, Dataset, base.Options], base.Trainer]:
    """The trainer of a style and layout; optional modules are imported on use."""
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
        raise Unsupported("torch does not scale the style 'compiled'", fix="Use --style fast or idiomatic.")
    if layout.pipeline == 1:
        from trainmark.backends.torch.parallel.data_parallel import DataParallelFast, DataParallelIdiomatic

        return DataParallelFast if options.style == "fast" else DataParallelIdiomatic
    if PRECISIONS[options.precision].mixed:
        raise Unsupported(
            f"torch does not cut a network into stages in {options.precision}", expected=listed(mixed=False)
        )
    from trainmark.backends.torch.parallel.pipeline import PipelinedFast, PipelinedIdiomatic

    return PipelinedFast if options.style == "fast" else PipelinedIdiomatic


def _devices() -> tuple[base.Device, ...]:
    devices = [base.cpu(*precision.supported("cpu"))]
    for index in range(torch.cuda.device_count()):
        properties = torch.cuda.get_device_properties(index)
        precisions = precision.supported("cuda", (properties.major, properties.minor))
        memory = properties.total_memory
        devices.append(base.Device(f"cuda:{index}", properties.name, "accelerator", memory, precisions))
    if torch.backends.mps.is_available():
        devices.append(base.Device("mps", "Apple GPU", "accelerator", None, precision.supported("mps")))
    return tuple(devices)
