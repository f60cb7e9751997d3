"""The MXNet backend: its devices, what it supports, and its trainers."""

from __future__ import annotations

import platform
from typing import Any

import numpy as np
from numpy.typing import NDArray

from trainmark.backends.base import (
    Capabilities,
    Device,
    Options,
    StepPart,
    Trainer,
    is_untested,
    require_support,
)
from trainmark.backends.examination import Examination
from trainmark.backends.peaks import PeakKernels
from trainmark.data.dataset import Dataset
from trainmark.errors import Unsupported
from trainmark.workload.model import Model
from trainmark.workload.spec import Workload
from trainmark_mxnet.precision import DTYPES

try:
    import mxnet as mx
except AttributeError as error:  # it uses np.bool, which NumPy 1.24 removed
    raise Unsupported(
        "this MXNet can't be imported with this NumPy",
        expected="numpy older than 1.24",
        found=f"numpy {np.__version__}",
        fix="pip install numpy==1.23.5",
    ) from error

OLDEST = NEWEST = "1.9"  # 1.9.1 was the last with the Module; the project was retired in 2023

KINDS = frozenset(
    {
        *(
            "dense",
            "conv2d",
            "max-pool",
            "local-response-norm",
            "relu",
            "dropout",
            "channel-dropout",
            "flatten",
        ),
        *(
            "log-softmax",
            "nll",
            "softmax-cross-entropy",
            "softmax-then-log",
            "clipped-softmax-cross-entropy",
        ),
        *("sgd", "adam", "rmsprop"),
    }
)


class MxnetBackend:
    """MXNet 1.9 on CPU and CUDA."""

    def capabilities(self) -> Capabilities:
        """Return what this MXNet supports, and its devices."""
        version = mx.__version__
        untested = is_untested("MXNet", version, oldest=OLDEST, newest=NEWEST)
        if not hasattr(mx, "mod"):
            raise Unsupported(
                "this MXNet has no Module",
                expected=f"MXNet {NEWEST}",
                found=version,
                fix="pip install mxnet==1.9.1",
            )
        return Capabilities(
            "mxnet", version, ("idiomatic", "fast"), _devices(), KINDS, {"mxnet": version}, untested
        )

    def trainer(self, workload: Workload, model: Model, data: Dataset, options: Options) -> Trainer:
        """Create a trainer of the requested style."""
        require_support(self.capabilities(), workload, options)
        if options.memory_fraction is not None:
            raise Unsupported(
                "MXNet can't limit its share of the device's memory", fix="Omit --memory-fraction."
            )
        if options.style == "fast":
            from trainmark_mxnet.fast import FastTrainer

            return FastTrainer(workload, model, data, options)
        # not at the top: needs Module, which MXNet 2 lacks
        from trainmark_mxnet.idiomatic import IdiomaticTrainer

        return IdiomaticTrainer(workload, model, data, options)

    def parts(self, options: Options) -> frozenset[StepPart]:  # noqa: ARG002
        """Return all parts except ``copy``: a Module always copies the batch into its graph."""
        return frozenset(("input", "optimizer", "loss"))

    def peak_kernels(self, options: Options) -> PeakKernels:
        """Return matrix products, convolutions and copies on one device."""
        from trainmark_mxnet.peaks import MxnetPeakKernels

        return MxnetPeakKernels(options)

    def examine(self) -> Examination:
        """Return whether it was built for CUDA."""
        from trainmark_mxnet import health

        return health.examine()

    def multiply(self, device: str) -> tuple[NDArray[Any], str]:
        """Compute a small product on one device."""
        from trainmark_mxnet import health

        return health.multiply(device)


def _devices() -> tuple[Device, ...]:
    devices = [
        Device("cpu", platform.processor() or platform.machine(), "cpu", None, tuple(DTYPES))
    ]
    for index in range(mx.context.num_gpus()):
        _, memory = mx.context.gpu_memory_info(index)
        # MXNet has no device names
        devices.append(Device(f"cuda:{index}", None, "accelerator", memory, tuple(DTYPES)))
    return tuple(devices)
