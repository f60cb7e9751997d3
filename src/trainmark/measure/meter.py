"""What each NVIDIA GPU does at the moment, as often as one asks. Opens NVML once, and makes no context on a GPU."""

from __future__ import annotations

import contextlib
import importlib
from dataclasses import dataclass
from typing import Any

from trainmark.measure.nvidia import Nvml

_MILLI = 1e-3
_MEGA = 1e6


@dataclass(frozen=True)
class GpuReading:
    """One GPU at one moment; what it does not tell is None.

    Args:
        percent: share of the driver's last sampling period in which any kernel ran.
        watts: it draws; on newer GPUs the mean of the last second.
        joules: since the driver was loaded.
        throttle_bits: reasons why its clocks are held back, as NVML numbers them.
    """

    percent: float | None = None
    memory_bytes: int | None = None
    watts: float | None = None
    joules: float | None = None
    sm_hertz: float | None = None
    memory_hertz: float | None = None
    celsius: float | None = None
    fan_percent: float | None = None
    throttle_bits: int | None = None


class GpuMeter:
    """The GPUs of this machine, in the driver's order; none where NVML is not there.

    Args:
        library: ``pynvml`` by default.
    """

    def __init__(self, library: Any = None) -> None:
        self._library = library if library is not None else importlib.import_module("pynvml")
        self._handles: list[Any] = []
        self._nvml = Nvml(self._library)
        with contextlib.suppress(self._library.NVMLError):
            self._library.nvmlInit()  # until this process ends
            count = self._nvml.ask("nvmlDeviceGetCount") or 0
            self._handles = [self._nvml.handle(index)[0] for index in range(count)]

    def read(self) -> tuple[GpuReading, ...]:
        """Every GPU now; of one that is lost nothing is known."""
        return tuple(GpuReading() if handle is None else self._read(handle) for handle in self._handles)

    def _read(self, handle: Any) -> GpuReading:
        library = self._library

        def ask(question: str, *more: Any) -> Any:
            return self._nvml.ask(question, handle, *more)

        used, memory = ask("nvmlDeviceGetUtilizationRates"), ask("nvmlDeviceGetMemoryInfo")
        bits = ask("nvmlDeviceGetCurrentClocksEventReasons")
        if bits is None:  # as it was called before driver 535
            bits = ask("nvmlDeviceGetCurrentClocksThrottleReasons")
        return GpuReading(
            percent=None if used is None else float(used.gpu),
            memory_bytes=None if memory is None else int(memory.used),
            watts=_times(ask("nvmlDeviceGetPowerUsage"), _MILLI),
            joules=_times(ask("nvmlDeviceGetTotalEnergyConsumption"), _MILLI),
            sm_hertz=_times(ask("nvmlDeviceGetClockInfo", getattr(library, "NVML_CLOCK_SM", 1)), _MEGA),
            memory_hertz=_times(ask("nvmlDeviceGetClockInfo", getattr(library, "NVML_CLOCK_MEM", 2)), _MEGA),
            celsius=_times(ask("nvmlDeviceGetTemperature", getattr(library, "NVML_TEMPERATURE_GPU", 0)), 1),
            fan_percent=_times(ask("nvmlDeviceGetFanSpeed"), 1),
            throttle_bits=bits,
        )


def _times(answer: Any, factor: float) -> float | None:
    return None if answer is None else float(answer * factor)
