"""Repeated readings of NVIDIA GPUs. NVML stays open, and creates no context on a GPU."""

from __future__ import annotations

import contextlib
import importlib
from typing import Any

from trainmark.measure.nvidia.nvml import CLOCK_MEMORY, CLOCK_SM, TEMPERATURE_GPU, Nvml
from trainmark.measure.vendor import GpuReading

_MILLI = 1e-3
_MEGA = 1e6


class NvmlMeter:
    """Reads all GPUs of this machine, in the driver's order.

    It can be used for the lifetime of this process; without NVML it reads none.

    Args:
        library: ``pynvml`` by default.
    """

    def __init__(self, library: Any = None) -> None:
        library = library or importlib.import_module("pynvml")
        self._nvml = Nvml(library)
        self._handles: list[Any] = []  # None for a GPU without one
        with contextlib.suppress(library.NVMLError):
            library.nvmlInit()
            count = self._nvml.ask("nvmlDeviceGetCount") or 0
            self._handles = [self._nvml.handle(index)[0] for index in range(count)]

    def read(self) -> tuple[GpuReading, ...]:
        """Read every GPU.

        A lost GPU is not queried again, since the driver can take seconds to report the loss.
        """
        readings = []
        for index, handle in enumerate(self._handles):
            readings.append(GpuReading() if handle is None else self._read(handle))
            if handle is not None and self._nvml.is_lost(handle):
                self._handles[index] = None
        return tuple(readings)

    def _read(self, handle: Any) -> GpuReading:
        def ask(question: str, *more: Any) -> Any:
            return self._nvml.ask(question, handle, *more)

        used = ask("nvmlDeviceGetUtilizationRates")
        memory = ask("nvmlDeviceGetMemoryInfo")
        return GpuReading(
            percent=None if used is None else float(used.gpu),
            memory_bytes=None if memory is None else int(memory.used),
            watts=_times(ask("nvmlDeviceGetPowerUsage"), _MILLI),
            joules=_times(ask("nvmlDeviceGetTotalEnergyConsumption"), _MILLI),
            sm_hertz=_times(ask("nvmlDeviceGetClockInfo", CLOCK_SM), _MEGA),
            memory_hertz=_times(ask("nvmlDeviceGetClockInfo", CLOCK_MEMORY), _MEGA),
            celsius=_times(ask("nvmlDeviceGetTemperature", TEMPERATURE_GPU), 1),
            fan_percent=_times(ask("nvmlDeviceGetFanSpeed"), 1),
            throttle_bits=self._nvml.throttle_bits(handle),
        )


def _times(answer: Any, factor: float) -> float | None:
    return None if answer is None else float(answer * factor)
