"""TensorFlow as the engine of Keras."""

from __future__ import annotations

import ctypes
import os
import platform
from collections.abc import Sequence
from typing import Any

import tensorflow as tf

from trainmark.backends.base import Device, Options


class TensorFlowEngine:
    """TensorFlow on CPU and CUDA."""

    title, version, oldest, newest = "TensorFlow", tf.__version__, "2.18", "2.21"

    def __init__(self) -> None:
        self._on_gpu = False

    def packages(self) -> dict[str, str]:
        """TensorFlow, and what it was built with."""
        build = tf.sysconfig.get_build_info()
        built_with = {"cuda": build.get("cuda_version"), "cudnn": build.get("cudnn_version")}
        return {"tensorflow": self.version} | {name: str(version) for name, version in built_with.items() if version}

    def devices(self) -> tuple[Device, ...]:
        """Asks without starting the runtime, which would fix its threads."""
        devices = [Device("cpu", platform.processor() or platform.machine(), "cpu", None, ("fp32", "fp64"))]
        for index, gpu in enumerate(tf.config.list_physical_devices("GPU")):
            name = tf.config.experimental.get_device_details(gpu).get("device_name")
            memory = _memory_bytes(index)
            devices.append(Device(f"cuda:{index}", name, "accelerator", memory, ("fp32", "tf32", "fp64")))
        return tuple(devices)

    def prepare(self, options: Options) -> None:
        """Threads of single operations and between them; one device made visible."""
        if options.threads is not None:
            tf.config.threading.set_intra_op_parallelism_threads(options.threads)
            tf.config.threading.set_inter_op_parallelism_threads(options.threads)
        tf.config.experimental.enable_tensor_float_32_execution(options.precision == "tf32")
        self._on_gpu = options.device != "cpu"
        gpus = tf.config.list_physical_devices("GPU")
        if not self._on_gpu:
            if gpus:
                tf.config.set_visible_devices([], "GPU")
            return
        index = int(options.device.partition(":")[2])
        tf.config.set_visible_devices(gpus[index], "GPU")
        total = _memory_bytes(index)
        if options.memory_fraction is not None and total is not None:
            limit = tf.config.LogicalDeviceConfiguration(memory_limit=options.memory_fraction * total / 2**20)
            tf.config.set_logical_device_configuration(gpus[index], [limit])
        else:
            tf.config.experimental.set_memory_growth(gpus[index], True)

    def reseed(self, seed: int) -> None:
        """Once seeded, TensorFlow shuffles every ``fit`` on the same arrays alike."""
        tf.random.set_seed(seed)

    @property
    def fast_trainer(self) -> Any:
        """A loop within a compiled function."""
        from trainmark.backends.keras.fast_tensorflow import TensorFlowTrainer

        return TensorFlowTrainer

    def repeated(self, x: Any, y: Any, steps: int) -> Any:
        """Arrays as a data set that has nothing to make."""
        return tf.data.Dataset.from_tensors((x, y)).repeat(steps)

    def synchronize(self, values: Sequence[Any]) -> None:  # noqa: ARG002
        """Wait for all devices."""
        tf.test.experimental.sync_devices()

    def settings(self) -> dict[str, Any]:
        """TensorFlow's switches as it reports them now; 0 threads are its own choice."""
        return {
            "tensor_float_32": tf.config.experimental.tensor_float_32_execution_enabled(),
            "intra_op_threads": tf.config.threading.get_intra_op_parallelism_threads(),
            "inter_op_threads": tf.config.threading.get_inter_op_parallelism_threads(),
            "TF_ENABLE_ONEDNN_OPTS": os.environ.get("TF_ENABLE_ONEDNN_OPTS"),
            "TF_XLA_FLAGS": os.environ.get("TF_XLA_FLAGS"),
            "XLA_FLAGS": os.environ.get("XLA_FLAGS"),
        }

    def device_peak_bytes(self) -> int | None:
        """Most memory TensorFlow held on the visible GPU."""
        return int(tf.config.experimental.get_memory_info("GPU:0")["peak"]) if self._on_gpu else None


def _memory_bytes(index: int) -> int | None:
    """Memory of a GPU as the CUDA driver tells it, since TensorFlow does not; None when it can't be asked."""
    try:
        driver = ctypes.CDLL("libcuda.so.1")
    except OSError:
        return None
    device, total = ctypes.c_int(), ctypes.c_size_t()
    failed = (
        driver.cuInit(0)
        or driver.cuDeviceGet(ctypes.byref(device), index)
        or driver.cuDeviceTotalMem_v2(ctypes.byref(total), device)
    )
    return None if failed else total.value


ENGINE = TensorFlowEngine()
