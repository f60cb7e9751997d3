"""The MXNet backend: what it sees and what it can do."""

from __future__ import annotations

import platform
from typing import Any

import numpy as np
from numpy.typing import NDArray

from trainmark.backends.base import (
    Capabilities,
    Device,
    Options,
    Part,
    Precision,
    Trainer,
    is_untested,
    require_support,
)
from trainmark.backends.examination import Examination
from trainmark.backends.limits import Limits
from trainmark.data.dataset import Dataset
from trainmark.errors import Unsupported
from trainmark.workload.model import Model
from trainmark.workload.spec import Workload

try:
    import mxnet as mx
except AttributeError as error:  # it uses np.bool, which NumPy 1.24 took away, and more that NumPy 2 did
    raise Unsupported(
        "this MXNet can't be imported with this NumPy",
        expected="numpy older than 1.24",
        found=f"numpy {np.__version__}",
        fix="pip install numpy==1.23.5",
    ) from error

OLDEST = NEWEST = "1.9"  # 1.9.1 was the last with the Module; the project was retired in 2023
_PRECISIONS: tuple[Precision, ...] = ("fp32", "fp64")

KINDS = frozenset(
    {
        *("dense", "conv2d", "max-pool", "local-response-norm", "relu", "dropout", "channel-dropout", "flatten"),
        *("log-softmax", "nll", "softmax-cross-entropy", "softmax-then-log", "clipped-softmax-cross-entropy"),
        *("sgd", "adam", "rmsprop"),
    }
)


class MxnetBackend:
    """MXNet 1.9 on CPU and CUDA."""

    def capabilities(self) -> Capabilities:
        """Everything, on the devices that MXNet sees."""
        version = mx.__version__
        untested = is_untested("MXNet", version, oldest=OLDEST, newest=NEWEST)
        if not hasattr(mx, "mod"):
            raise Unsupported(
                "this MXNet has no Module", expected=f"MXNet {NEWEST}", found=version, fix="pip install mxnet==1.9.1"
            )
        return Capabilities("mxnet", version, ("idiomatic", "fast"), _devices(), KINDS, {"mxnet": version}, untested)

    def trainer(self, workload: Workload, model: Model, data: Dataset, options: Options) -> Trainer:
        """A trainer of the asked style."""
        require_support(self.capabilities(), workload, options)
        if options.memory_fraction is not None:
            raise Unsupported("mxnet can't be held to a part of the memory", fix="Leave --memory-fraction out.")
        if options.style == "fast":
            from trainmark.backends.mxnet.fast import FastTrainer

            return FastTrainer(workload, model, data, options)
        from trainmark.backends.mxnet.idiomatic import IdiomaticTrainer  # not above: MXNet 2 has not what it builds on

        return IdiomaticTrainer(workload, model, data, options)

    def parts(self, options: Options) -> frozenset[Part]:  # noqa: ARG002
        """A Module copies every batch into its graph, and can't be made not to."""
        return frozenset(("input", "optimizer", "loss"))

    def limits(self, options: Options) -> Limits:
        """Products and copies on one device."""
        from trainmark.backends.mxnet.limits import MxnetLimits

        return MxnetLimits(options)

    def examine(self) -> Examination:
        """What it was built for."""
        from trainmark.backends.mxnet import health

        return health.examine()

    def multiply(self, device: str) -> tuple[NDArray[Any], str]:
        """A small product on one device."""
        from trainmark.backends.mxnet import health

        return health.multiply(device)


def _devices() -> tuple[Device, ...]:
    devices = [Device("cpu", platform.processor() or platform.machine(), "cpu", None, _PRECISIONS)]
    for index in range(mx.context.num_gpus()):
        _, memory = mx.context.gpu_memory_info(index)
        devices.append(Device(f"cuda:{index}", None, "accelerator", memory, _PRECISIONS))  # it does not tell names
    return tuple(devices)
