from __future__ import annotations

from typing import Any

from tests.unit.measure.nvml import NVMLError, library
from trainmark.measure.meter import GpuMeter, GpuReading


def test_every_gpu_is_read() -> None:
    first, second = GpuMeter(library()).read()
    assert first == second
    assert (first.percent, first.memory_bytes, first.watts, first.joules) == (93, 3 * 2**30, 612.5, 987_654.321)
    assert (first.sm_hertz, first.celsius, first.throttle_bits) == (1.98e9, 41, 0x44)


def test_what_is_not_supported_is_unknown() -> None:
    assert GpuMeter(library()).read()[0].fan_percent is None


def test_the_older_name_of_the_reasons() -> None:
    old = {"nvmlDeviceGetCurrentClocksEventReasons": ..., "nvmlDeviceGetCurrentClocksThrottleReasons": 8}
    assert GpuMeter(library(**old)).read()[0].throttle_bits == 8


def test_no_driver_no_gpus() -> None:
    assert GpuMeter(library(nvmlInit=NVMLError("Driver Not Loaded"))).read() == ()


def test_a_gpu_that_is_lost_while_it_is_watched() -> None:
    lost: dict[str, bool] = {}

    def ask(answer: Any) -> Any:
        def function(handle: str, *more: Any) -> Any:
            if lost.get(handle):
                raise NVMLError("GPU is lost")
            return answer

        return function

    nvml = library()
    nvml.nvmlDeviceGetPowerUsage = ask(300_000)
    nvml.nvmlDeviceGetMemoryInfo = ask(None)
    meter = GpuMeter(nvml)
    lost["handle 1"] = True
    before, after = meter.read()
    assert (before.watts, after.watts) == (300, None)


def test_a_gpu_that_gives_no_handle() -> None:
    def handle(index: int) -> str:
        if index == 0:
            raise NVMLError("GPU is lost")
        return "handle"

    nvml = library()
    nvml.nvmlDeviceGetHandleByIndex = handle
    first, second = GpuMeter(nvml).read()
    assert first == GpuReading()
    assert second.percent == 93
