"""The JAX backend: its devices and capabilities."""

from __future__ import annotations

import os
import re
from importlib.metadata import distributions
from typing import Any

import jax
import numpy as np
from jax.sharding import Mesh
from numpy.typing import NDArray

from trainmark.backends import base
from trainmark.backends.engines import jax as engines
from trainmark.backends.examination import LEFT, RIGHT, Examination, first_line
from trainmark.backends.jax.data_parallel import AXIS, JaxDataParallelTrainer
from trainmark.backends.jax.fast import JaxFastTrainer
from trainmark.backends.jax.idiomatic import JaxIdiomaticTrainer
from trainmark.backends.jax.peaks import JaxPeakKernels
from trainmark.backends.jax.precision import supported
from trainmark.backends.peaks import PeakKernels
from trainmark.data.dataset import Dataset
from trainmark.errors import AbsentDevice, Unsupported
from trainmark.workload.model import Model
from trainmark.workload.spec import Workload

_PLUGIN = re.compile(r"jax[-_](cuda|rocm)(\d+)[-_]plugin", re.IGNORECASE)
_ONE_THREAD = ("--xla_cpu_multi_thread_eigen=false", "intra_op_parallelism_threads=1")

STYLES: tuple[base.Style, ...] = ("idiomatic", "fast")
KINDS = base.COMMON_KINDS


class JaxBackend:
    """JAX on CPU and CUDA."""

    def capabilities(self) -> base.Capabilities:
        """Return full support, on the devices that JAX sees."""
        version: str = jax.__version__
        untested = base.is_untested("JAX", version, oldest=engines.OLDEST, newest=engines.NEWEST)
        return base.Capabilities(
            "jax",
            version,
            STYLES,
            tuple(_devices()),
            KINDS,
            engines.packages(),
            untested,
            "devices",
            True,
        )

    def trainer(
        self, workload: Workload, model: Model, data: Dataset, options: base.Options
    ) -> base.Trainer:
        """Create a trainer of the requested style."""
        self._set_up(options)
        base.require_support(self.capabilities(), workload, options)
        engines.take_share(options)
        job = base.Job(workload, model, data, options)
        layout = options.layout
        if layout is not None and layout.ranks > 1:
            if layout.pipeline > 1 or options.style != "fast":
                raise Unsupported(
                    "jax scales with copies only, in the style fast",
                    expected="one stage, --style fast",
                )
            return JaxDataParallelTrainer(job, _mesh(options))
        kind = JaxFastTrainer if options.style == "fast" else JaxIdiomaticTrainer
        return kind(job, _object(options.device))

    def _set_up(self, options: base.Options) -> None:
        """Create one CPU device per rank, each with one thread.

        XLA reads this once, when it first lists devices.
        """
        if options.layout is not None and options.device == "cpu":
            wanted = (
                f"--xla_force_host_platform_device_count={options.layout.ranks}",
                *_ONE_THREAD,
            )
            os.environ["XLA_FLAGS"] = " ".join([os.environ.get("XLA_FLAGS", ""), *wanted])

    def parts(self, options: base.Options) -> frozenset[base.StepPart]:
        """Return the parts: ``fast`` gathers batches on the device.

        ``idiomatic`` copies NumPy arrays to it.
        """
        common: tuple[base.StepPart, ...] = ("input", "optimizer", "loss")
        return frozenset(common if options.style == "fast" else ("copy", *common))

    def peak_kernels(self, options: base.Options) -> PeakKernels:
        """Return products and copies on one device."""
        return JaxPeakKernels(options, _object(options.device))

    def examine(self) -> Examination:
        """Return JAX's GPU plug-in, and why it sees no GPU."""
        # JAX reads this variable on the first use of a device.
        os.environ.setdefault("XLA_PYTHON_CLIENT_PREALLOCATE", "false")
        platforms = os.environ.get("JAX_PLATFORMS", "")
        hidden = not any(
            each.strip() in ("", "gpu", "cuda", "rocm") for each in platforms.split(",")
        )
        built_for = _built_for()
        blind = None
        if built_for and not hidden:
            try:
                jax.devices("gpu")
            except RuntimeError as error:
                blind = first_line(error)
        return Examination(built_for, None, blind, f"JAX_PLATFORMS={platforms}" if hidden else None)

    def multiply(self, device: str) -> tuple[NDArray[Any], str]:
        """Compute ``LEFT @ RIGHT`` on ``device``."""
        kind, _, index = device.partition(":")
        place = jax.devices("gpu" if kind == "cuda" else kind)[int(index or 0)]
        left, right = (
            jax.device_put(np.array(factor, np.float32), place) for factor in (LEFT, RIGHT)
        )
        product = jax.jit(jax.numpy.matmul)(left, right)
        return np.asarray(product), str(next(iter(product.devices())))


def _built_for() -> str | None:
    """Return the accelerator of the installed plug-in; None without one."""
    names = (distribution.metadata["Name"] or "" for distribution in distributions())
    plugin = next(filter(None, map(_PLUGIN.fullmatch, names)), None)
    if plugin is None:
        return None
    name = "CUDA" if plugin[1].lower() == "cuda" else "ROCm"
    return f"{name} {plugin[2]}"


def _devices() -> dict[base.Device, Any]:
    """Return each device, with JAX's object for it."""
    return engines.devices(supported("cpu"), supported("gpu"))


def _mesh(options: base.Options) -> Mesh:
    """Return a mesh of the first devices, one per rank of the layout."""
    assert options.layout is not None
    kind = "cpu" if options.device == "cpu" else "gpu"
    found = jax.devices(kind)
    if len(found) < options.layout.ranks:
        raise AbsentDevice(
            f"jax has too few {kind} devices",
            expected=str(options.layout.ranks),
            found=str(len(found)),
        )
    return Mesh(np.array(found[: options.layout.ranks]), (AXIS,))


def _object(device_id: str) -> Any:
    """Return JAX's object for a device."""
    return next(object_ for device, object_ in _devices().items() if device.id == device_id)
