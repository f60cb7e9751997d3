"""The Keras backends, one per engine, and their capabilities.

Keras chooses its engine when it is first imported, so this module imports neither Keras nor an
engine.
"""

from __future__ import annotations

import importlib
import os
import sys
from typing import TYPE_CHECKING, Any, ClassVar, cast

from numpy.typing import NDArray

from trainmark.backends import base
from trainmark.backends.examination import LEFT, RIGHT, Examination
from trainmark.backends.peaks import PeakKernels
from trainmark.data.dataset import Dataset
from trainmark.errors import Unsupported
from trainmark.workload.model import Model
from trainmark.workload.spec import Workload

if TYPE_CHECKING:
    from trainmark.backends.keras.engine import Engine

OLDEST = "3.8"
"""Oldest tested Keras."""
NEWEST = "3.15"
"""Newest tested Keras."""

KINDS = base.COMMON_KINDS


class KerasBackend:
    """Keras on one engine.

    Attributes:
        name: its name in the registry.
        engine: Keras's name of the engine.

    Raises:
        Unsupported: Keras was already imported with another engine.
    """

    name: ClassVar[str]
    engine: ClassVar[str]

    def __init__(self) -> None:
        _choose(self.engine)
        self._engine = cast(
            "Engine", importlib.import_module(f"trainmark.backends.keras.on_{self.engine}").ENGINE
        )

    def capabilities(self) -> base.Capabilities:
        """Return full support, on the devices that the engine sees."""
        keras = importlib.import_module("keras")
        engine = self._engine
        version: str = keras.__version__
        untested = [
            base.is_untested("Keras", version, oldest=OLDEST, newest=NEWEST),
            base.is_untested(
                engine.title, engine.version, oldest=engine.oldest, newest=engine.newest
            ),
        ]
        packages = {"keras": version, **engine.packages()}
        # What compile(jit_compile="auto") resolves to: always True on JAX, with TensorFlow if there
        # is a GPU.
        compiles = bool(keras.Sequential().jit_compile)
        styles = tuple(style for style in base.STYLES if not (compiles and style == "compiled"))
        devices = engine.devices()
        return base.Capabilities(
            self.name,
            version,
            styles,
            devices,
            KINDS,
            packages,
            any(untested),
            compiles_already=compiles,
        )

    def trainer(
        self, workload: Workload, model: Model, data: Dataset, options: base.Options
    ) -> base.Trainer:
        """Create a trainer of the requested style."""
        base.require_support(self.capabilities(), workload, options)
        from trainmark.backends.keras.idiomatic import KerasIdiomaticTrainer

        self._engine.prepare(options)
        kind = self._engine.fast_trainer if options.style == "fast" else KerasIdiomaticTrainer
        return kind(base.Job(workload, model, data, options), self._engine)

    def parts(self, options: base.Options) -> frozenset[base.StepPart]:  # noqa: ARG002
        """Return the parts; copies to the device are inside ``fit``."""
        return frozenset(("input", "optimizer", "loss"))


class KerasOnTensorFlow(KerasBackend):
    """Keras on TensorFlow."""

    name = "keras"
    engine = "tensorflow"

    def __init__(self) -> None:
        # Hides notes on how TensorFlow was built, but not warnings and errors.
        os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "1")
        super().__init__()

    def peak_kernels(self, options: base.Options) -> PeakKernels:
        """Return products and copies on one device."""
        from trainmark.backends.keras.peaks import TensorFlowPeakKernels

        self._engine.prepare(options)
        return TensorFlowPeakKernels(options)

    def examine(self) -> Examination:
        """Return what TensorFlow was built for."""
        import tensorflow as tf

        for gpu in tf.config.list_physical_devices("GPU"):
            # Other frameworks are examined in parallel, and need memory of the same GPU.
            tf.config.experimental.set_memory_growth(gpu, True)
        build = tf.sysconfig.get_build_info()
        if not build.get("is_cuda_build"):
            return Examination()
        return Examination(
            f"CUDA {build['cuda_version']}", tuple(build.get("cuda_compute_capabilities", ()))
        )

    def multiply(self, device: str) -> tuple[NDArray[Any], str]:
        """Compute ``LEFT @ RIGHT`` on ``device``."""
        import tensorflow as tf

        kind, _, index = device.partition(":")
        with tf.device(f"/{'GPU' if kind == 'cuda' else 'CPU'}:{index or 0}"):
            product = tf.constant(LEFT, tf.float32) @ tf.constant(RIGHT, tf.float32)
        return product.numpy(), str(product.device)


class KerasOnTorch(KerasBackend):
    """Keras on PyTorch."""

    name = "keras:torch"
    engine = "torch"


class KerasOnJax(KerasBackend):
    """Keras on JAX."""

    name = "keras:jax"
    engine = "jax"


def _choose(engine: str) -> None:
    """Import Keras with this engine.

    The environment takes precedence over the user's configuration file.
    """
    if "keras" not in sys.modules:
        os.environ["KERAS_BACKEND"] = engine
    found: str = importlib.import_module("keras").backend.backend()
    if found != engine:
        raise Unsupported(
            "Keras can't change its engine after it was imported",
            expected=f"Keras on {engine}",
            found=f"Keras on {found}",
            fix="Train with each engine in a separate process, as `trainmark run` does.",
        )
