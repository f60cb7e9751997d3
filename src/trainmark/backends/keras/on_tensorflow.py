"""TensorFlow as the engine of Keras; ``fast`` is a loop within a compiled function."""

from __future__ import annotations

import ctypes
import os
from collections.abc import Callable, Sequence
from typing import Any

import tensorflow as tf

from trainmark.backends.base import Device, Job, Options, cpu
from trainmark.backends.keras.engine import Engine
from trainmark.backends.keras.fast import MOST_STEPS, KerasFastTrainer
from trainmark.backends.keras.precision import ARITHMETIC, supported


class FastOnTensorFlow(KerasFastTrainer):
    """Runs steps in a ``tf.while_loop``."""

    def __init__(self, job: Job, engine: Engine) -> None:
        super().__init__(job, engine)
        self._xla = not self._slow_in_loops
        self._loop = tf.function(self._steps_on, autograph=False, jit_compile=self._xla)

    def settings(self) -> dict[str, Any]:
        """Return TensorFlow's settings, and whether XLA compiles the loop or TensorFlow runs it."""
        return {**super().settings(), "jit_compile": self._xla}

    def _run(self, x: Any, y: Any, batches: Any, count: int, tick: Callable[[], None]) -> Any:
        rows = self._loop(x, y, batches, tf.constant(count))
        for _ in range(count):
            tick()
        return rows

    def _steps_on(self, x: Any, y: Any, batches: Any, count: Any) -> Any:
        def one_step(step: Any, rows: Any) -> tuple[Any, Any]:
            row = self._learn(*self._examples(x, y, batches, step))
            if not self._updates:
                self._unsettle(self._network.trainable_variables[0].value, step)
            return step + 1, rows.write(step, row)

        def goes_on(step: Any, _: Any) -> Any:
            return step < count

        rows = tf.TensorArray(self._dtype, MOST_STEPS)
        return tf.while_loop(goes_on, one_step, (0, rows))[1].stack()

    def _gathered(self, x: Any, indices: Any) -> Any:
        return tf.gather(x, indices)

    def _learn(self, x: Any, y: Any) -> Any:
        with tf.GradientTape() as tape:
            total, row = self._judge(self._learner(x, training=True), y, self._learner.losses)
        variables = self._network.trainable_variables
        gradients = tape.gradient(total, [variable.value for variable in variables])
        self._optimizer.apply(gradients, variables)
        return row

    def _unsettle(self, kernel: Any, step: Any) -> None:
        """Write the current value.

        Otherwise XLA would hoist computations on constant weights out of the loop.
        """
        now = tf.convert_to_tensor(kernel)
        corner = [[0] * len(now.shape)]
        same = tf.where(step < 0, tf.zeros([], now.dtype), tf.gather_nd(now, corner)[0])
        kernel.assign(tf.tensor_scatter_nd_update(now, corner, [same]))


class TensorFlowEngine(Engine):
    """TensorFlow on CPU and CUDA."""

    title = "TensorFlow"
    version = tf.__version__
    oldest = "2.18"
    newest = "2.21"
    fast_trainer = FastOnTensorFlow

    def __init__(self) -> None:
        self._on_gpu = False

    def packages(self) -> dict[str, str]:
        """Return the versions of TensorFlow and of what it was built with."""
        build = tf.sysconfig.get_build_info()
        built_with = {"cuda": build.get("cuda_version"), "cudnn": build.get("cudnn_version")}
        return {"tensorflow": self.version} | {
            name: str(version) for name, version in built_with.items() if version
        }

    def devices(self) -> tuple[Device, ...]:
        """List devices without starting the runtime, which would fix its threads."""
        devices = [cpu(*supported(self.title, gpu=False))]
        for index, gpu in enumerate(tf.config.list_physical_devices("GPU")):
            name = tf.config.experimental.get_device_details(gpu).get("device_name")
            memory = _memory_bytes(index)
            precisions = supported(self.title, gpu=True)
            devices.append(Device(f"cuda:{index}", name, "accelerator", memory, precisions))
        return tuple(devices)

    def prepare(self, options: Options) -> None:
        """Set threads within and between operations, and make one device visible."""
        if options.threads is not None:
            tf.config.threading.set_intra_op_parallelism_threads(options.threads)
            tf.config.threading.set_inter_op_parallelism_threads(options.threads)
        tf.config.experimental.enable_tensor_float_32_execution(ARITHMETIC[options.precision].tf32)
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
            limit = tf.config.LogicalDeviceConfiguration(
                memory_limit=options.memory_fraction * total / 2**20
            )
            tf.config.set_logical_device_configuration(gpus[index], [limit])
        else:
            tf.config.experimental.set_memory_growth(gpus[index], True)

    def reseed(self, seed: int) -> None:
        """Set the seed, or TensorFlow shuffles every ``fit`` on the same arrays in the same way."""
        tf.random.set_seed(seed)

    def repeated(self, x: Any, y: Any, steps: int) -> Any:
        """Return a data set that repeats the arrays without preparing anything."""
        return tf.data.Dataset.from_tensors((x, y)).repeat(steps)

    def synchronize(self, values: Sequence[Any]) -> None:  # noqa: ARG002
        """Wait for all devices."""
        tf.test.experimental.sync_devices()

    def settings(self) -> dict[str, Any]:
        """Return the settings as TensorFlow reports them now; 0 threads means its default."""
        return {
            "tensor_float_32": tf.config.experimental.tensor_float_32_execution_enabled(),
            "intra_op_threads": tf.config.threading.get_intra_op_parallelism_threads(),
            "inter_op_threads": tf.config.threading.get_inter_op_parallelism_threads(),
            "TF_ENABLE_ONEDNN_OPTS": os.environ.get("TF_ENABLE_ONEDNN_OPTS"),
            "TF_XLA_FLAGS": os.environ.get("TF_XLA_FLAGS"),
            "XLA_FLAGS": os.environ.get("XLA_FLAGS"),
        }

    def device_peak_bytes(self) -> int | None:
        """Return TensorFlow's peak memory on the visible GPU."""
        return (
            int(tf.config.experimental.get_memory_info("GPU:0")["peak"]) if self._on_gpu else None
        )


def _memory_bytes(index: int) -> int | None:
    """Return a GPU's memory from the CUDA driver, since TensorFlow does not report it.

    The result is None without the driver.
    """
    try:
        driver = ctypes.CDLL("libcuda.so.1")
    except OSError:
        return None
    device = ctypes.c_int()
    total = ctypes.c_size_t()
    failed = (
        driver.cuInit(0)
        or driver.cuDeviceGet(ctypes.byref(device), index)
        or driver.cuDeviceTotalMem_v2(ctypes.byref(total), device)
    )
    return None if failed else total.value


ENGINE = TensorFlowEngine()
